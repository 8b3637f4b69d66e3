// SPDX-License-Identifier: GPL-3.0-or-later
// What outlives a solver object, of which OpenFOAM makes one for every solve: the matrix in rows and krilu's solver
// with its analysis. It hangs on the mesh, which drops it when its cells and faces change.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <set>
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
  std::int64_t factored = 0;   // the set of values that the solver has; 0: none, not analysed
  std::set<std::string> told;  // notes of its solves, without their numbers
};

/// A hash of what a plan is made for: the cells on both sides of each face, and those at interfaces, of all ranks. Over
/// ranks it is collective, and the same on all of them, so that all find a plan for it or none does.
std::uint64_t kriluPattern(const lduMesh& mesh);

/// The plans of one mesh, by patterns and the options of their solvers. An overset mesh has two patterns in turn, with
/// the faces of its stencil for what it interpolates and without them, and others whenever the stencil changes, which
/// no change of topology tells of. Where an addressing stands says nothing: the next one may stand in its place.
class kriluPlans : public MeshObject<lduMesh, TopologicalMeshObject, kriluPlans> {
 public:
  TypeName("kriluPlans");
  explicit kriluPlans(const lduMesh& mesh) : MeshObject<lduMesh, TopologicalMeshObject, kriluPlans>(mesh) {}
  /// Of the mesh's registry.
  static const kriluPlans& New(const lduMesh& mesh);
  /// The plan of this pattern and these options; where there is none, one that is empty but for the rows of another of
  /// this pattern. Of each mesh (meshes may share a registry) and set of options, the two patterns that were asked for
  /// last are kept.
  kriluPlan& find(const lduMesh& mesh, std::uint64_t pattern, const std::string& options) const;

 private:
  struct Kept {
    const lduMesh* mesh;
    label comm;
    std::uint64_t pattern;
    std::string options;
    kriluPlan plan;
  };
  mutable std::list<Kept> plans_;  // the last one used in front
};

}  // namespace Foam
