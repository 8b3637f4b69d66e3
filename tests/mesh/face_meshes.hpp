// SPDX-License-Identifier: Apache-2.0
// Meshes that face loops have trouble with, fields on them, and what the operators of finite volumes should give:
// plain loops over the mesh. Whole fields make every sum exact, so that no order of additions is excused; for real ones
// the plain loops also say how large the terms of a sum are together, by which rounding is measured.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "krilu/face_operators.hpp"
#include "krilu/mesh.hpp"
#include "support/refusal.hpp"
#include "support/support.hpp"

namespace krilu::test {

struct NamedMesh {
  std::string name;
  Mesh mesh;
};

/// A graph without geometry; faces as pairs of owner and neighbour.
inline Mesh graph(Index cells, const std::vector<std::pair<Index, Index>>& faces,
                  const std::vector<Index>& boundary = {}) {
  Mesh m;
  m.cells = cells;
  for (const auto& [o, n] : faces) {
    m.owner.push_back(o);
    m.neighbour.push_back(n);
  }
  m.boundary.assign(boundary.begin(), boundary.end());
  return m;
}

/// Every second face turned round, or all of them where every = 1: owners above neighbours.
inline Mesh turned(Mesh m, std::size_t every) {
  for (std::size_t f = 0; f < m.owner.size(); f += every) {
    std::swap(m.owner[f], m.neighbour[f]);
    if (!m.area.empty()) m.area[f] = -m.area[f];
  }
  return m;
}

/// The mesh with its faces in another sequence.
inline Mesh faces_shuffled(const Mesh& m, std::uint64_t seed) {
  const std::vector<Index> order = shuffled_order(Index(m.owner.size()), seed);
  Mesh out = m;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto from = std::size_t(order[k]);
    out.owner[k] = m.owner[from];
    out.neighbour[k] = m.neighbour[from];
    if (m.area.empty()) continue;
    out.area[k] = m.area[from];
    out.face_centre[k] = m.face_centre[from];
  }
  return out;
}

/// `hub` has faces with all others, which own them or not in turn; the others are a chain besides.
inline Mesh star(Index cells, Index hub) {
  std::vector<std::pair<Index, Index>> faces;
  for (Index c = 0; c < cells; ++c) {
    if (c != hub) faces.push_back(c % 3 == 0 ? std::pair(c, hub) : std::pair(hub, c));
    if (c + 1 < cells && c != hub && c + 1 != hub) faces.emplace_back(c, c + 1);
  }
  return graph(cells, faces, {hub, 0, hub, cells - 1, hub});
}

/// Cell 0 owns faces with all others, and none of these owns one with a cell before it.
inline Mesh fan(Index cells) {
  std::vector<std::pair<Index, Index>> faces;
  for (Index c = 1; c < cells; ++c) faces.emplace_back(0, c);
  for (Index c = 1; c + 1 < cells; ++c) faces.emplace_back(c, c + 1);
  return graph(cells, faces, {0, cells - 1});
}

/// Random pairs of cells: no locality at all, now and then several faces between the same two cells.
inline Mesh random_pairs(Index cells, std::size_t faces, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_int_distribution<Index> cell(0, cells - 1);
  std::vector<std::pair<Index, Index>> pairs;
  while (pairs.size() < faces) {
    const Index o = cell(engine), n = cell(engine);
    for (int times = o % 5 == 1 ? 3 : 1; o != n && times > 0; --times)
      pairs.push_back(times == 2 ? std::pair(n, o) : std::pair(o, n));
  }
  std::vector<Index> boundary;
  for (Index b = 0; b < cells; ++b) boundary.push_back(cell(engine));
  return graph(cells, pairs, boundary);
}

/// Two boxes side by side that no face joins, and cells that have no faces between and after them.
inline Mesh apart() {
  const Mesh a = generate_mesh("mesh:box:5x4x3"), b = generate_mesh("mesh:triangles:4x5");
  std::vector<std::pair<Index, Index>> faces;
  const Index second = a.cells + 3;
  for (std::size_t f = 0; f < a.owner.size(); ++f) faces.emplace_back(a.owner[f], a.neighbour[f]);
  for (std::size_t f = 0; f < b.owner.size(); ++f) faces.emplace_back(second + b.owner[f], second + b.neighbour[f]);
  return graph(second + b.cells + 40, faces, {a.cells, second, second + b.cells});
}

