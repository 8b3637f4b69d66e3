// SPDX-License-Identifier: Apache-2.0
// Small meshes of polyhedra, and OpenFOAM files of them in every form that OpenFOAM writes.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "mesh/polyhedra.hpp"

namespace krilu::test {

/// Adds a face at the end.
inline void add_face(mesh::Polyhedra& p, const std::vector<Index>& corners, Index owner, Index neighbour = -1) {
  if (p.offsets.empty()) p.offsets.push_back(0);
  p.corners.insert(p.corners.end(), corners.begin(), corners.end());
  p.offsets.push_back(static_cast<Offset>(p.corners.size()));
  p.owner.push_back(owner);
  if (neighbour >= 0) p.neighbour.push_back(neighbour);
}

/// A box of unit cubes, x fastest, its internal faces in upper triangular order, and a patch a side: left, right (x),
/// front, back (y), bottom, top (z).
inline mesh::Polyhedra box(Index nx, Index ny, Index nz) {
  mesh::Polyhedra p;
  p.cells = nx * ny * nz;
  for (Index k = 0; k <= nz; ++k)
    for (Index j = 0; j <= ny; ++j)
      for (Index i = 0; i <= nx; ++i) p.points.push_back({double(i), double(j), double(k)});
  const auto point = [&](Index i, Index j, Index k) { return i + (nx + 1) * (j + (ny + 1) * k); };
  // The side of cell (i, j, k) along `axis`, the upper or the lower one, wound outwards.
  const auto side = [&](std::array<Index, 3> at, int axis, bool upper) {
    const int u = (axis + 1) % 3, v = (axis + 2) % 3;
    if (upper) ++at[std::size_t(axis)];
    std::vector<Index> corners;
    for (const auto& [du, dv] : {std::pair(0, 0), {1, 0}, {1, 1}, {0, 1}}) {
      std::array<Index, 3> c = at;
      c[std::size_t(u)] += du;
      c[std::size_t(v)] += dv;
      corners.push_back(point(c[0], c[1], c[2]));
    }
    return upper ? corners : std::vector<Index>(corners.rbegin(), corners.rend());
  };
  const std::array<Index, 3> n{nx, ny, nz}, step{1, nx, nx * ny};
  const auto for_cells = [&](auto f) {
    for (Index c = 0; c < p.cells; ++c) f(c, std::array<Index, 3>{c % nx, c / nx % ny, c / (nx * ny)});
  };
  for_cells([&](Index c, const std::array<Index, 3>& at) {
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (at[axis] + 1 < n[axis]) add_face(p, side(at, int(axis), true), c, c + step[axis]);
  });
  const char* const names[] = {"left", "right", "front", "back", "bottom", "top"};
  const auto internal = static_cast<Index>(p.neighbour.size());
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (const bool upper : {false, true}) {
      const Index first = p.faces() - internal;
      for_cells([&](Index c, const std::array<Index, 3>& at) {
        if (at[axis] == (upper ? n[axis] - 1 : 0)) add_face(p, side(at, int(axis), upper), c);
      });
      p.patches.push_back({names[2 * axis + (upper ? 1 : 0)], "patch", first, p.faces() - internal - first});
    }
  return p;
}

/// How files are written.
struct FoamForm {
  bool binary = false;
  int label = 32, scalar = 64;  // bits, in binary
  bool compact = false;         // faces as two lists
  std::string name() const {
    if (!binary) return compact ? "ascii, compact" : "ascii";
    return "binary, label=" + std::to_string(label) + ", scalar=" + std::to_string(scalar) +
           (compact ? ", compact" : "");
  }
};

inline std::string foam_header(const FoamForm& form, const std::string& type, const std::string& object) {
  std::string s =
      "/*--------------------------------*- C++ -*----------------------------------*\\\n"
      "  \\\\      /  F ield         | (a test's own mesh)\n"
      "\\*---------------------------------------------------------------------------*/\n"
      "FoamFile\n{\n    version     2.0;\n    format      ";
  s += form.binary ? "binary;\n" : "ascii;\n";
  if (form.binary)
    s += "    arch        \"LSB;label=" + std::to_string(form.label) + ";scalar=" + std::to_string(form.scalar) +
         "\";\n";
  s += "    class       " + type +
       ";\n    note        \"nPoints: 7; not read {\";\n    location    \"constant/polyMesh\";\n";
  return s + "    object      " + object + ";\n}\n// * * * * * * * * * * * //\n\n";
}

inline std::string foam_number(double v) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, v).ptr);
}

