// SPDX-License-Identifier: Apache-2.0
// The equations' rows: every entry of the Jacobian against complex steps, on O and C grids; scaling and the turn of an
// O grid; and second order of the solution of manufactured problems.
#include "grid/poisson.hpp"

#include <cmath>
#include <complex>
#include <map>
#include <numbers>
#include <random>

#include "krilu/newton.hpp"
#include "support/support.hpp"

namespace krilu::grid {
namespace {

using Complex = std::complex<double>;
using std::numbers::pi;

/// Rows of a grid with random nodes, control terms and factors.
struct Random {
  Random(Index ni, Index nj, bool periodic, unsigned seed) : generator(seed) {
    const Index inner = (periodic ? ni - 1 : ni - 2) * (nj - 2);
    for (Index k = 0; k < ni * nj; ++k) fixed.push_back({number(), number()});
    for (Index k = 0; k < inner; ++k) {
      phi.push_back(number());
      psi.push_back(number());
      scale.push_back(1.5 + number());
      x.push_back(number());
      x.push_back(number());
    }
    rows = {ni,           nj,           periodic,      periodic ? Point{0.7, -0.4} : Point{}, {fixed.data()},
            {phi.data()}, {psi.data()}, {scale.data()}};
  }
  double number() { return std::uniform_real_distribution<double>(-1, 1)(generator); }

