// SPDX-License-Identifier: Apache-2.0
// Flow by finite elements: every entry against the weak form, evaluated a second time below in long double; motions
// that put no stress on a fluid; a solution that is known; and what the systems are for.
#include "io/fem_flow.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "support/support.hpp"

namespace {

using krilu::CsrMatrix;
using krilu::Index;
using krilu::Offset;
using krilu::io::FemFlow;
using Real = long double;
using Vector = std::array<Real, 2>;

/// A test or trial function at a point: gradient[c][d] is the slope of velocity c along direction d.
struct Field {
  Vector velocity{};
  std::array<Vector, 2> gradient{};
  Real pressure = 0;
};

Vector given_velocity(Real width, const Vector& at) {
  const Real x = at[0] / width, y = at[1];
  return {8 * (x * x * x * x - 2 * x * x * x + x * x) * (4 * y * y * y - 2 * y),
          -8 / width * (4 * x * x * x - 6 * x * x + 2 * x) * (y * y * y * y - y * y)};
}

/// The weak form's integrand, by strain rates, for test function v and trial function u.
Real integrand(const FemFlow& flow, const Vector& at, const Field& v, const Field& u) {
  const Vector w = given_velocity(Real(flow.nx) / flow.ny, at);
  Real sum = 0;
  for (std::size_t c = 0; c < 2; ++c)
    for (std::size_t d = 0; d < 2; ++d) {
      sum += 2 * ((u.gradient[c][d] + u.gradient[d][c]) / 2) * ((v.gradient[c][d] + v.gradient[d][c]) / 2);
      sum += flow.reynolds * w[d] * u.gradient[c][d] * v.velocity[c];
    }
  sum -= u.pressure * (v.gradient[0][0] + v.gradient[1][1]);
  return sum + flow.weight * v.pressure * (u.gradient[0][0] + u.gradient[1][1] + flow.penalty * u.pressure);
}

/// The mesh, its unknowns numbered by walking through the elements, and its functions at Gauss points.
struct FlowMesh {
  explicit FlowMesh(const FemFlow& of) : flow(of), vertices(krilu::io::fem_flow_vertices(of)) {
    Index next = 0;
    for (Index ey = 0; ey < flow.ny; ++ey)
      for (Index ex = 0; ex < flow.nx; ++ex) {
        for (Index s = 0; s < 9; ++s) {
          const std::pair node{2 * ex + s % 3, 2 * ey + s / 3};
          if (!on_wall(node) && velocity.emplace(node, next).second) next += 2;
        }
        pressure[{ex, ey}] = next;
        next += 3;
      }
    rows = std::size_t(next);
  }

  bool on_wall(const std::pair<Index, Index>& node) const {
    return node.first == 0 || node.first == 2 * flow.nx || node.second == 0 || node.second == 2 * flow.ny;
  }

  /// A point of an element, by its place in the square [-1, 1]^2.
  Vector point(Index ex, Index ey, Real s, Real t) const {
    Vector at{};
    for (Index c = 0; c < 4; ++c) {
      const auto& vertex = vertices[std::size_t(ex + c % 2 + (flow.nx + 1) * (ey + c / 2))];
      const Real part = (c % 2 ? 1 + s : 1 - s) * (c / 2 ? 1 + t : 1 - t) / 4;
      for (std::size_t d = 0; d < 2; ++d) at[d] += part * vertex[d];
    }
    return at;
  }
  Vector node(Index i, Index j) const {
    const Index ex = std::min(i / 2, flow.nx - 1), ey = std::min(j / 2, flow.ny - 1);
    return point(ex, ey, Real(i - 2 * ex - 1), Real(j - 2 * ey - 1));
  }

