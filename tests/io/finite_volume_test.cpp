// SPDX-License-Identifier: Apache-2.0
// Finite volumes on meshes: a box of two cells worked out by hand, meshes of all kinds against a second assembly from
// the formulas in long double, row sums, layers, orders, bad and bare meshes, and what is refused.
#include "io/finite_volume.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "krilu/mesh.hpp"
#include "mesh/mesh_checks.hpp"
#include "sparse/csr.hpp"
#include "support/refusal.hpp"
#include "support/support.hpp"

namespace {

using krilu::CsrMatrix;
using krilu::generate;
using krilu::Index;
using krilu::Mesh;
using krilu::Offset;
using krilu::Vector3;
using krilu::io::finite_volume_matrix;
using krilu::io::FiniteVolume;
using krilu::io::parse_finite_volume;
using krilu::test::Dense;
using krilu::test::expect_words;
using krilu::test::refusal;
using krilu::test::to_dense;

FiniteVolume layers_of(Index layers) {
  FiniteVolume problem;
  problem.mesh = "test";
  problem.layers = layers;
  return problem;
}

void expect_dense(const CsrMatrix& a, const Dense& expected) {
  ASSERT_EQ(std::size_t(a.rows), expected.size());
  const Dense found = to_dense(a);
  for (std::size_t r = 0; r < expected.size(); ++r)
    for (std::size_t c = 0; c < expected.size(); ++c)
      EXPECT_NEAR(found[r][c], expected[r][c], 1e-14 * expected[r][r]) << "row " << r << ", column " << c;
}

/// Cubes of side 1/2: D is 1/2 between the two and 1 at the boundary. The centres' box is 1/2 long, so that u . S is
/// 1/8 on the face between them, U is 4, and every flux is 1/2 in magnitude: inwards on xmin, and by u_y = x - 1/2 and
/// u_z = 1/2 - x on ymax and zmin of cell 0 and on ymin and zmax of cell 1.
TEST(FiniteVolume, TwoCellsByHand) {
  expect_dense(generate("gen:fv:mesh:box:2x1x1"), {{0.5 + 5 + 3 * 0.5, -0.5}, {-1, 1 + 5 + 2 * 0.5}});
}

/// Between layers V / h^2 is (1/8) / (1/4).
TEST(FiniteVolume, TwoCellsInThreeLayersByHand) {
  const double b = -0.5;
  expect_dense(generate("gen:fv:mesh:box:2x1x1,3"), {{7.5, -0.5, b, 0, 0, 0},
                                                     {-1, 7.5, 0, b, 0, 0},
                                                     {b, 0, 8, -0.5, b, 0},
                                                     {0, b, -1, 8, 0, b},
                                                     {0, 0, b, 0, 7.5, -0.5},
                                                     {0, 0, 0, b, -1, 7.5}});
}

using Real = long double;
struct Long {
  Real x, y, z;
  explicit Long(const Vector3& v) : x(v.x), y(v.y), z(v.z) {}
  Long(Real a, Real b, Real c) : x(a), y(b), z(c) {}
};
Real dot(const Long& a, const Long& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Long minus(const Long& a, const Long& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }

/// Face by face, each adding to the rows of its cells.
Dense reference(const Mesh& m, std::size_t layers) {
  const auto n = std::size_t(m.cells);
  std::array<Real, 3> low{1e300L, 1e300L, 1e300L}, high{-1e300L, -1e300L, -1e300L};
  for (const Vector3& c : m.centre) {
    const std::array<Real, 3> x{c.x, c.y, c.z};
    for (std::size_t d = 0; d < 3; ++d) {
      low[d] = std::min(low[d], x[d]);
      high[d] = std::max(high[d], x[d]);
    }
  }
  const Real length = std::max({high[0] - low[0], high[1] - low[1], high[2] - low[2]});
  const auto flux = [&](const Vector3& at, const Vector3& area) {
    const Real x = (at.x - low[0]) / length, y = (at.y - low[1]) / length;
    return dot({0.5L + 4 * y * (1 - y), x - 0.5L, 0.5L - x}, Long(area));
  };
  const auto diffusion = [](const Vector3& from, const Vector3& to, const Vector3& s) {
    const Long d = minus(Long(to), Long(from)), area(s);
    const Real size = std::sqrt(dot(area, area));
    return size / std::max(dot(d, area) / size, 0.05L * std::sqrt(dot(d, d)));
  };
  const auto owner_of = [&](std::size_t f) { return std::size_t(m.owner[f]); };
  const auto neighbour_of = [&](std::size_t f) { return std::size_t(m.neighbour[f]); };
  Real peclet = 0;
  for (std::size_t f = 0; f < m.owner.size(); ++f)
    peclet += std::abs(flux(m.face_centre[f], m.area[f])) /
              diffusion(m.centre[owner_of(f)], m.centre[neighbour_of(f)], m.area[f]) / Real(m.owner.size());
  std::vector<char> empty(m.boundary.size(), 0);
  std::vector<Real> square(n, 0);
  bool plane = false;
  for (const krilu::Patch& p : m.patches) {
    if (p.type != "empty") continue;
    plane = true;
    for (auto b = std::size_t(p.first); b < std::size_t(p.first + p.faces); ++b) {
      empty[b] = 1;
      const Long area(m.boundary_area[b]);
      square[std::size_t(m.boundary[b])] += std::sqrt(dot(area, area)) / 2;
    }
  }
  Real mean = 0;
  for (std::size_t c = 0; c < n; ++c) mean += (plane ? square[c] : std::pow(Real(m.volume[c]), 2 / 3.0L)) / Real(n);
  std::vector<std::vector<Real>> a(n * layers, std::vector<Real>(n * layers, 0));
  for (std::size_t l = 0; l < layers; ++l) {
    const std::size_t at = n * l;
    const auto couple = [&](std::size_t r, std::size_t c, Real magnitude) {
      a[r][c] -= magnitude;
      a[r][r] += magnitude;
    };
    for (std::size_t f = 0; f < m.owner.size(); ++f) {
      const std::size_t o = owner_of(f), p = neighbour_of(f);
      const Real d = diffusion(m.centre[o], m.centre[p], m.area[f]), u = flux(m.face_centre[f], m.area[f]) / peclet;
      couple(at + o, at + p, d + std::max(-u, 0.0L));
      couple(at + p, at + o, d + std::max(u, 0.0L));
    }
    for (std::size_t b = 0; b < m.boundary.size(); ++b) {
      if (empty[b]) continue;
      const auto c = std::size_t(m.boundary[b]);
      a[at + c][at + c] += diffusion(m.centre[c], m.boundary_centre[b], m.boundary_area[b]) +
                           std::max(-flux(m.boundary_centre[b], m.boundary_area[b]) / peclet, 0.0L);
    }
    for (std::size_t c = 0; c < n && l > 0; ++c) {
      couple(at + c, at + c - n, m.volume[c] / mean);
      couple(at + c - n, at + c, m.volume[c] / mean);
    }
  }
  Dense out(n * layers);
  for (std::size_t r = 0; r < out.size(); ++r) out[r].assign(a[r].begin(), a[r].end());
  return out;
}

/// Columns ascend, off-diagonals are not positive, each row's diagonal is at least the sum of their magnitudes, some
/// row's is more, and (i, j) is there where (j, i) is.
void expect_m_matrix(const CsrMatrix& a) {
  EXPECT_NO_THROW(krilu::require_valid(a));
  EXPECT_TRUE(krilu::sparse::symmetry(a).pattern);
  bool given = false;
  for (Index r = 0; r < a.rows; ++r) {
    double sum = 0, diagonal = 0;
    for (Offset e = a.offsets[std::size_t(r)]; e < a.offsets[std::size_t(r) + 1]; ++e) {
      const double v = a.values[std::size_t(e)];
      (a.columns[std::size_t(e)] == r ? diagonal : sum) += v;
      if (a.columns[std::size_t(e)] != r) {
        ASSERT_LE(v, 0) << "row " << r;
      }
    }
    ASSERT_GE(diagonal * (1 + 1e-14), -sum) << "row " << r;
    ASSERT_GT(diagonal, 0) << "row " << r;
    given = given || diagonal > -1.01 * sum;
  }
  EXPECT_TRUE(given);
}

TEST(FiniteVolume, AgainstASecondAssembly) {
  for (const std::string mesh : {"mesh:box:4x3x2", "mesh:tetrahedra:2x3x2", "mesh:triangles:5x4", "mesh:box:1x1x5",
                                 "mesh:tetrahedra:3x2x2:random:3"})
    for (const Index layers : {1, 3}) {
      SCOPED_TRACE(mesh + ", layers: " + std::to_string(layers));
      const CsrMatrix a = generate("gen:fv:" + mesh + "," + std::to_string(layers));
      expect_dense(a, reference(krilu::generate_mesh(mesh), std::size_t(layers)));
      expect_m_matrix(a);
      EXPECT_FALSE(krilu::sparse::symmetry(a).values);
    }
}

/// The rows of cells that touch no boundary but empty patches sum to nothing; layers end without values.
TEST(FiniteVolume, RowSumsAreTheBoundary) {
  const std::string name = "mesh:triangles:8x7";
  const Mesh m = krilu::generate_mesh(name);
  std::vector<char> touches(std::size_t(m.cells), 0);
  for (const krilu::Patch& p : m.patches)
    for (Index b = p.first; b < p.first + p.faces && p.type != "empty"; ++b)
      touches[std::size_t(m.boundary[std::size_t(b)])] = 1;
  const CsrMatrix a = generate("gen:fv:" + name + ",4");
  for (std::size_t r = 0; r < std::size_t(a.rows); ++r) {
    double sum = 0, most = 0;
    for (auto e = std::size_t(a.offsets[r]); e < std::size_t(a.offsets[r + 1]); ++e) {
      sum += a.values[e];
      most = std::max(most, a.values[e]);
    }
    if (touches[r % std::size_t(m.cells)]) {
      EXPECT_GT(sum, 0.1) << "row " << r;
    } else {
      EXPECT_NEAR(sum, 0, 1e-14 * most) << "row " << r;
    }
  }
}

TEST(FiniteVolume, OrdersArePermutationsOfTheNatural) {
  const Dense natural = to_dense(generate("gen:fv:mesh:tetrahedra:4x3x2,2"));
  for (const std::string order : {"random", "random:7", "shuffled", "shuffled:7"}) {
    SCOPED_TRACE(order);
    const FiniteVolume problem = parse_finite_volume("mesh:tetrahedra:4x3x2,2," + order);
    const krilu::schedule::Order cells = problem.order.of(Index(natural.size()));
    std::vector<Index> sorted(cells.begin(), cells.end());
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t k = 0; k < sorted.size(); ++k) ASSERT_EQ(sorted[k], Index(k));
    EXPECT_NE(cells, sorted);
    const CsrMatrix a = generate("gen:fv:mesh:tetrahedra:4x3x2,2," + order);
    expect_m_matrix(a);
    const Dense found = to_dense(a);
    for (std::size_t r = 0; r < natural.size(); ++r)
      for (std::size_t c = 0; c < natural.size(); ++c)
        ASSERT_EQ(found[r][c], natural[std::size_t(cells[r])][std::size_t(cells[c])]) << "row " << r << ", " << c;
  }
  EXPECT_EQ(natural, to_dense(generate("gen:fv:mesh:tetrahedra:4x3x2,2,natural")));
}

/// The order is that of generated meshes.
TEST(FiniteVolume, OrdersAreThoseOfMeshes) {
  for (const std::string order : {"random:3", "shuffled:3"})
    expect_dense(generate("gen:fv:mesh:box:9x7x5,1," + order), to_dense(generate("gen:fv:mesh:box:9x7x5:" + order)));
}

TEST(FiniteVolume, SameBitsOnAnyNumberOfThreads) {
  const auto made = [](int threads) {
    const krilu::test::Threads set(threads);
    return generate("gen:fv:mesh:tetrahedra:12x11x10,2,random");
  };
  const CsrMatrix one = made(1);
  for (const int threads : {2, 3, 7}) {
    const CsrMatrix a = made(threads);
    EXPECT_TRUE(krilu::test::same_bits(a.offsets, one.offsets) && krilu::test::same_bits(a.columns, one.columns) &&
                krilu::test::same_bits(a.values, one.values))
        << threads;
  }
}

/// Two cells that share a face of area 1, whose centres stand the wrong way round.
Mesh folded() {
  Mesh m;
  m.cells = 2;
  m.owner = {0};
  m.neighbour = {1};
  m.centre = {{1, 0, 0}, {0, 0, 0}};
  m.volume = {1, 1};
  m.face_centre = {{0.5, 0, 0}};
  m.area = {{1, 0, 0}};
  m.boundary = {0};
  m.boundary_centre = {{1, -1, 0}};
  m.boundary_area = {{0, -1, 0}};
  m.patches = {{"all", "wall", 0, 1}};
  return m;
}

/// d . n is -1 and becomes 0.05: D is 20. u . S is 1/2, so U is 40 and the flux 20. At the boundary D is 1, and u_y is
/// 1/2 there: 20 come in.
TEST(FiniteVolume, BadFacesAreBounded) {
  expect_dense(finite_volume_matrix(folded(), layers_of(1)), {{20 + 1 + 20, -20}, {-40, 40}});
}

TEST(FiniteVolume, GraphsHaveUnitCoefficients) {
  Mesh m;
  m.cells = 3;
  m.owner = {0, 0, 1, 0};  // two faces between cells 0 and 2
  m.neighbour = {2, 1, 2, 2};
  m.boundary = {1, 1, 2};
  m.patches = {{"wall", "wall", 0, 2}, {"front", "empty", 2, 1}};
  const CsrMatrix one = finite_volume_matrix(m, layers_of(1));
  EXPECT_EQ(one.nnz(), 9);
  expect_dense(one, {{3, -1, -2}, {-1, 4, -1}, {-2, -1, 3}});
  const CsrMatrix two = finite_volume_matrix(m, layers_of(2));
  expect_dense(two, {{4, -1, -2, -1, 0, 0},
                     {-1, 5, -1, 0, -1, 0},
                     {-2, -1, 4, 0, 0, -1},
                     {-1, 0, 0, 4, -1, -2},
                     {0, -1, 0, -1, 5, -1},
                     {0, 0, -1, -2, -1, 4}});
}

TEST(FiniteVolume, WhatIsRefused) {
  const auto refused = [](const std::string& text, const std::string& why) {
    expect_words(refusal([&] { generate("gen:fv" + text); }), {"gen:fv", why});
  };
  for (const char* text : {"", ":", ":,2"}) refused(text, "needs a mesh. It is gen:fv:MESH[,LAYERS[,ORDER]]");
  refused(":mesh:box:2x2x2,1,random,1", "has more than a mesh, layers and an order");
  for (const char* layers : {"", "0", "-1", "two", "2147483648", "2 "})
    refused(std::string(":mesh:box:2x2x2,") + layers, "LAYERS is a whole number from 1 to 2147483647");
  refused(":mesh:box:2x2x2,1,", "unknown order");
  refused(":mesh:box:2x2x2,1,rnadom", "unknown order (did you mean 'random'?)");
  refused(":mesh:box:2x2x2,1,natural:1", "the natural order has no seed");
  refused(":mesh:box:2x2x2,1,random:x", "SEED is a whole number from 0");
  refused(":mesh:box:2x2x2,1,random:1:2", "SEED is a whole number from 0");
  refused(":mesh:box:10x10x10,2147484", "2147484 layers of 1000 cells are 2^31 rows or more");
  refused(":mesh:box:10x10x10,1000000", "1000000 layers of 1000 cells give 2^31 nonzeros or more");
  expect_words(refusal([] { generate("gen:fv:mesh:bxo:2x2x2"); }), {"'mesh:bxo:2x2x2'", "did you mean 'box'?"});
  expect_words(refusal([] { generate("gen:fv:no/such.su2"); }), {"could not read no/such.su2"});
  expect_words(refusal([] { generate("gen:fv:no/such/case"); }), {"could not read no/such/case"});
  expect_words(refusal([] { generate("gen:nothing:1x1"); }), {"gen:fv:MESH[,LAYERS[,ORDER]]", ", fv"});

  Mesh m = folded();
  m.patches[0].type = "empty";
  expect_words(refusal([&] { finite_volume_matrix(m, layers_of(1)); }), {"gen:fv:test", "would be singular"});
  m = folded();
  m.centre[1] = m.centre[0];
  expect_words(refusal([&] { finite_volume_matrix(m, layers_of(1)); }), {"cell 0", "not finite"});
  expect_words(refusal([] { finite_volume_matrix({}, layers_of(1)); }), {"no cells"});
}

TEST(FiniteVolume, RealMeshes) {
  int read = 0;
  for (const char* name : {"mesh_NACA0012_lam_hybrid_v2", "mesh_RAE2822_turb", "mesh_brick_tets_ffd"}) {
    SCOPED_TRACE(name);
    const auto path = krilu::test::real_matrix(std::string("meshes/") + name + ".su2.gz");
    if (path.empty()) continue;
    ++read;
    const Mesh m = krilu::read_mesh(path.string());
    const CsrMatrix a = generate("gen:fv:" + path.string() + ",3,shuffled");
    EXPECT_EQ(a.rows, 3 * m.cells);
    EXPECT_EQ(a.nnz(), 3 * (m.cells + 2 * m.faces()) + 4 * m.cells);
    expect_m_matrix(a);
  }
  if (read == 0) GTEST_SKIP() << "real meshes meshes/*.su2.gz are not at hand (KRILU_MATRICES)";
}

}  // namespace
