// SPDX-License-Identifier: GPL-3.0-or-later
// What outlives a solver object, of which OpenFOAM makes one for every solve: the matrix in rows and krilu's solver
// with its analysis. It hangs on the mesh, which drops it when its cells and faces change.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "MeshObject.H"
#include "coupling.hpp"
#include "krilu/solver.hpp"
#include "lduMatrix.H"

namespace Foam {

/// An LDU matrix in CSR: the places of its values are found once, then filled.
class kriluRows {
 public:
  /// Throws krilu::Error where there are 2^31 entries or more.
  explicit kriluRows(const lduAddressing& addressing);
  /// Takes the values. Returns the number of this set of values, another than before where some value changed.
  std::int64_t fill(const lduMatrix& matrix);
  krilu::CsrView view() const { return matrix_.view(); }

 private:
  krilu::CsrMatrix matrix_;
  krilu::Buffer<krilu::Offset> diagonal_, upper_, lower_;  // where each value goes
  bool repeated_ = false;                                  // some cells share two faces, whose values are added
  std::int64_t version_ = 0;
};

struct kriluPlan {
  std::shared_ptr<kriluRows> rows;
  std::shared_ptr<kriluCoupling> coupling;  // null where the matrix is all of the system
  std::unique_ptr<krilu::Solver> solver;
  std::unique_ptr<krilu::Solver> counted;  // of as many iterations as `count`, whatever the residual
  int count = 0;
  std::int64_t factored = 0, counted_factored = 0;  // sets of values that the solvers have; 0: none, not analysed
};

/// The plans of one mesh, by the options of their solvers.
class kriluPlans : public MeshObject<lduMesh, TopologicalMeshObject, kriluPlans> {
 public:
  TypeName("kriluPlans");
  explicit kriluPlans(const lduMesh& mesh) : MeshObject<lduMesh, TopologicalMeshObject, kriluPlans>(mesh) {}
  /// Of the mesh's registry.
  static const kriluPlans& New(const lduMesh& mesh);
  /// Of this addressing: meshes may share a registry.
  kriluPlan& find(const lduMesh& mesh, const std::string& key) const;

 private:
  mutable std::map<std::string, kriluPlan> plans_;
};

}  // namespace Foam
