// SPDX-License-Identifier: Apache-2.0
// When a method gives up before its limit: the rule itself, residual by residual, and its way through the driver.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "krylov/control.hpp"
#include "solver/engine.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using krylov::Control;
using krylov::Patience;
using krylov::Stop;

/// Iterations after which a method with this residual stops, and why.
std::pair<int, Stop> stop_of(const Patience& patience, const std::function<double(int)>& residual, double target = 1e-8,
                             int most = 5000) {
  std::vector<double> history(std::size_t(most) + 1);
  history[0] = residual(0);
  Monitor::Feed feed;
  Control<double> c;
  c.target = target;
  c.max_iterations = most;
  c.history = history.data();
  c.feed = &feed;
  c.wish = &feed.interrupt;
  c.patience = patience;
  while (!c.record(residual(c.iteration + 1))) {
  }
  return {c.iteration, c.reason};
}

TEST(Patience, WithoutAWindowNothingIsGivenUp) {
  EXPECT_EQ(stop_of({}, [](int) { return 1.0; }), std::pair(5000, Stop::limit));
}

TEST(Patience, WhatDoesNotMoveIsGivenUpAtTheFirstLook) {
  EXPECT_EQ(stop_of({50, 20, 400}, [](int) { return 1.0; }), std::pair(50, Stop::slow));
  EXPECT_EQ(stop_of({50, 20, 400}, [](int k) { return 1.0 + k; }), std::pair(50, Stop::slow));
  EXPECT_EQ(stop_of({50, 20, 400}, [](int k) { return k == 30 ? 0.95 : 1.0; }), std::pair(50, Stop::slow));
}

TEST(Patience, AHumpThatIsBehindAtTheFirstLookIsForgiven) {
  // Up to 10 at 25, below 1 after 55, then down to 1e-8 at 145.
  const auto hump = [](int k) { return k < 25 ? std::pow(10.0, k / 25.0) : std::pow(10.0, 1 - 0.075 * (k - 25)); };
  EXPECT_EQ(stop_of({50, 50, 400}, [&](int k) { return k > 45 ? hump(k) + 1 : hump(k); }).second, Stop::slow);
  EXPECT_EQ(stop_of({.first = 33, .window = 50, .most = 400, .hump = 0.25}, hump).second, Stop::slow) << "still high";
  EXPECT_EQ(stop_of({.first = 34, .window = 50, .most = 400, .hump = 0.25}, hump).second, Stop::target);
  EXPECT_EQ(stop_of({.first = 34, .window = 50, .most = 400}, hump), std::pair(34, Stop::slow));
  // At later looks nothing is forgiven.
  const auto again = [&](int k) { return k < 60 ? hump(k) : hump(60) * (k < 80 ? 1000 : 1); };
  EXPECT_EQ(stop_of({.first = 50, .window = 50, .most = 4000, .hump = 0.25}, again), std::pair(150, Stop::slow));
}

TEST(Patience, WhatArrivesInTimeIsLeftAlone) {
  const auto rate = [](double decades, int iterations) {
    return [=](int k) { return std::pow(10.0, -decades * k / iterations); };
  };
  EXPECT_EQ(stop_of({50, 20, 400}, rate(8, 390)).second, Stop::target);
  EXPECT_EQ(stop_of({50, 20, 400}, rate(8, 500)), std::pair(70, Stop::slow)) << "the first look allows twice as many";
  EXPECT_EQ(stop_of({50, 20, 400}, rate(8, 900)), std::pair(50, Stop::slow));
}

TEST(Patience, APlateauBeforeTheFirstLookCostsNothing) {
  const auto late = [](int k) { return k < 45 ? 1.0 : std::pow(10.0, -0.2 * (k - 45)); };
  EXPECT_EQ(stop_of({50, 20, 400}, late).second, Stop::target);
}

TEST(Patience, WhatStopsMovingIsGivenUpAtTheNextLook) {
  const auto stuck = [](int k) { return std::pow(10.0, -0.1 * std::min(k, 60)); };
  EXPECT_EQ(stop_of({50, 20, 400}, stuck), std::pair(90, Stop::slow));
}

TEST(Patience, JumpsAreJudgedByTheLeastResidual) {
  const auto jumping = [](int k) { return (k % 7 == 0 ? 1e3 : 1.0) * std::pow(10.0, -0.08 * k); };
  EXPECT_EQ(stop_of({50, 20, 400}, jumping).second, Stop::target);
}

TEST(Patience, EndsASolveWithItsBestIterate) {
  const CsrMatrix a = generate("gen:poisson2d:60x60");
  const auto b = test::random_values(std::size_t(a.rows), 3);
  for (const char* device : {"host", "emulated"})
    for (const char* method : {"cg", "bicgstab", "gmres"}) {
      SCOPED_TRACE(std::string(device) + " " + method);
      Options o;
      o.solver = method;
      o.precond = "none";
      o.device = device;
      o.restart = 5;
      Solver solver(o);
      solver.setup(a);
      solver::Inside::engine(solver).set_patience({20, 10, 40});
      std::vector<double> x(std::size_t(a.rows), 0.0);
      const Result r = solver.solve(b, x);
      EXPECT_EQ(r.status, Status::max_iterations);
      EXPECT_GE(r.iterations, 20);
      EXPECT_LE(r.iterations, 60);
      EXPECT_LE(r.relative_residual, 1.0);
      EXPECT_NEAR(r.relative_residual, test::true_residual(a, x, b), 1e-10);
      solver::Inside::engine(solver).set_patience({});
      EXPECT_EQ(solver.solve(b, x).status, Status::converged);
    }
}

}  // namespace
