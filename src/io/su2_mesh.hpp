// SPDX-License-Identifier: Apache-2.0
// SU2's native mesh format, in ASCII: keywords with their counts, then elements, points and markers, a line each.
//
// Source: the documentation of SU2, Mesh File (su2code.github.io/docs_v7/Mesh-File), and its reader
// (CSU2ASCIIMeshReaderFVM). Elements are numbered by VTK's types: 3 lines, 5 triangles, 9 quadrilaterals,
// 10 tetrahedra, 12 hexahedra, 13 prisms, 14 pyramids. Numbers that a line has behind what it needs (an index, a third
// coordinate in the plane) are passed over, as SU2 does: points and elements are numbered as they stand. Of a file of
// several zones all are read, one behind another, as parts that no face joins. Keywords that say nothing of cells and
// faces (of periodic boundaries, of free-form deformation) are passed over with the lines that follow them.
// Cost: the text once, and the sorting of all faces by their corners (mesh/elements.hpp).
#pragma once

#include <string>
#include <string_view>

#include "mesh/polyhedra.hpp"

namespace krilu::io {

/// The mesh of a file, plain or gzip. Throws krilu::Error with file and line.
mesh::Polyhedra read_su2(const std::string& path);

/// The same from text in memory; `label` stands for the file's name in messages.
mesh::Polyhedra parse_su2(std::string_view text, const std::string& label);

}  // namespace krilu::io
