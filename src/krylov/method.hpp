// SPDX-License-Identifier: Apache-2.0
// The interface of a Krylov method. A method owns its work space, made once for a number of rows; iterate() runs it
// from a residual until Control says stop, without returning to the host in between.
#pragma once

#include <cstddef>

#include "krylov/control.hpp"
#include "precond/preconditioner.hpp"
#include "sparse/operator.hpp"

namespace krilu::krylov {

/// The system at work: A x = b with preconditioner M, vectors in the space's memory.
template <class Space, class T>
struct System {
  const sparse::Operator<Space, T>& A;
  precond::Preconditioner<Space, T>& M;
  const T* b;
  T* x;             // the iterate
  T* r;             // b - A x on entry to iterate(); its content afterwards is the method's own affair
  bool magnitudes;  // the stopping norm is a sum of magnitudes (OpenFOAM's), else the 2-norm
};

/// Rows from which on a GPU's iterations take so long that a loop looks at its flag after each.
inline constexpr std::size_t large_system = 3000000;
/// Iterations that a device may run between two looks at the flag. A look takes 4 to 6 us of a GPU, of the 15 to 100
/// that most iterations take below a million rows, and more where the host looks; on larger systems an iteration too
/// many costs more than looks save in a hundred. For texts whose iterations change nothing once they have stopped. The
/// same number on all ranks of a team.
template <class Space>
int iterations_at_once(const Space& ex, std::size_t rows) {
  std::size_t medium = 400000, large = large_system;
  if constexpr (requires { ex.nccl(); })
    if (ex.nccl()) medium = large = 1000000;
  const std::size_t share = ex.even_share(rows);
  return share < medium ? 4 : share < large ? 2 : 1;
}

template <class Space, class T>
class Method {
 public:
  virtual ~Method() = default;
  virtual void iterate(const System<Space, T>& system, exec::Scalar<Control<T>> control) = 0;
  /// The same from any residual of the same A and M: a method may use what it has learnt of them since the last
  /// iterate() or forget(), one of which comes before the first resume().
  virtual void resume(const System<Space, T>& system, exec::Scalar<Control<T>> control) { iterate(system, control); }
  /// Nothing holds that was learnt: A or M is another, or rounding has spoilt it. False of a method that keeps nothing.
  virtual bool forget() { return false; }
  virtual std::size_t bytes() const = 0;
};

}  // namespace krilu::krylov