/// Small ones: every strategy, renumbering and block size is tried on each.
inline std::vector<NamedMesh> small_meshes() {
  std::vector<NamedMesh> all;
  for (const char* text :
       {"mesh:box:7x6x5", "mesh:box:7x6x5:random", "mesh:box:12x11x1:shuffled", "mesh:tetrahedra:4x3x3",
        "mesh:tetrahedra:4x3x3:random:7", "mesh:triangles:9x8", "mesh:triangles:9x8:random"})
    all.push_back({text, generate_mesh(text)});
  all.push_back({"no cells", Mesh{}});
  all.push_back({"one cell", generate_mesh("mesh:box:1x1x1")});
  all.push_back({"one face", generate_mesh("mesh:box:2x1x1")});
  all.push_back({"one face, owner above", graph(2, {{1, 0}})});
  all.push_back({"cells without faces", graph(70, {}, {3, 3, 69})});
  all.push_back({"cells without faces and one face", graph(70, {{69, 2}})});
  all.push_back({"two faces between two cells", graph(2, {{0, 1}, {0, 1}})});
  all.push_back({"two faces between two cells, both ways", graph(3, {{0, 1}, {1, 0}, {2, 1}}, {2})});
  all.push_back({"twenty faces between two cells", graph(5, std::vector<std::pair<Index, Index>>(20, {4, 0}))});
  all.push_back({"parts apart", apart()});
  all.push_back({"owners above", turned(generate_mesh("mesh:tetrahedra:3x3x4"), 1)});
  all.push_back({"owners above by turns, faces shuffled",
                 faces_shuffled(turned(generate_mesh("mesh:tetrahedra:3x4x3:shuffled"), 2), 3)});
  all.push_back({"star", star(300, 150)});
  all.push_back({"fan", fan(300)});
  all.push_back({"random pairs", random_pairs(150, 900, 5)});
  return all;
}

/// Large enough for every loop to be shared by threads, and for the rows of the stars to be long.
inline std::vector<NamedMesh> large_meshes() {
  std::vector<NamedMesh> all;
  all.push_back({"tetrahedra", generate_mesh("mesh:tetrahedra:15x14x14:random")});
  all.push_back({"boxes", generate_mesh("mesh:box:40x40x11:shuffled")});
  all.push_back({"star, hub early", star(10001, 37)});
  all.push_back({"star, hub first", star(10001, 0)});
  all.push_back({"star, hub last", star(10001, 10000)});
  all.push_back({"random pairs", random_pairs(20000, 90000, 8)});
  return all;
}

/// Fields on a mesh. Values of cells, of faces, and of boundary faces.
struct Fields {
  std::vector<double> diagonal, x, volume;
  std::vector<Vector3> gradient, centre;
  std::vector<double> upper, lower, flux, weight;
  std::vector<Vector3> area, face_centre;
  std::vector<double> boundary_flux, boundary_x;
  std::vector<Vector3> boundary_area;
};

/// Whole: multiples of a quarter up to 8, so that sums and products are exact in any order. Volumes are powers of two.
inline Fields fields_on(const Mesh& m, bool whole, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_int_distribution<int> number(-8, 8), quarter(0, 4), power(-2, 3);
  std::uniform_real_distribution<double> real(-1, 1), part(0, 1);
  const auto value = [&] { return whole ? number(engine) : real(engine); };
  const auto vector = [&] {
    const double x = value(), y = value(), z = value();
    return Vector3{x, y, z};
  };
  const auto fill = [](auto& to, std::size_t n, auto f) {
    to.resize(n);
    for (auto& v : to) v = f();
  };
  const std::size_t cells = std::size_t(m.cells), faces = m.owner.size(), boundary = m.boundary.size();
  Fields d;
  for (auto* to : {&d.diagonal, &d.x}) fill(*to, cells, value);
  fill(d.volume, cells, [&] { return whole ? std::ldexp(1.0, power(engine)) : 0.1 + part(engine); });
  for (auto* to : {&d.gradient, &d.centre}) fill(*to, cells, vector);
  for (auto* to : {&d.upper, &d.lower, &d.flux}) fill(*to, faces, value);
  fill(d.weight, faces, [&] { return whole ? 0.25 * quarter(engine) : part(engine); });
  for (auto* to : {&d.area, &d.face_centre}) fill(*to, faces, vector);
  for (auto* to : {&d.boundary_flux, &d.boundary_x}) fill(*to, boundary, value);
  fill(d.boundary_area, boundary, vector);
  return d;
}

