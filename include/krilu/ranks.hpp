// SPDX-License-Identifier: Apache-2.0
// Many ranks that solve one system together, each with rows of its own. A program that has ranks already (OpenFOAM)
// implements Ranks and Coupling and hands them to krilu::Solver; distributed.hpp brings both, over MPI or over the
// threads of one process.
//
// Every call of a solver in a team is collective: all ranks call it, in the same sequence, with the same options. What
// one rank finds wrong, all ranks throw. What a Coupling or a Preconditioner throws on one rank in the middle of a
// solve ends it after that iteration, and all throw; until then, and for the last residual, it is called on, so that
// ranks that exchange with it need not wait.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "krilu/matrix.hpp"

namespace krilu {

/// The ranks, as one of them sees them. Calls wait for the others.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;  // from 0
  virtual int size() const = 0;
  /// `bytes` from each rank, in the order of ranks: all holds bytes * size(). The same number on every rank.
  virtual void all_gather(const void* mine, std::size_t bytes, void* all) = 0;
  /// values[k] becomes its sum over the ranks: the same bits on every rank. As it stands here, all_gather and a sum in
  /// the order of ranks.
  virtual void sum(std::span<double> values);
};

/// What stands outside a rank's own square block of A: y += B x', x' being the unknowns of other ranks (and whatever
/// else is no entry of the block). It reads and changes entries at its rows only.
class Coupling {
 public:
  virtual ~Coupling() = default;
  /// Rows of the block, ascending, 0-based, whose x others need or whose y others add to.
  virtual std::span<const Index> rows() const = 0;
  /// Whether it and those of the others make the couplings of a symmetric matrix; the same answer on all ranks.
  virtual bool symmetric() const { return false; }
  /// Sends x, an entry for each of rows(). The product with the block runs between this and finish.
  virtual void start(const double* x) = 0;
  /// y, an entry for each of rows(): what the others add, zero where they add nothing.
  virtual void finish(double* y) = 0;
};

/// Rows of other ranks beside a rank's own: what restricted additive Schwarz reaches into.
class RowsBeside {
 public:
  virtual ~RowsBeside() = default;
  /// The rank's own block and, behind its rows and its columns, those beside. One pattern; values as they are now.
  virtual CsrView matrix() const = 0;
  /// Of vectors over the rows of matrix(): it adds to their entries at the rows beside what the owners of those have.
  virtual std::shared_ptr<Coupling> coupling() = 0;
};

/// One rank's place among the others. Without ranks a solver is alone.
struct Team {
  /// z = M^-1 r, this rank's rows of both in host memory; it may ask the other ranks for theirs.
  using Preconditioner = std::function<void(std::span<const double> r, std::span<double> z)>;

  std::shared_ptr<Ranks> ranks = nullptr;
  /// Of all ranks, or of none: then nothing is coupled.
  std::shared_ptr<Coupling> coupling = nullptr;
  /// In place of the one that options name, on all ranks or on none; on the host, in double.
  Preconditioner preconditioner = nullptr;
  /// Of all ranks, or of none. For `ras`, which without it stays within a rank's own block.
  std::shared_ptr<RowsBeside> beside = nullptr;
};

}  // namespace krilu
