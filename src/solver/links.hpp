// SPDX-License-Identifier: Apache-2.0
// Products in a team: a rank's own block, and what it is coupled to. Links bring a Coupling (krilu/ranks.hpp), which
// knows the caller's rows and host memory, to the solver's order and a space's memory; Coupled is the operator.
//   y = A x:  send x at the boundary;  y = (own block) x, meanwhile where that hides anything;  y += what the others
//   add
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "krilu/ranks.hpp"
#include "sparse/operator.hpp"

namespace krilu::solver {

/// Of three starts in a row, a sum over all ranks stands between the first and the last.
template <class Space>
class Links {
 public:
  virtual ~Links() = default;
  /// Collective, before the first start: connects the member, the space in its team, and what the exchange needs. True
  /// on all ranks where neither it nor the member's sums need the host.
  virtual bool connect(const Space& member) = 0;
  /// The coupling has new values.
  virtual void take_values() {}
  /// Sends C x at the boundary, C a diagonal in the space's memory; null: 1. In the solver's order.
  virtual void start(const double* x, const double* C) = 0;
  virtual void start(const float* x, const double* C) = 0;
  /// y += sign R (what the others add), R a diagonal, or null.
  virtual void finish(double* y, const double* R, int sign) = 0;
  virtual void finish(float* y, const double* R, int sign) = 0;
  /// y = A x of all ranks, or, where there is a d, z = D x and y = A z, in one pass, where there is one for `own`, the
  /// operator of the rank's own block; else false. It takes the place of a start and its finish.
  virtual bool product([[maybe_unused]] const sparse::Operator<Space, double>& own, [[maybe_unused]] const double* d,
                       [[maybe_unused]] const double* x, [[maybe_unused]] double* z, [[maybe_unused]] double* y) {
    return false;
  }
  virtual std::size_t bytes() const = 0;
};

/// For the spaces whose kernels are host code.
template <class Space>
class HostLinks final : public Links<Space> {
 public:
  /// rows: those of the coupling, in the solver's order.
  HostLinks(Space space, std::shared_ptr<Coupling> coupling, const Buffer<Index>& rows)
      : ex_(std::move(space)),
        member_(ex_),
        coupling_(std::move(coupling)),
        rows_(ex_.template allocate<Index>(rows.size())),
        sent_(ex_.template allocate<double>(rows.size())),
        got_(ex_.template allocate<double>(rows.size())) {
    ex_.copy_in(rows_, rows.data(), rows.size());
  }
  bool connect(const Space& member) override {
    member_ = member;
    return true;
  }
  void start(const double* x, const double* C) override { send(x, C); }
  void start(const float* x, const double* C) override { send(x, C); }
  void finish(double* y, const double* R, int sign) override { receive(y, R, sign); }
  void finish(float* y, const double* R, int sign) override { receive(y, R, sign); }
  std::size_t bytes() const override { return rows_.bytes() + sent_.bytes() + got_.bytes(); }

 private:
  template <class T>
  void send(const T* x, const double* C) {
    ex_.for_each(rows_.size(), [x, C, rows = rows_.data(), sent = sent_.data()](Index k) {
      sent[k] = (C ? C[rows[k]] : 1.0) * double(x[rows[k]]);
    });
    ex_.enqueue([member = member_, coupling = coupling_, sent = sent_.data()](const exec::Host&) {
      member.in_company([&] { coupling->start(sent); });
    });
  }
  template <class T>
  void receive(T* y, const double* R, int sign) {
    ex_.enqueue([member = member_, coupling = coupling_, got = got_.data()](const exec::Host&) {
      member.in_company([&] { coupling->finish(got); });
    });
    ex_.for_each(rows_.size(), [y, R, sign, rows = rows_.data(), got = got_.data()](Index k) {
      y[rows[k]] += T(sign * (R ? R[rows[k]] : 1.0) * got[k]);
    });
  }

  Space ex_, member_;
  std::shared_ptr<Coupling> coupling_;
  exec::Array<Index> rows_;
  exec::Array<double> sent_, got_;
};

template <class Space, class System>
std::unique_ptr<Links<Space>> make_links(const Space& space, const Team& team, const System& system) {
  return std::make_unique<HostLinks<Space>>(space, team.coupling, system.places(team.coupling->rows()));
}

/// For vectors in the caller's order, in place of a system.
struct InOrder {
  template <class Rows>
  Buffer<Index> places(const Rows& rows) const {
    return Buffer<Index>(rows.begin(), rows.end());
  }
};

/// The operator of a rank's rows: R A C, where `own` is that of its block.
template <class Space, class T>
class Coupled final : public sparse::Operator<Space, T> {
 public:
  Coupled(std::unique_ptr<const sparse::Operator<Space, T>> own, Links<Space>& links, const double* R = nullptr,
          const double* C = nullptr)
      : own_(std::move(own)), links_(links), R_(R), C_(C) {}
  Index rows() const override { return own_->rows(); }
  const T* stored() const override { return own_->stored(); }
  void apply(const T* x, T* y) const override {
    if constexpr (in_double)
      if (!R_ && !C_ && links_.product(*own_, nullptr, x, nullptr, y)) return;
    links_.start(x, C_);
    own_->apply(x, y);
    links_.finish(y, R_, 1);
  }
  void residual(const T* b, const T* x, T* r) const override {
    links_.start(x, C_);
    own_->residual(b, x, r);
    links_.finish(r, R_, -1);
  }
  void start_others(const T* x) const override { links_.start(x, C_); }
  void finish_others(T* y) const override { links_.finish(y, R_, 1); }
  bool can_scale() const override { return in_double && !R_ && !C_ && own_->can_scale(); }
  void apply_scaled(const T* d, const T* x, T* z, T* y) const override {
    if constexpr (in_double) {
      if (links_.product(*own_, d, x, z, y)) return;
      links_.start(x, d);
      own_->apply_scaled(d, x, z, y);
      links_.finish(y, nullptr, 1);
    }
  }

 private:
  static constexpr bool in_double = std::is_same_v<T, double>;

  std::unique_ptr<const sparse::Operator<Space, T>> own_;
  Links<Space>& links_;
  const double *R_, *C_;
};

}  // namespace krilu::solver