/// What the operators give, by the mesh's numbers.
struct Results {
  std::vector<double> symmetric, product, divergence, with_boundary, upwind;
  std::vector<Vector3> gradient, gradient_with_boundary;
};

/// By plain loops; or, where `sizes` is set, the sums of the terms' absolute values.
inline Results plain(const Mesh& m, const Fields& d, bool sizes = false) {
  const auto term = [&](double v) { return sizes ? std::abs(v) : v; };
  const auto times = [&](double s, const Vector3& v) { return Vector3{term(s * v.x), term(s * v.y), term(s * v.z)}; };
  const std::size_t cells = std::size_t(m.cells);
  Results r;
  r.symmetric.resize(cells);
  for (std::size_t c = 0; c < cells; ++c) r.symmetric[c] = term(d.diagonal[c] * d.x[c]);
  r.product = r.symmetric;
  r.divergence.assign(cells, 0.0);
  r.gradient.assign(cells, Vector3{0, 0, 0});
  for (std::size_t f = 0; f < m.owner.size(); ++f) {
    const auto o = std::size_t(m.owner[f]), n = std::size_t(m.neighbour[f]);
    r.symmetric[o] += term(d.upper[f] * d.x[n]);
    r.symmetric[n] += term(d.upper[f] * d.x[o]);
    r.product[o] += term(d.upper[f] * d.x[n]);
    r.product[n] += term(d.lower[f] * d.x[o]);
    r.divergence[o] += term(d.flux[f]);
    r.divergence[n] += term(-d.flux[f]);
    const double at_face = term(d.weight[f] * d.x[o]) + term((1 - d.weight[f]) * d.x[n]);
    r.gradient[o] += times(at_face, d.area[f]);
    r.gradient[n] += times(-at_face, d.area[f]);
    const std::size_t from = d.flux[f] >= 0 ? o : n;
    const Vector3 &g = d.gradient[from], &a = d.face_centre[f], &b = d.centre[from];
    if (sizes)
      r.upwind.push_back(std::abs(d.x[from]) + std::abs(g.x) * (std::abs(a.x) + std::abs(b.x)) +
                         std::abs(g.y) * (std::abs(a.y) + std::abs(b.y)) +
                         std::abs(g.z) * (std::abs(a.z) + std::abs(b.z)));
    else
      r.upwind.push_back(d.x[from] + g.x * (a.x - b.x) + g.y * (a.y - b.y) + g.z * (a.z - b.z));
  }
  r.with_boundary = r.divergence;
  r.gradient_with_boundary = r.gradient;
  for (std::size_t b = 0; b < m.boundary.size(); ++b) {
    const auto c = std::size_t(m.boundary[b]);
    r.with_boundary[c] += term(d.boundary_flux[b]);
    r.gradient_with_boundary[c] += times(d.boundary_x[b], d.boundary_area[b]);
  }
  for (std::size_t c = 0; c < cells; ++c) {
    for (auto* v : {&r.divergence, &r.with_boundary}) (*v)[c] /= d.volume[c];
    for (auto* v : {&r.gradient, &r.gradient_with_boundary}) (*v)[c] = (1 / d.volume[c]) * (*v)[c];
  }
  return r;
}

