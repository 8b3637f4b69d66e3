// SPDX-License-Identifier: Apache-2.0
// Whole grids, small: what is promised of them, the logarithmic solution round a circle, refusals in sentences.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numbers>

#include "grid/quality.hpp"
#include "krilu/error.hpp"
#include "krilu/grid.hpp"

namespace krilu::grid {
namespace {

using std::numbers::pi;

GridOptions small(const std::string& shape, const std::string& topology, double spacing) {
  GridOptions o;
  o.shape = shape;
  o.topology = topology;
  o.around = 65;
  o.outward = 33;
  o.wall_spacing = spacing;
  o.newton.linear.threads = 1;
  return o;
}

void expect_good(const GridOptions& o, const std::string& what) {
  const GridResult r = elliptic_grid(o);
  EXPECT_EQ(r.status, Status::converged) << what << (r.notes.empty() ? "" : ": " + r.notes.back());
  EXPECT_EQ(r.quality.folded_cells, 0) << what;
  EXPECT_GT(r.quality.smallest_jacobian, 0) << what;
  EXPECT_LT(r.quality.wall_deviation, 5) << what;
  EXPECT_GT(r.quality.least_wall_spacing, 0.95 * o.wall_spacing) << what;
  EXPECT_LT(r.quality.largest_wall_spacing, 1.05 * o.wall_spacing) << what;
  EXPECT_FALSE(r.newton.empty()) << what;
  EXPECT_LT(r.newton.back().residual, 1e-8) << what;
}

TEST(EllipticGrid, KeepsItsPromisesRoundSections) {
  for (const char* shape : {"naca:0012", "naca:4412", "naca:0020"})
    for (const char* topology : {"O", "C"})
      for (const double spacing : {1e-2, 1e-3, 1e-5})
        expect_good(small(shape, topology, spacing), std::string(shape) + topology + std::to_string(spacing));
}

TEST(EllipticGrid, OverRanksIsTheSameGridOnAll) {
  for (const char* control : {"none", "sorenson"}) {
    GridOptions o = small("naca:2412", control == std::string("none") ? "O" : "C", 1e-3);
    o.control = control;
    o.newton.linear.device = "host";
    // Control terms that were updated after solves of other roundings end elsewhere within their tolerance.
    const double near = control == std::string("none") ? 1e-6 : 0.01;
    const GridResult alone = elliptic_grid(o);
    ASSERT_EQ(alone.status, Status::converged);
    for (const int ranks : {2, 3}) {
      std::vector<GridResult> all(std::size_t(ranks), GridResult{});
      run_ranks(ranks,
                [&](const std::shared_ptr<Communicator>& c) { all[std::size_t(c->rank())] = elliptic_grid(o, {}, c); });
      for (const GridResult& r : all) {
        EXPECT_EQ(r.status, Status::converged);
        ASSERT_EQ(r.grid.node.size(), alone.grid.node.size());
        double off = 0;
        bool same = true;
        for (std::size_t k = 0; k < r.grid.node.size(); ++k) {
          const Point &p = r.grid.node[k], &q = alone.grid.node[k], &of_first = all[0].grid.node[k];
          off = std::max({off, std::abs(p.x - q.x), std::abs(p.y - q.y)});
          same = same && p.x == of_first.x && p.y == of_first.y;
        }
        EXPECT_TRUE(same);
        EXPECT_LT(off, near);
      }
    }
  }
}

TEST(EllipticGrid, OneRankThatIsToldToStopStopsAll) {
  const GridOptions o = small("naca:0012", "O", 1e-3);
  std::vector<Status> ended(2);
  run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
    ended[std::size_t(c->rank())] = elliptic_grid(
                                        o, [&](const GridUpdate& u) { return !(c->rank() == 1 && u.update == 2); }, c)
                                        .status;
  });
  for (const Status status : ended) EXPECT_EQ(status, Status::interrupted);
}

TEST(EllipticGrid, AnyStepOfNewtonsMethodMayBeTheLast) {
  GridOptions o = small("naca:0012", "O", 1e-3);
  o.control = "none";
  int steps = 0;
  const GridResult whole = elliptic_grid(o, {}, nullptr, [&] { return ++steps > 0; });
  ASSERT_EQ(whole.status, Status::converged);
  ASSERT_GT(steps, 3);
  for (const int most : {1, 3}) {
    int asked = 0;
    EXPECT_EQ(elliptic_grid(o, {}, nullptr, [&] { return ++asked < most; }).status, Status::interrupted);
    EXPECT_EQ(asked, most);
    std::vector<Status> ended(2);
    run_ranks(2, [&](const std::shared_ptr<Communicator>& c) {
      int mine = 0;
      const auto go_on = [&] { return c->rank() == 0 || ++mine < most; };
      ended[std::size_t(c->rank())] = elliptic_grid(o, {}, c, go_on).status;
    });
    for (const Status status : ended) EXPECT_EQ(status, Status::interrupted);
  }
}