template <class T>
void append_raw(std::string& s, T v) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &v, sizeof(T));
  s.append(bytes, sizeof(T));
}

inline std::string foam_labels(const FoamForm& form, const Index* labels, std::size_t n) {
  std::string s = std::to_string(n) + "\n";
  if (form.binary && n == 0) return s;
  s += form.binary ? "(" : "(\n";
  for (std::size_t i = 0; i < n; ++i) {
    if (!form.binary) {
      s += std::to_string(labels[i]) + "\n";
    } else if (form.label == 32) {
      append_raw(s, labels[i]);
    } else {
      append_raw(s, std::int64_t(labels[i]));
    }
  }
  return s + ")\n";
}

/// The five files, in the order points, faces, owner, neighbour, boundary.
using FoamFiles = std::array<std::string, 5>;
inline constexpr std::array foam_names{"points", "faces", "owner", "neighbour", "boundary"};

inline FoamFiles foam_files(const mesh::Polyhedra& p, const FoamForm& form) {
  const std::string end = "\n\n// ************************************************************************* //\n";
  FoamFiles out;
  out[0] =
      foam_header(form, "vectorField", "points") + std::to_string(p.points.size()) + "\n" + (form.binary ? "(" : "(\n");
  for (const Vector3& v : p.points) {
    if (!form.binary) out[0] += "(" + foam_number(v.x) + " " + foam_number(v.y) + " " + foam_number(v.z) + ")\n";
    for (const double x : {v.x, v.y, v.z}) {
      if (form.binary && form.scalar == 64) append_raw(out[0], x);
      if (form.binary && form.scalar == 32) append_raw(out[0], static_cast<float>(x));
    }
  }
  out[0] += ")" + end;

  out[1] = foam_header(form, form.compact ? "faceCompactList" : "faceList", "faces");
  if (form.compact) {
    out[1] += foam_labels(form, p.offsets.data(), p.offsets.size()) + "\n" +
              foam_labels(form, p.corners.data(), p.corners.size());
  } else {
    out[1] += std::to_string(p.faces()) + "\n(\n";
    for (std::size_t f = 0; f < std::size_t(p.faces()); ++f) {
      const auto n = static_cast<std::size_t>(p.offsets[f + 1] - p.offsets[f]);
      const Index* const corners = p.corners.data() + p.offsets[f];
      if (form.binary || n > 10) {
        out[1] += (form.binary ? "\n" : "") + foam_labels(form, corners, n);
        continue;
      }
      out[1] += std::to_string(n) + "(";
      for (std::size_t i = 0; i < n; ++i) out[1] += (i > 0 ? " " : "") + std::to_string(corners[i]);
      out[1] += ")\n";
    }
    out[1] += ")";
  }
  out[1] += end;
  out[2] = foam_header(form, "labelList", "owner") + foam_labels(form, p.owner.data(), p.owner.size()) + end;
  out[3] =
      foam_header(form, "labelList", "neighbour") + foam_labels(form, p.neighbour.data(), p.neighbour.size()) + end;
  out[4] = foam_header(form, "polyBoundaryMesh", "boundary") + std::to_string(p.patches.size()) + "\n(\n";
  for (const Patch& patch : p.patches) {
    out[4] += "    " + patch.name + "\n    {\n        type            " + patch.type + ";\n        nFaces          " +
              std::to_string(patch.faces) + ";\n        startFace       " +
              std::to_string(patch.first + Index(p.neighbour.size())) + ";\n    }\n";
  }
  out[4] += ")" + end;
  return out;
}

}  // namespace krilu::test