/// By loops of a host or a GPU. there(values): values by boundary faces, in the loops' memory, with a view().
template <class Loops, class There>
Results by_loops(const Loops& loops, const Fields& d, const There& there) {
  auto diagonal = loops.cell_field(d.diagonal), x = loops.cell_field(d.x), volume = loops.cell_field(d.volume);
  auto gradient = loops.cell_field(d.gradient), centre = loops.cell_field(d.centre);
  auto upper = loops.face_field(d.upper), lower = loops.face_field(d.lower), flux = loops.face_field(d.flux);
  auto weight = loops.face_field(d.weight);
  auto area = loops.face_field(d.area), face_centre = loops.face_field(d.face_centre);
  auto boundary_flux = there(d.boundary_flux), boundary_x = there(d.boundary_x);
  auto boundary_area = there(d.boundary_area);
  // Nothing of an earlier loop is to be taken for a result.
  const std::vector<double> unset(d.x.size(), 1e300);
  auto out = loops.cell_field(unset);
  auto grad = loops.cell_field(std::vector<Vector3>(d.x.size(), Vector3{1e300, 1e300, 1e300}));
  auto at_face = loops.face_field(std::vector<double>(d.flux.size(), 1e300));
  Results r;
  multiply_symmetric(loops, diagonal.view(), upper.view(), x.view(), out.view());
  r.symmetric = loops.cell_values(out);
  out = loops.cell_field(unset);
  multiply(loops, diagonal.view(), lower.view(), upper.view(), x.view(), out.view());
  r.product = loops.cell_values(out);
  out = loops.cell_field(unset);
  integrate(loops, flux.view(), volume.view(), out.view());
  r.divergence = loops.cell_values(out);
  add_boundary_flux(loops, boundary_flux.view(), volume.view(), out.view());
  r.with_boundary = loops.cell_values(out);
  gauss_gradient(loops, x.view(), weight.view(), area.view(), volume.view(), grad.view());
  r.gradient = loops.cell_values(grad);
  add_boundary_gradient(loops, boundary_x.view(), boundary_area.view(), volume.view(), grad.view());
  r.gradient_with_boundary = loops.cell_values(grad);
  linear_upwind(loops, flux.view(), x.view(), gradient.view(), centre.view(), face_centre.view(), at_face.view());
  r.upwind = loops.face_values(at_face);
  return r;
}

inline const std::vector<double>& flat(const std::vector<double>& v) { return v; }
inline std::vector<double> flat(const std::vector<Vector3>& v) {
  std::vector<double> all(3 * v.size());
  double* to = all.data();
  for (const Vector3& a : v) {
    *to++ = a.x;
    *to++ = a.y;
    *to++ = a.z;
  }
  return all;
}

/// f(name, array of a, of b, ...) for each array.
template <class F, class... R>
void each_result(F f, const R&... r) {
  f("multiply_symmetric", flat(r.symmetric)...);
  f("multiply", flat(r.product)...);
  f("integrate", flat(r.divergence)...);
  f("add_boundary_flux", flat(r.with_boundary)...);
  f("gauss_gradient", flat(r.gradient)...);
  f("add_boundary_gradient", flat(r.gradient_with_boundary)...);
  f("linear_upwind", flat(r.upwind)...);
}

/// The same numbers; -0 is 0.
inline void expect_equal(const Results& got, const Results& due) {
  each_result(
      [](const char* name, const std::vector<double>& a, const std::vector<double>& b) {
        ASSERT_EQ(a.size(), b.size()) << name;
        for (std::size_t k = 0; k < a.size(); ++k) ASSERT_EQ(a[k], b[k]) << name << ", value " << k;
      },
      got, due);
}

/// Up to rounding: a few units in the last place of the terms of a sum together, and more for many terms.
inline void expect_close(const Results& got, const Results& due, const Results& sizes, const Mesh& m) {
  std::vector<double> faces(std::size_t(m.cells), 0);
  for (const auto* cells : {&m.owner, &m.neighbour, &m.boundary})
    for (Index c : *cells) ++faces[std::size_t(c)];
  each_result(
      [&](const char* name, const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& s) {
        ASSERT_EQ(a.size(), b.size()) << name;
        const bool of_cells = std::string(name) != "linear_upwind" && m.cells > 0;
        const std::size_t each = of_cells ? a.size() / std::size_t(m.cells) : 1;
        for (std::size_t k = 0; k < a.size(); ++k) {
          const double ulps = 4 + (of_cells ? std::sqrt(faces[k / each]) : 0);
          ASSERT_LE(std::abs(a[k] - b[k]), ulps * 2.3e-16 * s[k]) << name << ", value " << k << ": " << a[k];
        }
      },
      got, due, sizes);
}

inline bool same_bits(const Results& a, const Results& b) {
  bool same = true;
  each_result(
      [&](const char*, const std::vector<double>& x, const std::vector<double>& y) {
        same = same && x.size() == y.size() &&
               (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0);
      },
      a, b);
  return same;
}