TEST(EllipticGrid, KeepsItsPromisesRoundABase) {
  GridOptions o = small("naca:0012", "O", 1e-3);
  o.trailing_edge = "open";
  expect_good(o, "O");
}

TEST(EllipticGrid, KeepsItsPromisesByHilgenstocksRule) {
  for (const char* topology : {"O", "C"}) {
    GridOptions o = small("naca:2412", topology, 1e-3);
    o.control = "hilgenstock";
    expect_good(o, topology);
  }
}

TEST(EllipticGrid, GoesFromCoarserGridsToFinerOnes) {
  GridOptions o = small("naca:0012", "O", 1e-4);
  o.around = 129;
  o.outward = 65;
  expect_good(o, "two levels");
}

TEST(EllipticGrid, MirrorsItselfWhereTheWallDoes) {
  for (const char* topology : {"O", "C"}) {
    const Grid grid = elliptic_grid(small("naca:0012", topology, 1e-3)).grid;
    for (Index j = 0; j < grid.nj; ++j)
      for (Index i = 0; i < grid.ni; ++i) {
        EXPECT_NEAR(grid.at(i, j).x, grid.at(grid.ni - 1 - i, j).x, 1e-10);
        EXPECT_NEAR(grid.at(i, j).y, -grid.at(grid.ni - 1 - i, j).y, 1e-10);
      }
  }
}

TEST(EllipticGrid, ConvergesFastWithControlTermsHeldFixed) {
  GridOptions o = small("naca:0012", "O", 1e-3);
  o.newton.forcing = "fixed:1e-10";
  o.max_updates = 0;
  const GridResult r = elliptic_grid(o);
  // Steps of nearly exact solves: each residual at most about the square of the one before.
  ASSERT_GE(r.newton.size(), 3u);
  for (std::size_t k = 2; k < r.newton.size(); ++k)
    if (r.newton[k].residual > 1e-11) {
      EXPECT_LT(r.newton[k].residual, 20 * r.newton[k - 1].residual * r.newton[k - 1].residual);
    }
}

TEST(EllipticGrid, IsTheSameForAnyNumberOfThreads) {
  GridOptions o = small("naca:2412", "O", 1e-3);
  const Grid one = elliptic_grid(o).grid;
  o.newton.linear.threads = 3;
  const Grid three = elliptic_grid(o).grid;
  for (std::size_t k = 0; k < one.node.size(); ++k) {
    EXPECT_EQ(one.node[k].x, three.node[k].x);
    EXPECT_EQ(one.node[k].y, three.node[k].y);
  }
}

TEST(EllipticGrid, AboveACutIsTheSameNodeTwice) {
  const Grid grid = elliptic_grid(small("naca:4412", "C", 1e-3)).grid;
  EXPECT_EQ(grid.wake, 12);
  for (Index i = 0; i <= grid.wake; ++i) {
    EXPECT_EQ(grid.at(i, 0).x, grid.at(grid.ni - 1 - i, 0).x);
    EXPECT_EQ(grid.at(i, 0).y, grid.at(grid.ni - 1 - i, 0).y);
  }
  for (Index j = 0; j < grid.nj; ++j) EXPECT_DOUBLE_EQ(grid.at(0, j).x, 21);
}

class Shapes : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "krilu-grid-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  std::string file(const std::vector<Point>& points) {
    const std::string path = (directory / "shape.dat").string();
    std::ofstream out(path);
    out << "made up\n";
    out.precision(17);
    for (const Point& p : points) out << p.x << ' ' << p.y << '\n';
    return path;
  }
  std::filesystem::path directory;
};

TEST_F(Shapes, WithoutControlLinesRoundACircleAreLogarithmic) {
  std::vector<Point> circle;
  for (int i = 0; i < 360; ++i) circle.push_back({std::cos(2 * pi * i / 360), std::sin(2 * pi * i / 360)});
  circle.push_back(circle[0]);
  GridOptions o = small(file(circle), "O", 1e-2);
  o.control = "none";
  const GridResult r = elliptic_grid(o);
  EXPECT_EQ(r.status, Status::converged);
  for (Index j = 0; j < 33; ++j)
    for (Index i = 0; i < 65; ++i) {
      const Point p = r.grid.at(i, j);
      const double radius = 0.5 * std::pow(40, j / 32.0);  // from 0.5 to 20
      EXPECT_NEAR(std::hypot(p.x - 0.5, p.y), radius, 2e-3 * radius) << i << ' ' << j;
    }
  EXPECT_LT(r.quality.mean_deviation, 0.5);
}

