// SPDX-License-Identifier: Apache-2.0
// OpenFOAM's mesh folder, polyMesh: points, faces, owner, neighbour and boundary. What each may look like is said in
// foam_file.hpp; here they are found, and held against each other.
#pragma once

#include <string>

#include "mesh/polyhedra.hpp"

namespace krilu::io {

/// The mesh of a case, of its constant/ or of the polyMesh folder itself. Every corner, owner and neighbour exists,
/// owners are below neighbours, and patches cover the boundary faces exactly once. threads 0: all. Throws krilu::Error
/// with file, and line or byte, or with the folder that was looked in.
mesh::Polyhedra read_polyhedra(const std::string& path, int threads = 0);

}  // namespace krilu::io
