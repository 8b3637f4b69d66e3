// SPDX-License-Identifier: Apache-2.0
// Backtracking against parabolas worked out by hand and searched through: the length, its bounds, what is accepted,
// norms that are no numbers, and the end.
#include "newton/line_search.hpp"

#include "newton/systems.hpp"
#include "support/not_finite.hpp"

namespace krilu::test {
namespace {

using newton::Backtracking;

TEST(Backtracking, BeginsWithTheFullStep) { EXPECT_EQ(Backtracking(1, 0.1).length(), 1); }

TEST(Backtracking, AcceptsWhatFallsByAPartOfWhatTheModelPromises) {
  const Backtracking half(2, 0.5);  // at length 1: (1 - 1e-4 / 2) 2 = 1.9999
  EXPECT_TRUE(half.accepts(1.99989));
  EXPECT_FALSE(half.accepts(1.99991));
  EXPECT_FALSE(half.accepts(2));
  const Backtracking exact(2, 0);  // 1.9998
  EXPECT_TRUE(exact.accepts(1.99979));
  EXPECT_FALSE(exact.accepts(1.99981));
  Backtracking shorter(1, 0);
  ASSERT_TRUE(shorter.shorten(nan));  // length 1/2: 1 - 1e-4 / 2
  EXPECT_TRUE(shorter.accepts(0.999949));
  EXPECT_FALSE(shorter.accepts(0.999951));
}

TEST(Backtracking, AcceptsNoNormThatIsNoNumberAndNoneThatStays) {
  for (const double eta : {0.0, 0.5, 1.0, 3.0}) {  // a linear solver that reached nothing too
    EXPECT_FALSE(Backtracking(1, eta).accepts(nan));
    EXPECT_FALSE(Backtracking(1, eta).accepts(infinity));
    EXPECT_FALSE(Backtracking(1, eta).accepts(1));
    EXPECT_TRUE(Backtracking(1, eta).accepts(0.99));
  }
}

TEST(Backtracking, AcceptsNoNormThatStaysAtAnyLength) {
  // What little a short step has to gain must not get lost in rounding.
  for (const double eta : {0.0, 0.9, 1.0}) {
    Backtracking b(3, eta);
    do ASSERT_FALSE(b.accepts(3)) << "length " << b.length() << ", eta " << eta;
    while (b.shorten(nan));
  }
}

TEST(Backtracking, TakesTheParabolasMinimum) {
  // ||F||^2 = 1 with slope -2 at 0, and 4 at 1: 1 - 2 s + 5 s^2, least at 0.2.
  Backtracking b(1, 0);
  EXPECT_TRUE(b.shorten(2));
  EXPECT_DOUBLE_EQ(b.length(), 0.2);
  // 2.25 at 0.2: 1 - 2 s + 41.25 s^2, least at 1 / 41.25.
  EXPECT_TRUE(b.shorten(1.5));
  EXPECT_DOUBLE_EQ(b.length(), 1 / 41.25);
  // Another scale, and a model that promises half of it: 9 (1 - s + 3 s^2), 27 at 1.
  Backtracking c(3, 0.5);
  EXPECT_TRUE(c.shorten(std::sqrt(27.0)));
  EXPECT_DOUBLE_EQ(c.length(), 1.0 / 6);
}

TEST(Backtracking, StaysBetweenATenthAndAHalf) {
  Backtracking b(1, 0);
  EXPECT_TRUE(b.shorten(100));
  EXPECT_DOUBLE_EQ(b.length(), 0.1);
  EXPECT_TRUE(b.shorten(1));  // 1 - 2 s + 20 s^2: 0.05 is just the half
  EXPECT_DOUBLE_EQ(b.length(), 0.05);
  EXPECT_TRUE(b.shorten(0.97));  // least at 0.064
  EXPECT_DOUBLE_EQ(b.length(), 0.025);
  Backtracking concave(1, 0.9999);
  EXPECT_TRUE(concave.shorten(0.5));  // no minimum at all
  EXPECT_DOUBLE_EQ(concave.length(), 0.5);
}

TEST(Backtracking, HalvesWhereTheNormIsNoNumber) {
  for (const double bad : {nan, infinity, -infinity}) {
    Backtracking b(1, 0.3);
    for (double s = 0.5; s > 0.01; s *= 0.5) {
      EXPECT_TRUE(b.shorten(bad));
      EXPECT_EQ(b.length(), s);
    }
  }
}

TEST(Backtracking, GivesUpBelowTheShortestLength) {
  Backtracking b(1, 0);
  int tries = 0;
  while (b.shorten(nan)) ++tries;
  EXPECT_EQ(tries, 39);  // 2^-39 = 1.8e-12
  Backtracking fast(1, 0);
  tries = 0;
  while (fast.shorten(1e9)) ++tries;
  EXPECT_GE(tries, 11);
  EXPECT_LE(tries, 12);
}

TEST(Backtracking, IsNotConfusedByNormsWhoseSquaresAreNoNumbers) {
  for (const double norm : {1e-200, 1e-170, 1e170, 1e200}) {
    Backtracking b(norm, 0.1);
    double last = 1;
    for (int k = 0; k < 10; ++k) {
      ASSERT_TRUE(b.shorten(2 * norm));
      ASSERT_GE(b.length(), 0.1 * last * (1 - 1e-15));
      ASSERT_LE(b.length(), 0.5 * last);
      last = b.length();
    }
  }
}

TEST(Backtracking, NothingNearbyOnTheParabolaIsLess) {
  std::mt19937_64 engine(72);
  std::uniform_real_distribution<double> part(0, 1);
  int inside = 0;
  for (int go = 0; go < 500; ++go) {
    const double norm = std::pow(10, 8 * part(engine) - 4), eta = 0.95 * part(engine);
    Backtracking b(norm, eta);
    for (int k = 0; k < 4; ++k) {
      const double s = b.length(), there = norm * (1 + 3 * part(engine));
      const long double g0 = static_cast<long double>(norm) * norm,
                        slope = -2 * (1 - static_cast<long double>(eta)) * g0;
      const long double bend = (static_cast<long double>(there) * there - g0 - slope * s) / (s * s);
      const auto q = [&](long double t) { return g0 + slope * t + bend * t * t; };
      ASSERT_TRUE(b.shorten(there));
      const double next = b.length();
      ASSERT_GE(next, 0.1 * s * (1 - 1e-15));
      ASSERT_LE(next, 0.5 * s);
      const bool least = next<0.1001 * s, most = next> 0.4999 * s;
      inside += !least && !most;
      if (!least) {
        ASSERT_LE(q(next), q(0.99 * next));
      }
      if (!most) {
        ASSERT_LE(q(next), q(1.01 * next));
      }
    }
  }
  EXPECT_GT(inside, 100) << "too few lengths that no bound has cut";
}

}  // namespace
}  // namespace krilu::test
