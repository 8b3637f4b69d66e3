// SPDX-License-Identifier: Apache-2.0
// What a Krylov method sees of a preconditioner: z = M^-1 r. Made for a pattern (analyse: the constructor), given
// values as often as they change (factor), applied hundreds of times (apply). A new one is a class like these, one line
// in registry_table.hpp, and its test.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sparse/operator.hpp"
#include "sparse/rounding.hpp"
#include "sparse/storage.hpp"
#include "triangular/strategy.hpp"

namespace krilu::precond {

/// What an analysis needs to know beside the pattern. A GPU's (factors.cuh) holds more.
template <class Space>
struct Context {
  Space space;
  triangular::Strategy strategy = triangular::Strategy::automatic;
  std::function<Index(Index)> caller_row;  // of a row in the solver's order, 0-based
  CsrView caller = {};                     // the caller's matrix in host memory, while the constructor runs
};

/// The values of one matrix: as the solver stores them, and as the caller handed them over.
template <class Space, class T>
struct Values {
  Values(const sparse::MatrixOf<Space, T>& stored_values, const CsrView& caller_values = {})
      : stored(stored_values), caller(caller_values) {}
  const sparse::MatrixOf<Space, T>& stored;
  CsrView caller;  // in host memory; left out where only `stored` is looked at
};

template <class Space, class T>
class Preconditioner {
 public:
  virtual ~Preconditioner() = default;
  /// Takes the values of a. What is stored stays alive and unchanged while the preconditioner is applied; what is the
  /// caller's is read now. `shift` is added to the magnitude of each diagonal entry, in units of the row's largest
  /// entry. Throws krilu::Error for a zero pivot.
  virtual void factor(const Values<Space, T>& a, double shift) = 0;
  /// z = M^-1 r, both in the space's memory, distinct. Allocates nothing and does not return to the host.
  virtual void apply(const T* r, T* z) = 0;
  /// z = M^-1 r and Az = A z, the pair that Krylov methods ask for: what is known from the first may spare a part of
  /// the second, where A.stored() is the matrix that was factored.
  virtual void apply(const sparse::Operator<Space, T>& A, const T* r, T* z, T* Az) {
    apply(r, z);
    A.apply(z, Az);
  }
  /// Az = A M^-1 r alone; `room` is a vector that it may write to.
  virtual void product(const sparse::Operator<Space, T>& A, const T* r, T* room, T* Az) { apply(A, r, room, Az); }
  /// What A's columns may be scaled by, in the space's memory, so that less is left of M in rounded() than of M itself:
  /// all: nothing is, as of a diagonal M. Null: no scale is better than another.
  struct Fold {
    const T* scale = nullptr;
    bool all = false;
  };
  virtual Fold folds() const { return {}; }
  /// The factored preconditioner scaled and rounded once, for work in single precision: of R M C, M this one; where the
  /// rounding is `folded`, C is what folds() says. It keeps what it shares with this one alive, and lives on when this
  /// one factors anew. `a` is the matrix that was factored, rounded in the same way, where there is one: what is the
  /// same is not stored twice. Null where T is not double.
  virtual std::unique_ptr<Preconditioner<Space, float>> rounded(
      const sparse::Rounding&, [[maybe_unused]] const std::shared_ptr<const sparse::RoundedMatrix>& a) const {
    return nullptr;
  }
  /// Whether z depends on r of other ranks, so that they scale r alike.
  virtual bool reaches_other_ranks() const { return false; }
  /// Collective where it does: the scales that rounded() will be given, of the caller's rows and columns. Not called
  /// where no rank scales.
  virtual void take_scales(std::span<const double>, std::span<const double>) {}
  virtual std::size_t bytes() const = 0;
  /// What was chosen or found, for people; empty where there is nothing to say.
  virtual std::string description() const { return {}; }
  /// The triangular solves' strategy, and what its chooser saw; nothing for preconditioners without them.
  virtual std::optional<triangular::Report> triangular() const { return std::nullopt; }
  /// Applications that a chooser has yet to time, outside of a recording.
  virtual int trials_left() const { return 0; }
};

}  // namespace krilu::precond