  /// An element's functions at a place of the square: nine nodes x two velocities, then three pressures.
  std::array<Field, 21> functions(Index ex, Index ey, Real s, Real t) const {
    const auto lagrange = [](Index k, Real x) {
      Real product = 1;
      for (Index m = 0; m < 3; ++m)
        if (m != k) product *= (x - Real(m - 1)) / Real(k - m);
      return product;
    };
    const auto shape = [&](Index k, Real x, Real y) { return lagrange(k % 3, x) * lagrange(k / 3, y); };
    // Central differences are exact: nothing is more than quadratic along one direction.
    const Real step = 0.5L;
    const Vector east = point(ex, ey, s + step, t), west = point(ex, ey, s - step, t);
    const Vector north = point(ex, ey, s, t + step), south = point(ex, ey, s, t - step);
    const Real xs = east[0] - west[0], ys = east[1] - west[1], xt = north[0] - south[0], yt = north[1] - south[1];
    std::array<Field, 21> all{};
    for (Index k = 0; k < 9; ++k) {
      const Real by_s = shape(k, s + step, t) - shape(k, s - step, t);
      const Real by_t = shape(k, s, t + step) - shape(k, s, t - step);
      const Vector gradient{(by_s * yt - by_t * ys) / (xs * yt - xt * ys),
                            (by_t * xs - by_s * xt) / (xs * yt - xt * ys)};
      for (std::size_t c = 0; c < 2; ++c) {
        Field& f = all[2 * std::size_t(k) + c];
        f.velocity[c] = shape(k, s, t);
        f.gradient[c] = gradient;
      }
    }
    const Vector at = point(ex, ey, s, t), centre = point(ex, ey, 0, 0);
    const Vector a = point(ex, ey, 1, 0), b = point(ex, ey, 0, 1);
    all[18].pressure = 1;
    all[19].pressure = (at[0] - centre[0]) / (a[0] - centre[0]);
    all[20].pressure = (at[1] - centre[1]) / (b[1] - centre[1]);
    return all;
  }

  /// The rows of an element's functions, -1 where the velocity is given.
  std::array<Index, 21> unknowns(Index ex, Index ey) const {
    std::array<Index, 21> u{};
    for (Index k = 0; k < 9; ++k) {
      const auto at = velocity.find({2 * ex + k % 3, 2 * ey + k / 3});
      for (Index c = 0; c < 2; ++c) u[std::size_t(2 * k + c)] = at == velocity.end() ? -1 : at->second + c;
    }
    for (Index k = 0; k < 3; ++k) u[std::size_t(18 + k)] = pressure.at({ex, ey}) + k;
    return u;
  }

  /// f(unknowns, functions, place, volume) at three by three Gauss points of each element.
  template <class F>
  void for_points(F f) const {
    const std::array<Real, 3> place{-std::sqrt(Real(0.6L)), 0, std::sqrt(Real(0.6L))},
        weight{5 / 9.0L, 8 / 9.0L, 5 / 9.0L};
    for (Index ey = 0; ey < flow.ny; ++ey)
      for (Index ex = 0; ex < flow.nx; ++ex)
        for (std::size_t q = 0; q < 9; ++q) {
          const Real s = place[q % 3], t = place[q / 3];
          const Vector east = point(ex, ey, s + 1, t), north = point(ex, ey, s, t + 1), at = point(ex, ey, s, t);
          const Real stretch = (east[0] - at[0]) * (north[1] - at[1]) - (east[1] - at[1]) * (north[0] - at[0]);
          f(unknowns(ex, ey), functions(ex, ey, s, t), at, weight[q % 3] * weight[q / 3] * stretch);
        }
  }

