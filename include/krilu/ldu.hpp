// SPDX-License-Identifier: Apache-2.0
// The solver for matrices in OpenFOAM's face addressing (LDU): a value for each cell, and one or two for each internal
// face. Krylov methods run on the faces as they are, by the loops of face_loops.hpp; no matrix in another format is
// made, but for dilu on a GPU.
//
//   krilu::LduSolver solver(options);
//   solver.analyse(mesh);                    // numbering of the cells, loops over faces
//   for (each time step) {
//     solver.factor({diagonal, lower, upper});  // values, as often as they change
//     krilu::Result r = solver.solve(b, x);     // x holds the initial guess on entry, the solution on return
//   }
//
// Everything is in the caller's numbering of cells and faces; both are counted from 0, in messages too.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "krilu/face_plan.hpp"
#include "krilu/mesh.hpp"
#include "krilu/solver.hpp"

namespace krilu {

/// A matrix over a mesh: a(c, c) is diagonal[c]; of face f, a(neighbour, owner) is lower[f] and a(owner, neighbour) is
/// upper[f]. `lower` is empty where the matrix is symmetric. Two faces between the same cells both count.
struct LduView {
  std::span<const double> diagonal, lower, upper;
};

class LduSolver {
 public:
  /// Of Options count
  ///   solver      auto, cg, bicgstab, gmres
  ///   precond     auto, none, jacobi, dilu, dic (dilu of a symmetric matrix)
  ///   triangular  how dilu's sweeps run: auto (on a GPU: cells in coloured blocks), serial (one thread, face by face),
  ///               level-set (cells by levels)
  ///   device, threads, restart, rtol, atol, norm, max_iterations  as krilu::Solver has them
  /// and what else is set is refused. dilu eliminates cells in the order that FaceLoopOptions::renumber gives them, but
  /// for coloured blocks, which the values of the first factor() decide.
  /// Throws krilu::Error for a name that it does not know or does not have.
  explicit LduSolver(Options options = {}, FaceLoopOptions loops = {});
  ~LduSolver();
  LduSolver(LduSolver&&) noexcept;
  LduSolver& operator=(LduSolver&&) noexcept;

  /// Studies the mesh, which is not needed afterwards. Which cell of a face is the owner is the mesh's affair. Throws
  /// krilu::Error where it is no valid mesh, and where it is too large for the device.
  void analyse(const Mesh& mesh);
  /// The same for a mesh without geometry, by its internal faces.
  void analyse(Index cells, std::span<const Index> owner, std::span<const Index> neighbour);

  /// Takes values of the analysed mesh and forms the preconditioner. Throws krilu::Error for wrong lengths, for NaN or
  /// infinity, for dic where lower and upper differ, and for a zero pivot (naming its cell).
  void factor(const LduView& a);

  /// Solves A x = b from the guess in x, both of length cells(). Not converging is a status of the result; its
  /// `ordering` is the numbering of the cells. Throws krilu::Error for wrong lengths, and for NaN or infinity in b or
  /// x.
  Result solve(std::span<const double> b, std::span<double> x, Monitor* monitor = nullptr);

  /// How often each step ran: updating values repeats no analysis.
  Solver::Counts counts() const;
  Index cells() const;
  Index faces() const;
  std::size_t bytes() const;
  /// What was chosen for the loops, and what it costs. Throws krilu::Error before analyse.
  const FaceLoopReport& loops() const;
  /// What was chosen and why, a line each.
  std::vector<std::string> explanation() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace krilu
