// SPDX-License-Identifier: Apache-2.0
// What holds for every mesh: closed cells, volumes that their faces enclose, OpenFOAM's sequence of faces. And whether
// two meshes are the same bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "krilu/mesh.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace krilu::test {

inline double length(const Vector3& v) { return std::sqrt(dot(v, v)); }

inline void expect_near(const Vector3& a, const Vector3& b, double tolerance) {
  EXPECT_LE(length(a - b), tolerance) << "(" << a.x << " " << a.y << " " << a.z << ") and (" << b.x << " " << b.y << " "
                                      << b.z << ")";
}

/// f(cell, face centre, area outwards) for each face of each cell, those of the boundary included.
template <class F>
void for_sides(const Mesh& m, F f) {
  for (std::size_t k = 0; k < m.owner.size(); ++k) {
    f(m.owner[k], m.face_centre[k], m.area[k]);
    f(m.neighbour[k], m.face_centre[k], -m.area[k]);
  }
  for (std::size_t k = 0; k < m.boundary.size(); ++k) f(m.boundary[k], m.boundary_centre[k], m.boundary_area[k]);
}

/// The areas of each cell's faces add up to nothing, each face is outside of the cell's centre, and the volume is a
/// third of the sum of area times centre (Gauss).
inline void expect_closed_cells(const Mesh& m) {
  const auto n = std::size_t(m.cells);
  std::vector<Vector3> sum(n, Vector3{0, 0, 0});
  std::vector<double> volume(n, 0.0), size(n, 0.0);
  for_sides(m, [&](Index cell, const Vector3& centre, const Vector3& area) {
    const auto c = std::size_t(cell);
    sum[c] += area;
    size[c] += length(area);
    volume[c] += dot(area, centre - m.centre[c]) / 3;
    EXPECT_GT(dot(area, centre - m.centre[c]), 0) << "cell " << cell;
  });
  for (std::size_t c = 0; c < n; ++c) {
    ASSERT_LE(length(sum[c]), 1e-13 * size[c]) << "cell " << c;
    ASSERT_NEAR(volume[c], m.volume[c], 1e-12 * m.volume[c]) << "cell " << c;
  }
}

inline void expect_upper_triangular_order(const Mesh& m) {
  for (std::size_t f = 0; f < m.owner.size(); ++f) {
    ASSERT_LT(m.owner[f], m.neighbour[f]) << "face " << f;
    if (f > 0) {
      ASSERT_LE(std::pair(m.owner[f - 1], m.neighbour[f - 1]), std::pair(m.owner[f], m.neighbour[f])) << "face " << f;
    }
  }
}

inline std::vector<int> faces_of_cells(const Mesh& m) {
  std::vector<int> count(std::size_t(m.cells), 0);
  for (const auto* cells : {&m.owner, &m.neighbour, &m.boundary})
    for (Index c : *cells) ++count[std::size_t(c)];
  return count;
}

template <class T>
bool same_bits(const Buffer<T>& a, const Buffer<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
inline bool same_bits(const Mesh& a, const Mesh& b) {
  if (a.patches.size() != b.patches.size()) return false;
  for (std::size_t p = 0; p < a.patches.size(); ++p) {
    const Patch &x = a.patches[p], &y = b.patches[p];
    if (x.name != y.name || x.type != y.type || x.first != y.first || x.faces != y.faces) return false;
  }
  return a.cells == b.cells && same_bits(a.owner, b.owner) && same_bits(a.neighbour, b.neighbour) &&
         same_bits(a.boundary, b.boundary) && same_bits(a.centre, b.centre) && same_bits(a.volume, b.volume) &&
         same_bits(a.face_centre, b.face_centre) && same_bits(a.area, b.area) &&
         same_bits(a.boundary_centre, b.boundary_centre) && same_bits(a.boundary_area, b.boundary_area);
}

/// The number of threads of exec::Host() while this lives.
class Threads {
 public:
#if defined(_OPENMP)
  explicit Threads(int threads) { omp_set_num_threads(threads); }
  ~Threads() { omp_set_num_threads(before_); }
#else
  explicit Threads(int) {}
#endif
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
#if defined(_OPENMP)
  int before_ = omp_get_max_threads();
#endif
};

}  // namespace krilu::test
