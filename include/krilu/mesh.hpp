// SPDX-License-Identifier: Apache-2.0
// Unstructured meshes as OpenFOAM has them: cells, and faces between an owner and a neighbour. Everything is 0-based.
// Internal faces, which join two cells, are numbered apart from boundary faces, which belong to one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "krilu/buffer.hpp"
#include "krilu/types.hpp"
#include "krilu/vector3.hpp"

namespace krilu {

/// A named range of boundary faces.
struct Patch {
  std::string name, type;
  Index first = 0, faces = 0;  // boundary faces first .. first + faces - 1
};

struct Mesh {
  Index cells = 0;
  // Internal faces. Which of the two cells is the owner is the mesh's own affair; OpenFOAM's meshes and the generated
  // ones have owner < neighbour, and faces sorted by owner and then neighbour ("upper triangular order").
  Buffer<Index> owner, neighbour;
  Buffer<Index> boundary;  // of each boundary face: its cell
  std::vector<Patch> patches;

  // Geometry; all of it, or none where only the graph is known.
  Buffer<Vector3> centre;           // of each cell, m
  Buffer<double> volume;            // of each cell, m^3
  Buffer<Vector3> face_centre;      // of each internal face, m
  Buffer<Vector3> area;             // of each internal face, m^2, from owner to neighbour
  Buffer<Vector3> boundary_centre;  // of each boundary face, m
  Buffer<Vector3> boundary_area;    // of each boundary face, m^2, outwards

  Index faces() const { return static_cast<Index>(owner.size()); }
  bool has_geometry() const { return !volume.empty() || cells == 0; }
  std::size_t bytes() const;
};

/// Throws krilu::Error, naming face or cell, unless arrays have the lengths that belong together, both cells of a face
/// exist and differ, and geometry is finite with positive volumes. Not `of_faces`: the geometry of faces, half a
/// gigabyte at 10 million, is left to who reads it.
void require_valid(const Mesh& mesh, bool of_faces = true);

/// Reads an OpenFOAM mesh: `path` is a case, its constant/ or the polyMesh folder itself, with points, faces, owner,
/// neighbour and boundary, each ASCII or binary, plain or gzip (NAME.gz). Cell and face numbers stay as they are in the
/// files; the geometry is computed as OpenFOAM does (face pyramids). Throws krilu::Error with file, and line or byte,
/// for anything that is no such mesh: an owner out of range, a neighbour below its owner, wrong counts, an end too
/// soon.
Mesh read_poly_mesh(const std::string& path);

/// Reads an SU2 mesh, NAME.su2 or NAME.su2.gz: triangles and quadrilaterals, which become one layer of prisms of unit
/// thickness, or tetrahedra, hexahedra, prisms and pyramids, turned either way. Cells keep their numbers, those of
/// several zones one behind another; faces are in upper triangular order. Each marker is a patch, and boundary faces
/// that are in none make up the patch `unmarked`; a layer has the patches `back` and `front`, of type `empty`. Throws
/// krilu::Error with file and line for anything that is no such mesh.
Mesh read_su2_mesh(const std::string& path);
/// Whether a path ends as those of SU2 meshes do.
bool is_su2_mesh(std::string_view path);

/// A generated mesh:
///   mesh:box:NXxNYxNZ[:ORDER]         hexahedra of side 1/max(NX,NY,NZ)
///   mesh:tetrahedra:NXxNYxNZ[:ORDER]  NX NY NZ cubes of six tetrahedra each, their corners moved at random
///   mesh:triangles:NXxNY[:ORDER]      2 NX NY triangles of unit thickness, their corners moved at random
/// ORDER is how cells are numbered: natural (the default), random[:SEED], or shuffled[:SEED], which exchanges runs of
/// 64 cells, as a mesh has it that several processes wrote. Throws krilu::Error with the list of generators where the
/// text names none of them, and where there would be 2^31 faces.
Mesh generate_mesh(const std::string& text);
bool is_mesh_generator(std::string_view text);

/// generate_mesh, read_su2_mesh or read_poly_mesh, by what the text is.
Mesh read_mesh(const std::string& path_or_generator);

}  // namespace krilu