TEST_F(Shapes, WithCornersThatOpenInwardsAreNotFolded) {
  // A plus sign of arms 0.5 wide and 1 long each way, rounded by nothing.
  const double a = 0.25, b = 1;
  const std::vector<Point> corner{{b, -a}, {a, -a}, {a, -b}, {-a, -b}, {-a, -a}, {-b, -a}, {-b, a},
                                  {-a, a}, {-a, b}, {a, b},  {a, a},   {b, a},   {b, -a}};
  std::vector<Point> points;
  for (std::size_t k = 0; k + 1 < corner.size(); ++k)
    for (int s = 0; s < 10; ++s)
      points.push_back({corner[k].x + 0.1 * s * (corner[k + 1].x - corner[k].x),
                        corner[k].y + 0.1 * s * (corner[k + 1].y - corner[k].y)});
  points.push_back(points[0]);
  GridOptions o = small(file(points), "O", 2e-3);
  o.around = 193;
  o.outward = 49;
  const GridResult r = elliptic_grid(o);
  EXPECT_EQ(r.quality.folded_cells, 0);
  EXPECT_LT(r.quality.wall_deviation, 5);
}

TEST(EllipticGridProgress, IsCalledAndMayEndIt) {
  GridOptions o = small("naca:0012", "O", 1e-3);
  std::vector<GridUpdate> seen;
  const GridResult whole = elliptic_grid(o, [&](const GridUpdate& u) {
    seen.push_back(u);
    return true;
  });
  ASSERT_EQ(seen.size(), whole.history.size());
  EXPECT_EQ(seen.front().update, 0);
  EXPECT_LT(seen.back().wall_spacing_error, 0.05);
  EXPECT_LT(seen.back().wall_angle_error, 5);
  EXPECT_LT(seen.back().residual, seen.front().residual);

  int calls = 0;
  const GridResult ended = elliptic_grid(o, [&](const GridUpdate&) { return ++calls < 2; });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(ended.status, Status::interrupted);
  EXPECT_EQ(ended.grid.node.size(), std::size_t(65 * 33));

  o.around = 129;  // ended on the coarser grid, before this one's first solve
  o.outward = 65;
  const GridResult early = elliptic_grid(o, [](const GridUpdate&) { return false; });
  EXPECT_EQ(early.status, Status::interrupted);
  EXPECT_EQ(early.history.size(), 1u);
  ASSERT_EQ(early.grid.node.size(), std::size_t(129 * 65));
}

TEST(EllipticGridStatus, SaysThatUpdatesWereTooFew) {
  GridOptions o = small("naca:0012", "O", 1e-3);
  o.max_updates = 0;
  const GridResult r = elliptic_grid(o);
  EXPECT_EQ(r.status, Status::max_iterations);
  ASSERT_FALSE(r.notes.empty());
  EXPECT_NE(r.notes.back().find("after 0 updates"), std::string::npos);
}

std::string sentence(const GridOptions& o) {
  try {
    elliptic_grid(o);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(EllipticGridRefuses, InSentences) {
  const GridOptions good = small("naca:0012", "O", 1e-3);
  const auto with = [&](auto change) {
    GridOptions o = good;
    change(o);
    return sentence(o);
  };
  const auto says = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(with([](GridOptions& o) { o.topology = "H"; }), "topology");
  says(with([](GridOptions& o) { o.control = "sorensen"; }), "did you mean 'sorenson'");
  says(with([](GridOptions& o) { o.around = 8; }), "8 nodes around");
  says(with([](GridOptions& o) { o.around = o.outward = 1; }), "1 nodes around");
  says(with([](GridOptions& o) { o.around = -5; }), "-5 nodes around");
  says(with([](GridOptions& o) {
         o.topology = "C";
         o.around = 16;
       }),
       "make no C grid");
  says(with([](GridOptions& o) { o.outward = 4; }), "4 nodes outward");
  says(with([](GridOptions& o) { o.wall_spacing = 0; }), "must be positive");
  says(with([](GridOptions& o) { o.wall_spacing = -1e-3; }), "must be positive");
  says(with([](GridOptions& o) { o.wall_spacing = std::nan(""); }), "must be positive");
  says(with([](GridOptions& o) { o.wall_spacing = 1; }), "equal cells");
  says(with([](GridOptions& o) { o.far_field = 0.9; }), "far field");
  says(with([](GridOptions& o) { o.far_field = std::numeric_limits<double>::infinity(); }), "far field");
  says(with([](GridOptions& o) { o.max_updates = -1; }), "updates");
  says(with([](GridOptions& o) { o.tolerance = 0; }), "tolerance");
  says(with([](GridOptions& o) { o.around = o.outward = 20000; }), "2^31");
  says(with([](GridOptions& o) { o.shape = "naca:12"; }), "naca");
}

}  // namespace
}  // namespace krilu::grid
