// SPDX-License-Identifier: Apache-2.0
// Control terms: the base keeps a stretched line; corrections have the right sign and vanish where nothing is to be
// corrected; mirrored walls have mirrored terms.
#include "grid/control.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "grid/quality.hpp"

namespace krilu::grid {
namespace {

struct Made {
  GridOptions options;
  Start start;
  Grid plane;

  explicit Made(const char* shape, const char* topology = "O") {
    options.shape = shape;
    options.topology = topology;
    options.around = 65;
    options.outward = 33;
    options.wall_spacing = 1e-2;
    const Index cells = 64 - (options.topology == "C" ? 2 * wake_cells(65) : 0);
    start = start_grid(wall_points(curve_by_name(shape, "closed"), cells), options);
    plane = start.grid;
    for (std::size_t k = 0; k < plane.node.size(); ++k) plane.node[k] = point_of(start.zeta[k]);
  }
  /// The grid of a changed image.
  Grid grid() const {
    Grid g = start.grid;
    for (std::size_t k = 0; k < g.node.size(); ++k) g.node[k] = point_of(start.map.to_z(complex_of(plane.node[k])));
    return g;
  }
  Index begin() const { return options.topology == "O" ? 0 : 1; }
  Index columns() const { return 64 - begin(); }
};

TEST(Control, NoneIsNothing) {
  const Made made("naca:0012");
  Control control(made.start, "none", 0.25);
  control.update(made.start.grid, made.plane);
  ASSERT_EQ(control.phi().size(), std::size_t(64 * 31));
  for (const double v : control.phi()) EXPECT_EQ(v, 0);
  for (const double v : control.psi()) EXPECT_EQ(v, 0);
}

TEST(Control, BaseKeepsLinesWhoseImagesAreAlike) {
  // In a plane where all lines have the same places, smoothing along i changes nothing: psi is -s'' / s' of each.
  Made made("naca:0012");
  const Index nj = made.options.outward;
  for (Index j = 0; j < nj; ++j)
    for (Index i = 0; i < 65; ++i)
      made.start.zeta[std::size_t(j * 65 + i)] = Complex(0.1 * i, 0.01 * (std::pow(1.2, j) - 1));
  const Control control(made.start, "sorenson", 0.25);
  for (const double psi : control.psi()) EXPECT_NEAR(psi, -2 * 0.2 / 2.2, 1e-12);
}

TEST(Control, OfAMirroredWallIsMirrored) {
  for (const char* topology : {"O", "C"})
    for (const char* method : {"sorenson", "hilgenstock"}) {
      const Made made("naca:0012", topology);
      Control control(made.start, method, 0.25);
      for (int round = 0; round < 2; ++round) {
        const Index n = made.columns();
        for (Index j = 0; j < 31; ++j)
          for (Index k = 0; k < n; ++k) {
            const Index other = topology[0] == 'O' ? (n - k) % n : n - 1 - k;
            const auto a = std::size_t(j * n + k), b = std::size_t(j * n + other);
            EXPECT_NEAR(control.phi()[a], -control.phi()[b], 1e-9) << topology << method << k << ' ' << j;
            EXPECT_NEAR(control.psi()[a], control.psi()[b], 1e-9) << topology << method << k << ' ' << j;
          }
        control.update(made.start.grid, made.plane);
      }
    }
}

/// How the first line's terms answer to an image whose nodes `change` moves: a place, its height over the wall's image
/// and j.
template <class Change>
void expect_answer(const char* shape, Change change, bool of_psi, double sign) {
  for (const char* method : {"sorenson", "hilgenstock"}) {
    Made made(shape);
    Control as_it_is(made.start, method, 0.25), moved(made.start, method, 0.25);
    as_it_is.update(made.grid(), made.plane);
    for (Index j = 1; j + 1 < 33; ++j)
      for (Index i = 0; i < 65; ++i) {
        Point& p = made.plane.at(i, j);
        change(p, p.y - made.plane.at(i, 0).y, j);
      }
    moved.update(made.grid(), made.plane);
    for (Index i = 5; i < 60; ++i) {
      const double before = (of_psi ? as_it_is.psi() : as_it_is.phi())[std::size_t(i)];
      const double after = (of_psi ? moved.psi() : moved.phi())[std::size_t(i)];
      EXPECT_GT(sign * (after - before), 0) << method << ' ' << i;
    }
  }
}

TEST(Control, LowersPsiWhereTheFirstSpacingIsTooLarge) {
  expect_answer(
      "naca:2412", [](Point& p, double up, Index j) { p.y += 0.15 * up * std::exp(-0.1 * (j - 1)); }, true, -1);
}

TEST(Control, PushesBackLinesThatLean) {
  expect_answer(
      "naca:2412", [](Point& p, double up, Index j) { p.x += 0.1 * up * std::exp(-0.1 * j); }, false, -1);
}

TEST(Control, SaysHowFarOffAGridIs) {
  Made made("naca:0012");
  const Control control(made.start, "sorenson", 0.25);
  // Lines of the start are straight in the mapped plane and have the spacing that is asked for.
  EXPECT_LT(control.deviation(made.start.grid).spacing, 5e-3);
  Grid grid = made.start.grid;
  const Point wall = grid.at(20, 0), first = grid.at(20, 1);
  grid.at(20, 1) = {wall.x + 1.5 * (first.x - wall.x), wall.y + 1.5 * (first.y - wall.y)};
  EXPECT_NEAR(control.deviation(grid).spacing, 0.5, 1e-2);
  grid.at(20, 1) = {wall.x - (first.y - wall.y), wall.y + (first.x - wall.x)};
  EXPECT_NEAR(control.deviation(grid).angle, 90, 30);
}

TEST(Control, TakesHalfOfACoarserOnesTerms) {
  Made coarse("naca:0012"), fine("naca:0012");
  fine.options.around = 129;
  fine.options.outward = 65;
  fine.start = start_grid(wall_points(curve_by_name("naca:0012", "closed"), 128), fine.options);
  Control from(coarse.start, "hilgenstock", 0.5), to(fine.start, "hilgenstock", 0.25), untouched = to;
  const std::vector<double> psi = from.psi();
  Grid grid = coarse.start.grid;
  for (Index i = 0; i < 65; ++i) {
    const Point wall = grid.at(i, 0), first = grid.at(i, 1);
    grid.at(i, 1) = {wall.x + 1.2 * (first.x - wall.x), wall.y + 1.2 * (first.y - wall.y)};
  }
  from.update(grid, coarse.plane);
  to.take(from);
  for (Index i = 6; i < 58; ++i) {
    const double q = from.psi()[std::size_t(i)] - psi[std::size_t(i)];
    EXPECT_NEAR(q, -0.5 * std::log(1.2), 1e-3);
    EXPECT_NEAR(to.psi()[std::size_t(2 * i)] - untouched.psi()[std::size_t(2 * i)], 0.5 * q, 1e-6);
  }
}

}  // namespace
}  // namespace krilu::grid