/// ++n, seen also where two threads do so at once.
KRILU_INLINE void count_one(int& n) {
#if defined(__CUDA_ARCH__)
  atomicAdd(&n, 1);
#else
  ++n;
#endif
}

/// Every face once with its own cells, and their states the right way round; every cell once. In the loops of both
/// kinds, since each has its own way through the plan.
template <class Loops>
void expect_each_once(const Loops& loops, const Mesh& m) {
  const std::size_t cells = std::size_t(m.cells), faces = m.owner.size();
  auto visits = loops.face_field(std::vector<int>(faces, 0));
  auto owner = loops.face_field(std::vector<Index>(faces, -1)),
       neighbour = loops.face_field(std::vector<Index>(faces, -1));
  auto states_differ = loops.face_field(std::vector<int>(faces, -1));
  const auto v = visits.view(), differ = states_differ.view();
  const auto ov = owner.view(), nv = neighbour.view();
  loops.template for_each_face<Index>(
      KRILU_FN(Index c) { return c; },
      KRILU_FN(Face f, Index o, Index n) {
        count_one(v[f.id]);
        ov[f.id] = f.owner;
        nv[f.id] = f.neighbour;
        differ[f.id] = o != f.owner || n != f.neighbour;
      });
  EXPECT_EQ(loops.face_values(visits), std::vector<int>(faces, 1));
  EXPECT_EQ(loops.face_values(states_differ), std::vector<int>(faces, 0));
  // From one side: a third of the owners, and the other faces' neighbours.
  loops.template for_each_face_from<Index>(
      KRILU_FN(Face f) { return f.id % 3 == 0; },
      loops.ahead(
          KRILU_FN(Index c) { return c; }, ov),
      loops.ahead(
          KRILU_FN(Face f, Index from) {
            count_one(v[f.id]);
            const bool right = f.owner == ov[f.id] && f.neighbour == nv[f.id];
            differ[f.id] = !right || from != (f.id % 3 == 0 ? f.owner : f.neighbour);
          },
          v, differ));
  EXPECT_EQ(loops.face_values(visits), std::vector<int>(faces, 2));
  EXPECT_EQ(loops.face_values(states_differ), std::vector<int>(faces, 0));
  const std::vector<Index> o = loops.face_values(owner), n = loops.face_values(neighbour);
  for (std::size_t f = 0; f < faces; ++f) {
    ASSERT_EQ(loops.cell_order()[std::size_t(o[f])], m.owner[f]) << "face " << f;
    ASSERT_EQ(loops.cell_order()[std::size_t(n[f])], m.neighbour[f]) << "face " << f;
  }

  auto cell_visits = loops.cell_field(std::vector<int>(cells, 0));
  auto sums = loops.cell_field(std::vector<double>(cells, -1)),
       vertex = loops.cell_field(std::vector<double>(cells, 0));
  const auto cv = cell_visits.view();
  const auto sv = sums.view(), xv = vertex.view();
  // A face that is told the wrong cells adds a half.
  loops.template sum_over_faces<Index, double>(
      KRILU_FN(Index c) { return c; },
      KRILU_FN(Face f, Index a, Index b) {
        const bool right = a == f.owner && b == f.neighbour && ov[f.id] == a && nv[f.id] == b;
        return Both<double>{right ? 1 : 0.5, right ? 1000 : 0.5};
      },
      KRILU_FN(Index c, Index state, double sum) {
        count_one(cv[c]);
        sv[c] = state == c ? sum : -2;
      });
  loops.for_each_cell(KRILU_FN(Index c) { xv[c] += c + 1; });
  std::vector<double> due(cells, 0);
  for (std::size_t f = 0; f < faces; ++f) {
    due[std::size_t(m.owner[f])] += 1;
    due[std::size_t(m.neighbour[f])] += 1000;
  }
  EXPECT_EQ(loops.cell_values(cell_visits), std::vector<int>(cells, 1));
  EXPECT_EQ(loops.cell_values(sums), due);
  // Faces that need nothing of their cells.
  loops.template sum_over_faces<Nothing, double>(
      KRILU_FN(Index) { return Nothing{}; },
      KRILU_FN(Face, Nothing, Nothing) {
        return Both<double>{1, 1000};
      },
      KRILU_FN(Index c, Nothing, double sum) { sv[c] = -sum; });
  std::vector<double> negated = loops.cell_values(sums);
  for (double& s : negated) s = -s;
  EXPECT_EQ(negated, due);
  const std::vector<double> once = loops.cell_values(vertex);
  for (std::size_t k = 0; k < cells; ++k)
    ASSERT_EQ(once[std::size_t(loops.cell_order()[k])], double(k) + 1) << "place " << k;

  auto boundary = loops.cell_field(std::vector<double>(cells, 0));
  const auto bv = boundary.view();
  loops.template sum_over_boundary<double>(
      KRILU_FN(Index f, Index c) { return double(f) + 1e-3 * c; }, KRILU_FN(Index c, double s) { bv[c] += s; });
  std::vector<Index> place(cells);
  for (std::size_t k = 0; k < cells; ++k) place[std::size_t(loops.cell_order()[k])] = Index(k);
  due.assign(cells, 0);
  for (std::size_t b = 0; b < m.boundary.size(); ++b)
    due[std::size_t(m.boundary[b])] += double(b) + 1e-3 * place[std::size_t(m.boundary[b])];
  const std::vector<double> got = loops.cell_values(boundary);
  for (std::size_t c = 0; c < cells; ++c) ASSERT_NEAR(got[c], due[c], 1e-12 * (1 + due[c])) << "cell " << c;
}