  std::mt19937 generator;
  std::vector<Point> fixed;
  std::vector<double> phi, psi, scale, x;
  PoissonRows rows;
};

void expect_entries(const Random& random) {
  const PoissonRows& rows = random.rows;
  const Index n = rows.rows();
  ASSERT_EQ(std::size_t(n), random.x.size());
  std::vector<Complex> z(random.x.begin(), random.x.end());
  for (Index row = 0; row < n; ++row) {
    std::vector<Index> column;
    rows.columns(row, [&](Index c) { column.push_back(c); });
    EXPECT_TRUE(std::is_sorted(column.begin(), column.end())) << row;
    std::map<Index, double> entry;
    rows.jacobian(row, View<const double>{random.x.data()}, [&](Index k, double v) { entry[column.at(k)] = v; });
    EXPECT_EQ(entry.size(), column.size()) << row;
    for (Index c = 0; c < n; ++c) {
      z[c] = Complex(random.x[c], 1e-30);
      const double due = rows.residual(row, View<const Complex>{z.data()}).imag() / 1e-30;
      z[c] = random.x[c];
      const auto found = entry.find(c);
      EXPECT_NEAR(found == entry.end() ? 0 : found->second, due, 1e-13 * (1 + std::abs(due)))
          << "row " << row << " unknown " << c;
    }
  }
}

TEST(PoissonRows, EveryEntryOfAnOGridIsTheDerivative) {
  expect_entries(Random(7, 6, true, 1));
  expect_entries(Random(5, 3, true, 2));
}

TEST(PoissonRows, EveryEntryOfACGridIsTheDerivative) {
  expect_entries(Random(7, 6, false, 3));
  expect_entries(Random(4, 4, false, 4));
}

TEST(PoissonRows, RowsAreShortAndAscendAcrossTheSeam) {
  const Random random(9, 7, true, 5);
  Index most = 0;
  for (Index row = 0; row < random.rows.rows(); ++row) {
    Index count = 0;
    random.rows.columns(row, [&](Index) { ++count; });
    most = std::max(most, count);
  }
  EXPECT_EQ(most, 13);
  const RowEquations<PoissonRows> equations(random.rows);
  require_valid(equations.pattern());
}

TEST(PoissonRows, ResidualIsTheTextbooksFormula) {
  // One inner node of a C grid; x = 3 xi + eta, y = xi^2 + 2 eta at nodes -1, 0, 1 either way: r_x = (3, 0),
  // r_e = (1, 2), r_xx = (0, 2), r_ee = r_xe = 0.
  std::vector<Point> fixed;
  for (int j = -1; j <= 1; ++j)
    for (int i = -1; i <= 1; ++i) fixed.push_back({3.0 * i + j, i * i + 2.0 * j});
  const double phi = 0.5, psi = -0.25, scale = 2, x[] = {0, 0};
  const PoissonRows rows{3, 3, false, {}, {fixed.data()}, {&phi}, {&psi}, {&scale}};
  const double alpha = 5, gamma = 9;
  EXPECT_EQ(rows.residual(0, View<const double>{x}), 2 * (alpha * 0.5 * 3 + gamma * -0.25 * 1));
  EXPECT_EQ(rows.residual(1, View<const double>{x}), 2 * (alpha * 2 + gamma * -0.25 * 2));
}

TEST(PoissonRows, AMixedDerivativeCountsTwiceBeta) {
  // x = xi + eta, y = xi eta + eta: r_x = (1, 0), r_e = (1, 1), r_xe = (0, 1).
  std::vector<Point> fixed;
  for (int j = -1; j <= 1; ++j)
    for (int i = -1; i <= 1; ++i) fixed.push_back({double(i + j), double(i * j + j)});
  const double zero = 0, scale = 1, x[] = {0, 0};
  const PoissonRows rows{3, 3, false, {}, {fixed.data()}, {&zero}, {&zero}, {&scale}};
  EXPECT_EQ(rows.residual(0, View<const double>{x}), 0);
  EXPECT_EQ(rows.residual(1, View<const double>{x}), -2);
}

TEST(Unknowns, GoThereAndBack) {
  for (const auto topology : {Grid::Topology::O, Grid::Topology::C}) {
    Grid grid{topology, 7, 5, 1, std::vector<Point>(35)};
    for (std::size_t k = 0; k < 35; ++k) grid.node[k] = {double(k), -double(k)};
    if (topology == Grid::Topology::O)
      for (Index j = 0; j < 5; ++j) grid.at(6, j) = {grid.at(0, j).x + 100, grid.at(0, j).y};
    const std::vector<double> x = unknowns_of(grid);
    EXPECT_EQ(x.size(), topology == Grid::Topology::O ? 36u : 30u);
    Grid other = grid;
    for (Index j = 1; j < 4; ++j)
      for (Index i = topology == Grid::Topology::O ? 0 : 1; i < (topology == Grid::Topology::O ? 7 : 6); ++i)
        other.at(i, j) = {};
    set_unknowns(x, other, {100, 0});
    for (std::size_t k = 0; k < 35; ++k) {
      EXPECT_EQ(other.node[k].x, grid.node[k].x) << k;
      EXPECT_EQ(other.node[k].y, grid.node[k].y) << k;
    }
  }
}

TEST(RowScale, IsTheCellsSideToTheMinusThird) {
  Grid grid{Grid::Topology::C, 4, 4, 0, {}};
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 4; ++i) grid.node.push_back({3.0 * i, 4.0 * j});
  for (const double s : row_scale(grid)) EXPECT_DOUBLE_EQ(s, 1 / 125.0);
}

/// A smooth mapping of (xi, eta), both from 0 to 1.
using Mapping = Point (*)(double, double);

Point twisted_square(double s, double t) {
  return {s + 0.15 * std::sin(pi * s) * std::sin(2 * t + 0.3),
          t + 0.1 * std::sin(3 * s) * std::cos(pi * t) + 0.1 * s * s};
}

Point swirling_ring(double s, double t) {
  const double turn = 2 * pi * s + 0.5 * t * t + 0.1 * std::sin(2 * pi * s),
               radius = std::exp(1.2 * t) + 0.1 * std::cos(4 * pi * s);
  return {radius * std::cos(turn), -radius * std::sin(turn)};
}

/// Largest distance of the discrete solution from the mapping, whose phi and psi are exact but for 1e-9.
double error_of(Mapping mapping, bool periodic, Index cells) {
  const Index ni = cells + 1, nj = cells + 1;
  Grid grid{periodic ? Grid::Topology::O : Grid::Topology::C, ni, nj, 0, {}};
  const double k = 1.0 / cells, h = 1e-3;
  for (Index j = 0; j < nj; ++j)
    for (Index i = 0; i < ni; ++i) grid.node.push_back(mapping(i * k, j * k));
  std::vector<double> phi, psi;
  for (Index j = 1; j + 1 < nj; ++j)
    for (Index i = periodic ? 0 : 1; i + 1 < ni; ++i) {
      const auto at = [&](int a, int b) {
        const Point p = mapping(i * k + a * h, j * k + b * h);
        return Complex(p.x, p.y);
      };
      // Fourth order in h, and per node: derivatives times k.
      const auto first = [&](auto f) { return k / h * (8.0 * (f(1) - f(-1)) - (f(2) - f(-2))) / 12.0; };
      const auto second = [&](auto f) {
        return k * k / (h * h) * (16.0 * (f(1) + f(-1)) - (f(2) + f(-2)) - 30.0 * f(0)) / 12.0;
      };
      const Complex x = first([&](int a) { return at(a, 0); }), e = first([&](int b) { return at(0, b); });
      const Complex xx = second([&](int a) { return at(a, 0); }), ee = second([&](int b) { return at(0, b); });
      const Complex xe = first([&](int a) { return first([&](int b) { return at(a, b); }); });
      const double alpha = std::norm(e), beta = std::real(x * std::conj(e)), gamma = std::norm(x);
      const Complex rest = -(alpha * xx - 2 * beta * xe + gamma * ee);
      const double area = std::imag(std::conj(x) * e);
      phi.push_back(std::imag(std::conj(rest) * e) / area / alpha);
      psi.push_back(std::imag(std::conj(x) * rest) / area / gamma);
    }
  const std::vector<double> scale = row_scale(grid), exact = unknowns_of(grid);
  const RowEquations<PoissonRows> equations(
      {ni, nj, periodic, {}, {grid.node.data()}, {phi.data()}, {psi.data()}, {scale.data()}});
  NewtonOptions options;
  options.rtol = 1e-9;
  options.linear.device = "host";
  std::vector<double> x = exact;
  for (std::size_t n = 0; n < x.size(); ++n) x[n] += 0.1 * k * std::sin(double(n));
  EXPECT_EQ(NewtonSolver(equations, options).solve(x).status, Status::converged);
  double error = 0;
  for (std::size_t n = 0; n < x.size(); ++n) error = std::max(error, std::abs(x[n] - exact[n]));
  return error;
}

void expect_second_order(Mapping mapping, bool periodic) {
  const double coarse = error_of(mapping, periodic, 12), middle = error_of(mapping, periodic, 24),
               fine = error_of(mapping, periodic, 48);
  EXPECT_NEAR(coarse / middle, 4, 0.8) << coarse << ' ' << middle;
  EXPECT_NEAR(middle / fine, 4, 0.4) << middle << ' ' << fine;
}

TEST(PoissonSolution, OfACGridConvergesWithSecondOrder) { expect_second_order(twisted_square, false); }

TEST(PoissonSolution, OfAnOGridConvergesWithSecondOrder) { expect_second_order(swirling_ring, true); }

}  // namespace
}  // namespace krilu::grid
