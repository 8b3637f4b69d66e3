// SPDX-License-Identifier: Apache-2.0
// Forcing terms against numbers worked out by hand: both choices of Eisenstat and Walker, their safeguards and caps,
// what the target allows; names that are refused.
#include "newton/forcing.hpp"

#include "newton/systems.hpp"

namespace krilu::test {
namespace {

using newton::Forcing;
using newton::forcing_by_name;
using Kind = newton::ForcingRule::Kind;

TEST(ForcingNames, AreTheThreeKinds) {
  EXPECT_EQ(forcing_by_name("eisenstat-walker-1").kind, Kind::choice_1);
  EXPECT_EQ(forcing_by_name("eisenstat-walker-2").kind, Kind::choice_2);
  EXPECT_EQ(forcing_by_name("fixed:1e-6").kind, Kind::fixed);
  EXPECT_EQ(forcing_by_name("fixed:1e-6").fixed, 1e-6);
  EXPECT_EQ(forcing_by_name("fixed:0.25").fixed, 0.25);
}

TEST(ForcingNames, OthersAreRefusedWithTheNearest) {
  expect_words(refusal([] { forcing_by_name("eisenstat-walker-3"); }),
               {"unknown forcing term 'eisenstat-walker-3'", "did you mean", "fixed"});
  expect_words(refusal([] { forcing_by_name("fixd:0.1"); }), {"'fixd'", "did you mean 'fixed'"});
  expect_words(refusal([] { forcing_by_name(""); }), {"unknown forcing term"});
}

TEST(ForcingNames, AFixedTermIsANumberBetweenZeroAndOne) {
  for (const char* name : {"fixed", "fixed:", "fixed:0", "fixed:1", "fixed:2", "fixed:-0.1", "fixed:nan", "fixed:inf",
                           "fixed:0.1x", "fixed: 0.1", "fixed:0.1:0.2"})
    expect_words(refusal([&] { forcing_by_name(name); }), {name, "fixed:ETA has a number between 0 and 1"});
}

TEST(ForcingNames, AChoiceTakesNoNumber) {
  for (const char* name : {"eisenstat-walker-1:0.5", "eisenstat-walker-2:", "eisenstat-walker-2:0.5"})
    expect_words(refusal([&] { forcing_by_name(name); }), {name});
}

TEST(FixedForcing, StaysAsItIs) {
  Forcing f({Kind::fixed, 1e-3}, 0.3, 0.9);
  EXPECT_EQ(f.next(1, 0.5), 1e-3);
  f.took(1, 0.1);
  EXPECT_EQ(f.next(1e-9, 1e-10), 1e-3);
}

TEST(ChoiceOne, IsWhatTheModelWasWrongBy) {
  Forcing f({Kind::choice_1}, 0.2, 0.9);
  EXPECT_EQ(f.next(2, 0), 0.2);
  f.took(2, 0.5);
  EXPECT_DOUBLE_EQ(f.next(0.7, 0), 0.1);  // |0.7 - 0.5| / 2; the safeguard 0.2^1.618 = 0.074 is none
  f.took(0.7, 0.07);
  EXPECT_DOUBLE_EQ(f.next(0.042, 0), 0.04);  // |0.042 - 0.07| / 0.7: better than the model counts as well
}

TEST(ChoiceOne, DoesNotFallMuchFasterThanItsOrder) {
  Forcing f({Kind::choice_1}, 0.5, 0.9);
  EXPECT_EQ(f.next(1, 0), 0.5);
  f.took(1, 0.5);
  const double order = (1 + std::sqrt(5.0)) / 2;
  const double second = std::pow(0.5, order);  // 0.3257
  EXPECT_NEAR(f.next(0.501, 0), second, 1e-15);
  f.took(0.501, 0.1);
  EXPECT_NEAR(f.next(0.101, 0), std::pow(second, order), 1e-15);  // 0.163
  f.took(0.101, 0.01);
  EXPECT_NEAR(f.next(0.0110101, 0), 0.0010101 / 0.101, 1e-15);  // 0.163^1.618 = 0.053 is no safeguard any more
}

TEST(ChoiceTwo, IsTheSquareOfTheReduction) {
  Forcing f({Kind::choice_2}, 0.3, 0.9);
  EXPECT_EQ(f.next(1, 0), 0.3);
  f.took(1, 0.3);
  EXPECT_DOUBLE_EQ(f.next(0.5, 0), 0.225);  // 0.9 / 4; the safeguard 0.9 * 0.09 = 0.081 is none
  f.took(0.5, 0.1);
  EXPECT_DOUBLE_EQ(f.next(0.1, 0), 0.036);  // 0.9 / 25
}

TEST(ChoiceTwo, DoesNotFallMuchFasterThanItsOrder) {
  Forcing f({Kind::choice_2}, 0.9, 0.9);
  f.next(1, 0);
  double before = 0.9, norm = 1;
  for (int k = 0; k < 3; ++k) {
    f.took(norm, 0);
    norm *= 1e-3;
    const double eta = f.next(norm, 0);
    EXPECT_NEAR(eta, 0.9 * before * before, 1e-15);  // 0.729, 0.478, 0.206
    before = eta;
  }
  f.took(norm, 0);
  EXPECT_NEAR(f.next(1e-3 * norm, 0), 0.9e-6, 1e-18);  // 0.9 * 0.206^2 = 0.038 is no safeguard any more
}

TEST(BothChoices, StayBelowTheMost) {
  for (const Kind kind : {Kind::choice_1, Kind::choice_2})
    for (const double most : {0.9, 0.4}) {
      Forcing f({kind}, 0.3, most);
      f.next(1, 0);
      f.took(1, 0.3);
      EXPECT_EQ(f.next(5, 0), most) << "||F|| grew";
      Forcing bold({kind}, 0.8, most);
      EXPECT_EQ(bold.next(1, 0), std::min(most, 0.8));
    }
}

TEST(BothChoices, AskForNoMoreThanHalfOfWhatRemains) {
  for (const Kind kind : {Kind::choice_1, Kind::choice_2}) {
    Forcing f({kind}, 0.1, 0.9);
    EXPECT_DOUBLE_EQ(f.next(1, 0.5), 0.25);  // the first step too
    f.took(1, 0.001);
    EXPECT_DOUBLE_EQ(f.next(0.002, 0.001), 0.25);
    f.took(0.002, 0.0010001);
    EXPECT_DOUBLE_EQ(f.next(0.0010001, 0.001), 0.5 / 1.0001);
  }
}

TEST(BothChoices, KeepToTheirBoundsWhateverHappens) {
  std::mt19937_64 engine(71);
  std::uniform_real_distribution<double> power(-4, 0.5), part(0, 1);
  for (const Kind kind : {Kind::choice_1, Kind::choice_2})
    for (int go = 0; go < 200; ++go) {
      const double first = 0.05 + 0.9 * part(engine), most = 0.5 + 0.49 * part(engine), target = 1e-8;
      Forcing f({kind}, first, most);
      double norm = 1;
      for (int k = 0; k < 20 && norm > target; ++k) {
        const double eta = f.next(norm, target);
        ASSERT_GT(eta, 0);
        ASSERT_LE(eta, most);
        ASSERT_GE(eta * norm, 0.5 * target * (1 - 1e-14));
        f.took(norm, part(engine) * norm);
        norm *= std::pow(10, power(engine));
      }
    }
}

}  // namespace
}  // namespace krilu::test