/// Values go there and come back, and stand there in the loops' numbering.
template <class Loops>
void expect_round_trips(const Loops& loops, const Mesh& m) {
  std::vector<Vector3> of_cells(std::size_t(m.cells));
  std::vector<Index> of_faces(m.owner.size());
  for (std::size_t c = 0; c < of_cells.size(); ++c) of_cells[c] = {double(c), -double(c), 0.5};
  for (std::size_t f = 0; f < of_faces.size(); ++f) of_faces[f] = Index(7 * f);
  auto cells = loops.cell_field(of_cells);
  auto faces = loops.face_field(of_faces);
  EXPECT_EQ(flat(loops.cell_values(cells)), flat(of_cells));
  EXPECT_EQ(loops.face_values(faces), of_faces);
  auto wrong = loops.cell_field(std::vector<int>(of_cells.size(), 0));
  const auto cv = cells.view();
  const auto wv = wrong.view();
  // Place i holds the value of cell cell_order[i]: its first component says which.
  auto order = loops.cell_field(std::vector<int>(of_cells.size(), 0));
  const auto orders = order.view();
  loops.for_each_cell(KRILU_FN(Index c) {
    orders[c] = int(cv[c].x);
    wv[c] = cv[c].y != -cv[c].x || cv[c].z != 0.5;
  });
  EXPECT_EQ(loops.cell_values(wrong), std::vector<int>(of_cells.size(), 0));
  const std::vector<int> named = loops.cell_values(order);
  for (std::size_t c = 0; c < named.size(); ++c) ASSERT_EQ(named[c], int(c));
}

/// A mesh with fields on it and what is due.
struct Case {
  explicit Case(NamedMesh m)
      : name(std::move(m.name)),
        mesh(std::move(m.mesh)),
        whole(fields_on(mesh, true, 1)),
        real(fields_on(mesh, false, 2)),
        whole_due(plain(mesh, whole)),
        real_due(plain(mesh, real)),
        sizes(plain(mesh, real, true)) {}

  std::string name;
  Mesh mesh;
  Fields whole, real;
  Results whole_due, real_due, sizes;
};

inline std::vector<Case> cases_of(std::vector<NamedMesh> meshes) {
  std::vector<Case> cases;
  for (NamedMesh& m : meshes) cases.emplace_back(std::move(m));
  return cases;
}

/// Everything at once, for loops of either kind.
template <class Loops, class There>
void expect_right(const Loops& loops, const Case& on, const There& there) {
  ASSERT_EQ(loops.cells(), on.mesh.cells);
  ASSERT_EQ(loops.faces(), on.mesh.faces());
  expect_equal(by_loops(loops, on.whole, there), on.whole_due);
  expect_close(by_loops(loops, on.real, there), on.real_due, on.sizes, on.mesh);
  expect_each_once(loops, on.mesh);
  expect_round_trips(loops, on.mesh);
}

}  // namespace krilu::test
