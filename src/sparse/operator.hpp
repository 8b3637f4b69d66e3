// SPDX-License-Identifier: Apache-2.0
// What a Krylov method sees of a matrix: products. Format, order and storage precision are hidden behind it, so that a
// method is compiled once for a space and an arithmetic type.
#pragma once

#include <memory>

#include "sparse/split.hpp"

namespace krilu::sparse {

template <class Space, class T>
class Operator {
 public:
  virtual ~Operator() = default;
  virtual Index rows() const = 0;
  /// y = A x; vectors of rows() entries in the space's memory, distinct.
  virtual void apply(const T* x, T* y) const = 0;
  /// r = b - A x; r may be b.
  virtual void residual(const T* b, const T* x, T* r) const = 0;
  /// Whether apply_scaled() is there, and takes less than two passes.
  virtual bool can_scale() const { return false; }
  /// z = D x and y = A z, D diagonal; where can_scale().
  virtual void apply_scaled([[maybe_unused]] const T* d, [[maybe_unused]] const T* x, [[maybe_unused]] T* z,
                            [[maybe_unused]] T* y) const {}
  /// Where the diagonal of the stored matrix stands whose products these are; null: of none. Whoever holds the same one
  /// may form its product in a way of their own,
  ///   start_others(x);  y = (stored) x;  finish_others(y)
  /// being A's y = A x: what other ranks' unknowns give is added.
  virtual const T* stored() const { return nullptr; }
  virtual void start_others([[maybe_unused]] const T* x) const {}
  virtual void finish_others([[maybe_unused]] T* y) const {}
};

/// A matrix in single precision arithmetic, and the operator of its products.
template <class Space>
struct Rounded {
  std::shared_ptr<const RoundedMatrix> matrix;  // null where products have a storage of their own
  std::unique_ptr<const Operator<Space, float>> product;
  std::size_t bytes = 0;
};

/// The operator of a split matrix, for the spaces whose kernels are host code. Computes in T what is stored in S.
template <class Space, class T, class S = T>
class SplitOperator final : public Operator<Space, T> {
 public:
  SplitOperator(Space space, const SplitMatrix<T, S>& a) : space_(std::move(space)), a_(a.view()) {}
  Index rows() const override { return a_.pattern.rows; }
  const T* stored() const override { return a_.diagonal; }
  void apply(const T* x, T* y) const override {
    space_.enqueue([a = a_, x, y](const exec::Host& host) { multiply(host, a, x, y); });
  }
  void residual(const T* b, const T* x, T* r) const override {
    space_.enqueue([a = a_, b, x, r](const exec::Host& host) { sparse::residual(host, a, b, x, r); });
  }

 private:
  Space space_;
  SplitView<T, S> a_;
};

}  // namespace krilu::sparse