  FemFlow flow;
  std::vector<std::array<double, 2>> vertices;
  std::map<std::pair<Index, Index>, Index> velocity, pressure;
  std::size_t rows = 0;
};

FemFlow flow_of(Index nx, Index ny, double reynolds = 0, double grading = 0.4, double distortion = 0.2) {
  FemFlow flow;
  flow.nx = nx;
  flow.ny = ny;
  flow.seed = 5;
  flow.reynolds = reynolds;
  flow.grading = grading;
  flow.distortion = distortion;
  return flow;
}

TEST(FemFlow, EntriesAreThoseOfTheWeakForm) {
  for (const auto& [nx, ny] : {std::pair<Index, Index>{1, 1}, {1, 4}, {3, 1}, {2, 2}, {4, 3}})
    for (const double reynolds : {0.0, 70.0}) {
      SCOPED_TRACE(::testing::Message() << nx << " x " << ny << ", reynolds " << reynolds);
      FemFlow flow = flow_of(nx, ny, reynolds);
      flow.penalty = 0.03;
      flow.weight = 7;
      const FlowMesh mesh(flow);
      std::map<std::pair<Index, Index>, Real> expected;
      mesh.for_points([&](const auto& unknowns, const auto& functions, const Vector& at, Real volume) {
        for (std::size_t r = 0; r < 21; ++r)
          for (std::size_t c = 0; c < 21; ++c)
            if (unknowns[r] >= 0 && unknowns[c] >= 0)
              expected[{unknowns[r], unknowns[c]}] += volume * integrand(flow, at, functions[r], functions[c]);
      });
      const CsrMatrix a = krilu::io::fem_flow_matrix(flow);
      ASSERT_NO_THROW(krilu::require_valid(a));
      ASSERT_EQ(std::size_t(a.rows), mesh.rows);
      EXPECT_EQ(a.rows, 2 * (2 * nx - 1) * (2 * ny - 1) + 3 * nx * ny);
      ASSERT_EQ(std::size_t(a.nnz()), expected.size());
      for (Index r = 0; r < a.rows; ++r)
        for (Offset e = a.offsets[std::size_t(r)]; e < a.offsets[std::size_t(r) + 1]; ++e) {
          const auto entry = expected.find({r, a.columns[std::size_t(e)]});
          ASSERT_NE(entry, expected.end()) << "row " << r << ", column " << a.columns[std::size_t(e)];
          EXPECT_NEAR(a.values[std::size_t(e)], double(entry->second), 1e-13)
              << "row " << r << ", column " << entry->first.second;
        }
    }
}

/// A x for given fields, the pressure linear, at the rows that know nothing of walls: those of momentum first, then
/// those of incompressibility.
template <class Velocity>
std::array<std::vector<double>, 2> away_from_walls(const FemFlow& flow, Velocity velocity, const Vector& slope) {
  const FlowMesh mesh(flow);
  std::vector<Real> x(mesh.rows, 0);
  for (const auto& [node, row] : mesh.velocity) {
    const Vector u = velocity(mesh.node(node.first, node.second));
    for (std::size_t c = 0; c < 2; ++c) x[std::size_t(row) + c] = u[c];
  }
  for (const auto& [element, row] : mesh.pressure) {
    const auto [ex, ey] = element;
    const Vector centre = mesh.point(ex, ey, 0, 0), a = mesh.point(ex, ey, 1, 0), b = mesh.point(ex, ey, 0, 1);
    x[std::size_t(row)] = slope[0] * centre[0] + slope[1] * centre[1];
    x[std::size_t(row) + 1] = slope[0] * (a[0] - centre[0]);
    x[std::size_t(row) + 2] = slope[1] * (b[1] - centre[1]);
  }
  const CsrMatrix a = krilu::io::fem_flow_matrix(flow);
  const auto row_times_x = [&](std::size_t r) {
    Real sum = 0;
    for (Offset e = a.offsets[r]; e < a.offsets[r + 1]; ++e)
      sum += a.values[std::size_t(e)] * x[std::size_t(a.columns[std::size_t(e)])];
    return double(sum);
  };
  std::array<std::vector<double>, 2> results;
  for (const auto& [node, row] : mesh.velocity) {
    const auto [i, j] = node;
    if (i < 3 || i > 2 * flow.nx - 3 || j < 3 || j > 2 * flow.ny - 3) continue;
    for (std::size_t c = 0; c < 2; ++c) results[0].push_back(row_times_x(std::size_t(row) + c));
  }
  for (const auto& [element, row] : mesh.pressure) {
    const auto [ex, ey] = element;
    if (ex == 0 || ex == flow.nx - 1 || ey == 0 || ey == flow.ny - 1) continue;
    for (std::size_t k = 0; k < 3; ++k) results[1].push_back(row_times_x(std::size_t(row) + k));
  }
  EXPECT_GT(results[0].size(), 20u);
  EXPECT_GT(results[1].size(), 10u);
  return results;
}

double largest(const std::vector<double>& v) {
  double most = 0;
  for (const double x : v) most = std::max(most, std::abs(x));
  return most;
}

TEST(FemFlow, RigidMotionsMeetNoResistance) {
  FemFlow flow = flow_of(6, 5);
  flow.weight = 1;
  const auto turning = [](const Vector& at) { return Vector{0.3L - 2 * at[1], -0.7L + 2 * at[0]}; };
  for (const auto& rows : away_from_walls(flow, turning, {0, 0})) EXPECT_LT(largest(rows), 1e-14);
  // A velocity that is the same everywhere is carried along without a force, too.
  flow.reynolds = 100;
  const auto moving = [](const Vector&) { return Vector{0.3L, -0.7L}; };
  for (const auto& rows : away_from_walls(flow, moving, {0, 0})) EXPECT_LT(largest(rows), 1e-14);
  EXPECT_GT(largest(away_from_walls(flow, turning, {0, 0})[0]), 0.01);
}

TEST(FemFlow, QuadraticFlowThatItsPressureDrivesIsExact) {
  FemFlow flow = flow_of(6, 5);
  flow.weight = 1;
  // Without divergence, and with Laplacians (2, 2), which are the slopes of the pressure.
  const auto velocity = [](const Vector& at) { return Vector{at[1] * at[1] + at[0], at[0] * at[0] - at[1]}; };
  EXPECT_LT(largest(away_from_walls(flow, velocity, {2, 2})[0]), 1e-14);
  EXPECT_GT(largest(away_from_walls(flow, velocity, {2, 1})[0]), 0.01);
  EXPECT_LT(largest(away_from_walls(flow, velocity, {0, 0})[1]), 1e-14);
  const auto spreading = [](const Vector& at) { return Vector{at[0], at[1]}; };
  EXPECT_GT(largest(away_from_walls(flow, spreading, {0, 0})[1]), 0.01);
}

TEST(FemFlow, SolutionsConvergeWithTheThirdPowerOfTheElements) {
  // At rest on all walls, of stream function a(x) a(y), a = x^2 (1 - x)^2; the pressure is x^2 - y.
  const auto a = [](Real x, int derivative) {
    const std::array<Real, 4> values{x * x * (1 - x) * (1 - x), 2 * x - 6 * x * x + 4 * x * x * x,
                                     2 - 12 * x + 12 * x * x, -12 + 24 * x};
    return values[std::size_t(derivative)];
  };
  const auto error = [&](Index n) {
    const FemFlow flow = flow_of(n, n, 80, 0.3, 0.1);
    const FlowMesh mesh(flow);
    std::vector<double> b(mesh.rows, 0);
    mesh.for_points([&](const auto& unknowns, const auto& functions, const Vector& at, Real volume) {
      const auto [x, y] = at;
      const Vector w = given_velocity(1, at);
      const Vector force{-a(x, 2) * a(y, 1) - a(x, 0) * a(y, 3) + 2 * x +
                             flow.reynolds * (w[0] * a(x, 1) * a(y, 1) + w[1] * a(x, 0) * a(y, 2)),
                         a(x, 3) * a(y, 0) + a(x, 1) * a(y, 2) - 1 -
                             flow.reynolds * (w[0] * a(x, 2) * a(y, 0) + w[1] * a(x, 1) * a(y, 1))};
      for (std::size_t r = 0; r < 21; ++r)
        if (unknowns[r] >= 0) {
          const Field& v = functions[r];
          b[std::size_t(unknowns[r])] += double(volume * (force[0] * v.velocity[0] + force[1] * v.velocity[1] +
                                                          flow.weight * flow.penalty * v.pressure * (x * x - y)));
        }
    });
    const auto found = krilu::test::dense_solve(krilu::test::to_dense(krilu::io::fem_flow_matrix(flow)), b);
    Real most = 0;
    for (const auto& [node, row] : mesh.velocity) {
      const auto [x, y] = mesh.node(node.first, node.second);
      most = std::max(most, std::abs(found[std::size_t(row)] - a(x, 0) * a(y, 1)));
      most = std::max(most, std::abs(found[std::size_t(row) + 1] + a(x, 1) * a(y, 0)));
    }
    return double(most);
  };
  const double coarse = error(3), fine = error(6);
  EXPECT_LT(fine, 1e-2 * 0.0120);  // of the largest velocity
  EXPECT_GT(coarse / fine, 7);
}

TEST(FemFlow, StokesFlowIsSymmetricButForTheWeight) {
  const FemFlow flow = flow_of(5, 4);
  const FlowMesh mesh(flow);
  krilu::test::Dense a = krilu::test::to_dense(krilu::io::fem_flow_matrix(flow));
  for (const auto& [element, row] : mesh.pressure)
    for (std::size_t k = 0; k < 3; ++k)
      for (double& v : a[std::size_t(row) + k]) v /= -flow.weight;
  for (std::size_t r = 0; r < a.size(); ++r)
    for (std::size_t c = 0; c < r; ++c) EXPECT_NEAR(a[r][c], a[c][r], 1e-14) << "row " << r << ", column " << c;
}

TEST(FemFlow, DiagonalsArePositive) {
  const CsrMatrix a = krilu::generate("gen:femflow2d:12x9");
  for (Index r = 0; r < a.rows; ++r)
    for (Offset e = a.offsets[std::size_t(r)]; e < a.offsets[std::size_t(r) + 1]; ++e)
      if (a.columns[std::size_t(e)] == r) {
        EXPECT_GT(a.values[std::size_t(e)], 0) << "row " << r;
      }
}

TEST(FemFlow, VerticesAreGradedAndMovedALittle) {
  FemFlow flow = flow_of(4, 2, 0, 0.5, 0);
  const auto still = krilu::io::fem_flow_vertices(flow);
  ASSERT_EQ(still.size(), 15u);
  const double x[] = {0, 0.40625, 1, 1.59375, 2};
  for (std::size_t v = 0; v < 15; ++v) {
    EXPECT_NEAR(still[v][0], x[v % 5], 1e-15);
    EXPECT_NEAR(still[v][1], double(v / 5) / 2, 1e-15);
  }
  flow.distortion = 0.2;
  const auto moved = krilu::io::fem_flow_vertices(flow);
  for (std::size_t v = 0; v < 15; ++v) {
    const bool wall = v < 5 || v > 9 || v % 5 == 0 || v % 5 == 4;
    const double most_x = wall ? 0 : 0.2 * (v % 5 == 2 ? 0.59375 : 0.40625), most_y = wall ? 0 : 0.1;
    EXPECT_LE(std::abs(moved[v][0] - still[v][0]), most_x);
    EXPECT_LE(std::abs(moved[v][1] - still[v][1]), most_y);
    EXPECT_EQ(moved[v] == still[v], wall);
  }
}

bool same_bits(const CsrMatrix& a, const CsrMatrix& b) {
  return a.nnz() == b.nnz() &&
         std::memcmp(a.values.data(), b.values.data(), std::size_t(a.nnz()) * sizeof(double)) == 0 &&
         std::memcmp(a.columns.data(), b.columns.data(), std::size_t(a.nnz()) * sizeof(Index)) == 0;
}

TEST(FemFlow, TheSeedDecidesAndNothingElse) {
  const CsrMatrix a = krilu::generate("gen:femflow2d:7x5");
  EXPECT_TRUE(same_bits(a, krilu::generate("gen:femflow2d:7x5:1")));
  EXPECT_TRUE(same_bits(a, krilu::generate("gen:femflow2d:7x5:1,2e-7,100")));
  const CsrMatrix other = krilu::generate("gen:femflow2d:7x5:2");
  ASSERT_EQ(a.nnz(), other.nnz());
  EXPECT_FALSE(same_bits(a, other));
  EXPECT_EQ(std::memcmp(a.columns.data(), other.columns.data(), std::size_t(a.nnz()) * sizeof(Index)), 0);
}

TEST(FemFlow, AnyNumberOfThreadsGivesTheSameBits) {
#if defined(_OPENMP)
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const CsrMatrix one = krilu::generate("gen:femflow2d:90x70");
  omp_set_num_threads(3);
  const CsrMatrix three = krilu::generate("gen:femflow2d:90x70");
  omp_set_num_threads(before);
  EXPECT_TRUE(same_bits(one, three));
#else
  GTEST_SKIP() << "this krilu was built without OpenMP";
#endif
}

/// What the generator is for: few rows, many iterations, and a residual that double precision still reaches.
TEST(FemFlow, GmresTakesHundredsOfIterations) {
  const CsrMatrix a = krilu::generate("gen:femflow2d:24x24");
  ASSERT_EQ(a.rows, 6146);
  ASSERT_EQ(a.nnz(), 197940);
  krilu::Options options;
  options.solver = "gmres";
  options.precond = "ilu0";
  options.device = "host";
  options.ordering = "natural";
  options.restart = 300;
  options.max_iterations = 600;
  options.rtol = 1e-10;
  const std::vector<double> b(6146, 1);
  std::vector<double> x(6146, 0);
  const krilu::Result result = krilu::solve(a, b, x, options);
  EXPECT_EQ(result.status, krilu::Status::converged);
  EXPECT_GT(result.iterations, 150);
  EXPECT_LT(krilu::test::true_residual(a, x, b), 1e-10);
}

void expect_error(const std::string& text, const std::vector<std::string>& words) {
  try {
    krilu::generate(text);
    FAIL() << text << ": no error";
  } catch (const krilu::Error& e) {
    const std::string message = e.what();
    for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << word << "\n" << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(FemFlow, AsAGenerator) {
  EXPECT_TRUE(krilu::is_generator("gen:femflow2d:4x4"));
  const FemFlow flow = krilu::io::parse_fem_flow("12x7:34,1e-3,0.5");
  EXPECT_EQ(flow.nx, 12);
  EXPECT_EQ(flow.ny, 7);
  EXPECT_EQ(flow.seed, 34u);
  EXPECT_EQ(flow.penalty, 1e-3);
  EXPECT_EQ(flow.reynolds, 0.5);
  EXPECT_EQ(krilu::io::parse_fem_flow("12x7").reynolds, FemFlow().reynolds);
  EXPECT_EQ(krilu::io::parse_fem_flow("12x7:3,1").penalty, 1);

  for (const char* size : {"", ":", ":4", ":4x", ":x4", ":0x4", ":4x0", ":-1x4", ":4,4", ":3000000000x2", ":a"})
    expect_error(std::string("gen:femflow2d") + size, {"two whole numbers from 1", "gen:femflow2d:NXxNY[:SEED"});
  for (const char* seed : {":", ":-1", ":a", ":,1"}) expect_error(std::string("gen:femflow2d:4x4") + seed, {"SEED is"});
  for (const char* penalty : {"", "0", "-1", "nan", ",5"})
    expect_error(std::string("gen:femflow2d:4x4:1,") + penalty, {"PENALTY is a number above 0"});
  for (const char* reynolds : {"", "-1", "nan", "a"})
    expect_error(std::string("gen:femflow2d:4x4:1,1,") + reynolds, {"REYNOLDS is a number from 0"});
  for (const char* more : {"x4", ":1,1,1,1", ":1:1", ":1.5", " "})
    expect_error(std::string("gen:femflow2d:4x4") + more, {"goes on where it should end"});
  expect_error("gen:femflow2d:4x4:1,inf", {"the penalty is inf", "take a number from 1e-100"});
  expect_error("gen:femflow2d:4x4:1,1,inf", {"the Reynolds number is inf"});
  expect_error("gen:femflow3d:4x4", {"did you mean 'femflow2d'?"});
}

TEST(FemFlow, ParametersOutOfRangeAreRefused) {
  const auto refused = [](FemFlow flow, const std::string& words) {
    for (const bool matrix : {false, true}) try {
        if (matrix)
          krilu::io::fem_flow_matrix(flow);
        else
          krilu::io::fem_flow_vertices(flow);
        FAIL() << words << ": no error";
      } catch (const krilu::Error& e) {
        EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
      }
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refused({.nx = 0}, "the number of elements in x is 0; take a number from 1");
  refused({.ny = -3}, "the number of elements in y is -3");
  for (const double bad : {0.0, -1.0, nan}) refused({.penalty = bad}, "the penalty is");
  for (const double bad : {0.0, -1.0, nan}) refused({.weight = bad}, "the weight is");
  for (const double bad : {-1.0, nan}) refused({.reynolds = bad}, "the Reynolds number is");
  for (const double bad : {-0.1, 1.0, nan}) refused({.grading = bad}, "the grading is");
  for (const double bad : {-0.1, 0.25, nan}) refused({.distortion = bad}, "the distortion is");
  // Squares have 373 n^2 - 720 n + 372 nonzeros.
  EXPECT_NO_THROW(krilu::io::fem_flow_vertices({.nx = 2400, .ny = 2400}));
  refused({.nx = 2401, .ny = 2401}, "2401 x 2401 elements give 2^31 nonzeros or more");
  refused({.nx = 2147483647, .ny = 2147483647}, "2^31 nonzeros or more");
  refused({.nx = 1, .ny = 2147483647}, "2^31 nonzeros or more");
}

}  // namespace
