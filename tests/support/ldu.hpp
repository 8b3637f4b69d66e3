// SPDX-License-Identifier: Apache-2.0
// Matrices in face addressing as a finite volume code makes them of a mesh, and what they are in other formats.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "krilu/mesh.hpp"
#include "sparse/ldu.hpp"

namespace krilu::test {

struct Transport {
  double diffusivity = 1;
  Vector3 velocity{0, 0, 0};
  double relaxation = 1;  // the diagonal is divided by it (Patankar)
};

/// Convection (upwind) and diffusion with fixed values on the boundary. Symmetric, `lower` empty, where the velocity
/// is 0.
inline sparse::Ldu transport_matrix(const Mesh& mesh, const Transport& t) {
  sparse::Ldu a;
  a.cells = mesh.cells;
  a.owner = mesh.owner;
  a.neighbour = mesh.neighbour;
  a.diagonal.assign(std::size_t(mesh.cells), 0.0);
  a.upper.resize(mesh.owner.size());
  a.lower.resize(mesh.owner.size());
  const auto conductance = [&](const Vector3& area, const Vector3& d) {
    return t.diffusivity * dot(area, area) / std::abs(dot(area, d));
  };
  for (std::size_t f = 0; f < mesh.owner.size(); ++f) {
    const auto o = std::size_t(mesh.owner[f]), n = std::size_t(mesh.neighbour[f]);
    const double D = conductance(mesh.area[f], mesh.centre[n] - mesh.centre[o]), flux = dot(t.velocity, mesh.area[f]);
    a.upper[f] = -D + std::min(flux, 0.0);
    a.lower[f] = -D - std::max(flux, 0.0);
    a.diagonal[o] += D + std::max(flux, 0.0);
    a.diagonal[n] += D - std::min(flux, 0.0);
  }
  for (std::size_t f = 0; f < mesh.boundary.size(); ++f) {
    const auto c = std::size_t(mesh.boundary[f]);
    a.diagonal[c] += conductance(mesh.boundary_area[f], mesh.boundary_centre[f] - mesh.centre[c]) +
                     std::max(dot(t.velocity, mesh.boundary_area[f]), 0.0);
  }
  for (double& d : a.diagonal) d /= t.relaxation;
  if (dot(t.velocity, t.velocity) == 0) a.lower.clear();
  return a;
}

/// The same matrix with the cells of every third face exchanged, as meshes of other codes have them.
inline void turn_some_faces(Mesh& mesh, sparse::Ldu& a) {
  for (std::size_t f = 0; f < mesh.owner.size(); f += 3) {
    std::swap(mesh.owner[f], mesh.neighbour[f]);
    std::swap(a.owner[f], a.neighbour[f]);
    if (!mesh.area.empty()) mesh.area[f] = -mesh.area[f];
    if (!a.symmetric()) std::swap(a.upper[f], a.lower[f]);
  }
}

/// The matrix with its cells in another order: place i is cell order[i]. Faces in upper triangular order, those
/// between the same cells in the sequence of face_order.
inline sparse::Ldu in_order(const sparse::Ldu& a, std::span<const Index> order, std::span<const Index> face_order) {
  std::vector<Index> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[std::size_t(order[i])] = Index(i);
  struct OneFace {
    Index l, u;
    double lower, upper;
  };
  std::vector<OneFace> faces;
  for (const Index f : face_order) {
    const auto k = std::size_t(f);
    OneFace one{place[std::size_t(a.owner[k])], place[std::size_t(a.neighbour[k])], a.lower_or_upper()[k], a.upper[k]};
    if (one.l > one.u) {
      std::swap(one.l, one.u);
      std::swap(one.lower, one.upper);
    }
    faces.push_back(one);
  }
  std::stable_sort(faces.begin(), faces.end(),
                   [](const OneFace& p, const OneFace& q) { return std::pair(p.l, p.u) < std::pair(q.l, q.u); });
  sparse::Ldu out;
  out.cells = a.cells;
  for (const Index c : order) out.diagonal.push_back(a.diagonal[std::size_t(c)]);
  for (const OneFace& f : faces) {
    out.owner.push_back(f.l);
    out.neighbour.push_back(f.u);
    out.lower.push_back(f.lower);
    out.upper.push_back(f.upper);
  }
  return out;
}

/// DILU as OpenFOAM's DILUPreconditioner has it: faces in the sequence in which they stand.
inline std::vector<double> reference_reciprocals(const sparse::Ldu& a) {
  std::vector<double> rD(a.diagonal.begin(), a.diagonal.end());
  for (std::size_t f = 0; f < a.owner.size(); ++f)
    rD[std::size_t(a.neighbour[f])] -= a.upper[f] * a.lower_or_upper()[f] / rD[std::size_t(a.owner[f])];
  for (double& d : rD) d = 1.0 / d;
  return rD;
}
inline std::vector<double> reference_application(const sparse::Ldu& a, const std::vector<double>& rD,
                                                 const std::vector<double>& r) {
  std::vector<double> w(r.size());
  for (std::size_t c = 0; c < r.size(); ++c) w[c] = rD[c] * r[c];
  for (std::size_t f = 0; f < a.owner.size(); ++f) {
    const auto l = std::size_t(a.owner[f]), u = std::size_t(a.neighbour[f]);
    w[u] -= rD[u] * a.lower_or_upper()[f] * w[l];
  }
  for (std::size_t f = a.owner.size(); f-- > 0;) {
    const auto l = std::size_t(a.owner[f]), u = std::size_t(a.neighbour[f]);
    w[l] -= rD[l] * a.upper[f] * w[u];
  }
  return w;
}

/// Meshes small enough for slow references, whose cells stand in different orders.
inline std::vector<std::string> small_mesh_names() {
  return {"mesh:box:13x11x9", "mesh:box:12x10x8:random:3", "mesh:tetrahedra:6x5x4", "mesh:tetrahedra:5x5x5:shuffled:2",
          "mesh:triangles:30x20:random:5"};
}

}  // namespace krilu::test
