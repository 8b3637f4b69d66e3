// SPDX-License-Identifier: Apache-2.0
// What goes are asked for, how that follows what they reach, and where iterations end for it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "krylov/driver.hpp"

namespace krilu::test {
namespace {

using krylov::Control;
using krylov::StagePolicy;
using krylov::Stop;

/// What a control writes to.
struct Written {
  double history[200] = {};
  Monitor::Feed feed;
  int wish = 0;
  Control<double> control() {
    Control<double> c;
    c.max_iterations = 199;
    c.history = history;
    c.feed = &feed;
    c.wish = &wish;
    return c;
  }
};

StagePolicy refining(double floor, double least = 0) {
  return {.name = "p", .floor = floor, .least_floor = least, .fills = true, .refines = true};
}

TEST(AskedOf, IsTheTargetItselfWhereNothingRefines) {
  StagePolicy direct = refining(0.1);
  direct.refines = false;
  EXPECT_EQ(krylov::asked_of(direct, 1, 1e-12).norm, 1e-12);
  EXPECT_EQ(krylov::asked_of(direct, 1, 1e-12).further, 1e-12);
  EXPECT_EQ(krylov::asked_of(direct, 1, 0).norm, 0);
}

TEST(AskedOf, IsTheTargetWithAMarginWhereOneGoWillDo) {
  EXPECT_DOUBLE_EQ(krylov::asked_of(refining(0), 5, 1e-12).norm, 0.9e-12) << "no floor";
  EXPECT_DOUBLE_EQ(krylov::asked_of(refining(1e-4), 5, 5e-3).norm, 4.5e-3);
  EXPECT_LT(krylov::asked_of(refining(1e-4), 1, 1e-3).norm, 1e-3) << "a claim is a little off";
}

TEST(AskedOf, IsTheFirstOfEqualStepsNoneBeyondTheFloor) {
  for (const double floor : {0.5, 0.1, 3e-2, 1e-2, 1e-4, 1e-6})
    for (double target = 0.4; target > 1e-16; target *= 0.37)
      for (const double size : {1e-8, 1.0, 3e12}) {
        const StagePolicy p = refining(floor);
        double now = size, first = 0;
        int goes = 0;
        for (; now > target * size && goes < 200; ++goes) {
          const double asked = krylov::asked_of(p, now, target * size).norm;
          EXPECT_GE(asked, floor * now * (1 - 1e-12)) << "beyond the floor";
          EXPECT_LT(asked, now);
          EXPECT_GE(asked, 0.9 * target * size * (1 - 1e-12)) << "beyond the target";
          if (goes == 0) first = asked / now;
          EXPECT_NEAR(asked / now, first, 1e-9 * first) << "steps differ";
          now = asked;
        }
        EXPECT_NEAR(now, 0.9 * target * size, 1e-9 * target * size);
        // And no step more than needed.
        EXPECT_EQ(goes, int(std::ceil(std::log(0.9 * target) / std::log(floor) * (1 - 1e-12))));
      }
}

TEST(AskedOf, FurtherIsAStepOfOneGoLessAsFarAsAFloorMayEverGo) {
  for (const double target : {1e-3, 1e-5, 1e-8, 1e-11, 1e-14, 1e-20})
    for (const double least : {0.0, 1e-3, 1e-6}) {
      const StagePolicy p = refining(1e-2, least);
      const krylov::Asked asked = krylov::asked_of(p, 5, 5 * target);
      const double steps = std::round(std::log(0.9 * target) / std::log(asked.norm / 5));
      const double longer = steps > 1 ? std::pow(0.9 * target, 1 / (steps - 1)) : asked.norm / 5;
      SCOPED_TRACE(std::to_string(steps) + " steps, at least " + std::to_string(least));
      if (least > 0 && longer >= least) {
        EXPECT_NEAR(asked.further, 5 * longer, 1e-12 * longer);
        EXPECT_EQ(asked.few, int(-3 * std::log10(asked.norm / 5) * (1 + 1e-12)));
      } else {
        EXPECT_EQ(asked.further, asked.norm);
      }
    }
}

TEST(AskedOf, FillingIsTheFloor) {
  for (const double target : {1e-3, 1e-5, 1e-8, 1e-14})
    for (const double least : {0.0, 1e-6}) {
      const krylov::Asked asked = krylov::asked_of(refining(1e-2, least), 5, 5 * target);
      EXPECT_DOUBLE_EQ(asked.filling, 5e-2) << target;
      EXPECT_LE(asked.filling, asked.norm) << target;
    }
  EXPECT_DOUBLE_EQ(krylov::asked_of(refining(1e-2, 1e-6), 5, 0.1).filling, 0.9 * 0.1) << "one go will do";
  EXPECT_EQ(krylov::asked_of(refining(0), 5, 1e-12).filling, 0.9e-12);
  StagePolicy direct = refining(1e-2, 1e-6);
  direct.refines = false;
  EXPECT_EQ(krylov::asked_of(direct, 1, 1e-12).filling, 1e-12);
  StagePolicy careful = refining(1e-2, 1e-6);
  careful.fills = false;
  EXPECT_EQ(krylov::asked_of(careful, 5, 5e-8).filling, krylov::asked_of(careful, 5, 5e-8).norm);
}

TEST(AskedOf, AnOpeningIsEnoughWhereItIsLess) {
  StagePolicy p = refining(1e-5, 1e-6);
  EXPECT_EQ(krylov::asked_of(p, 5, 5e-12).opening, 0);
  p.opening = 0.1;
  const krylov::Asked asked = krylov::asked_of(p, 5, 5e-12);
  EXPECT_DOUBLE_EQ(asked.opening, 0.5);
  p.opening = 0;
  EXPECT_EQ(krylov::asked_of(p, 5, 5e-12).norm, asked.norm);
  p.opening = 9e-4;
  EXPECT_EQ(krylov::asked_of(p, 5, 5e-12).opening, 0) << "three equal steps are ten times that, nearly";
  EXPECT_EQ(krylov::asked_of(p, 5, 1e-3).opening, 0) << "one go will do";
  p.floor = 0;
  EXPECT_DOUBLE_EQ(krylov::asked_of(p, 5, 5e-12).opening, 4.5e-3) << "no floor";
  p.refines = false;
  EXPECT_EQ(krylov::asked_of(p, 5, 5e-12).opening, 0);
}

// Conditioned well enough for a few iterations a go, a system has fewer goes; and no more of them where it is not.
TEST(Goes, GoFurtherWhereFewIterationsDo) {
  Written written;
  const auto stops_after = [&](double reduction) {  // of an iteration
    Control<double> c = written.control();
    c.target = 1e-4;
    c.further = 1e-6;
    c.early = 5;
    for (double norm = reduction; c.reason == Stop::none; norm *= reduction) {
      const bool met = c.is_met_by(norm);
      EXPECT_EQ(c.record(norm), met);
    }
    EXPECT_EQ(c.reason, Stop::target);
    return c.iteration;
  };
  EXPECT_EQ(stops_after(0.9e-6), 1) << "both at once";
  EXPECT_EQ(stops_after(0.9e-4), 2) << "the further one in the next";
  EXPECT_EQ(stops_after(0.09), 6) << "first met after four";
  EXPECT_EQ(stops_after(0.15), 8) << "first met after five";
  EXPECT_EQ(stops_after(0.2), 6) << "not met by then";
}

// A first go that is slow ends where it has come as far as an opening, and is not asked again.
TEST(Goes, OpenWhereThatTakesManyIterations) {
  Written written;
  const auto stops_after = [&](double reduction, int slow) {
    Control<double> c = written.control();
    c.target = 1e-6;
    c.further = 1e-9;
    c.early = 1;
    c.opening = 0.1;
    c.slow = slow;
    for (double norm = reduction; c.reason == Stop::none; norm *= reduction) c.record(norm);
    EXPECT_EQ(c.reason, Stop::target);
    return c.iteration;
  };
  EXPECT_EQ(stops_after(0.7, 0), 7);
  EXPECT_EQ(stops_after(0.7, 7), 7);
  EXPECT_EQ(stops_after(0.7, 8), 39) << "the opening was met before that";
  EXPECT_EQ(stops_after(1e-7, 0), 2) << "both at once: the further target";
  EXPECT_EQ(stops_after(1e-7, 9), 2);
  EXPECT_EQ(stops_after(1e-10, 0), 1);
}

// What the newest iteration ended with may turn out to be less than was recorded.
TEST(Goes, EndWhereTheLastNormWasLessThanWasClaimed) {
  Written written;
  Control<double> c = written.control();
  c.target = 1e-4;
  c.further = 1e-6;
  c.scale = 10;
  EXPECT_EQ(c.record(1e-2), 0);
  EXPECT_EQ(c.amend(1e-3), 0);
  EXPECT_EQ(c.iteration, 1);
  EXPECT_EQ(c.norm, 1e-3);
  EXPECT_EQ(written.history[1], 1e-2);
  EXPECT_EQ(c.least, 1e-2);
  Control<double> other = c, broken = c;
  EXPECT_EQ(broken.amend(std::nan("")), 1);
  EXPECT_EQ(broken.reason, Stop::not_finite);
  EXPECT_EQ(other.amend(1e-4), 1) << "met, and not early";
  EXPECT_EQ(other.reason, Stop::target);
  // The first target was met early, and further is asked for; unless nothing more comes.
  c.early = 2;
  EXPECT_EQ(c.record(1e-4, 5), 0);
  EXPECT_TRUE(c.reached);
  EXPECT_EQ(c.amend(1e-5, 5), 0);
  other = c;
  EXPECT_EQ(other.amend(1e-6, 5), 1);
  EXPECT_EQ(c.amend(1e-5, 0), 1) << "no room";
  EXPECT_EQ(c.reason, Stop::target);
}

// A go that meets its target with less room left than it took fills what is kept; others leave the room to the next.
TEST(Goes, FillWhatHasNoRoomForAnother) {
  Written written;
  // 10 iterations are kept; reduction: of an iteration, and `later` of one behind the target.
  const auto stops_after = [&](double reduction, double filling, double later, int before) {
    Control<double> c = written.control();
    c.target = 1e-4;
    c.filling = filling;
    c.begun = c.iteration = before;
    written.history[before] = 1;
    int room = 10;
    for (double norm = 1; c.reason == Stop::none;) {
      norm *= norm > 1e-4 ? reduction : later;
      if (room == 0) room = 10;  // begun anew
      c.record(norm, --room);
    }
    EXPECT_EQ(c.reason, Stop::target);
    return c.iteration - before;
  };
  for (const int before : {0, 7}) {
    EXPECT_EQ(stops_after(0.09, 0, 0.09, before), 4) << "room for 6";
    EXPECT_EQ(stops_after(0.15, 0, 0.15, before), 10) << "for 5, of which a residual takes one";
    EXPECT_EQ(stops_after(0.2, 0, 0.2, before), 10) << "for 4 of 6: no more room";
    EXPECT_EQ(stops_after(0.2, 0.9e-7, 0.2, before), 10) << "nearly as far as that";
    EXPECT_EQ(stops_after(0.2, 1.2e-7, 0.2, before), 6) << "as far as that, and room left";
    EXPECT_EQ(stops_after(0.2, 0.9e-7, 0.1, before), 9) << "at a better pace, no further than that";
    EXPECT_EQ(stops_after(0.2, 0.9e-7, 0.9, before), 10);
    EXPECT_EQ(stops_after(0.2, std::numeric_limits<double>::infinity(), 0.2, before), 6) << "as where nothing is kept";
    EXPECT_EQ(stops_after(0.39, 0, 0.39, before), 10) << "no room, exactly";
    EXPECT_EQ(stops_after(0.5, 0, 0.5, before), 20) << "on the way for the second time";
    EXPECT_EQ(stops_after(0.5, 1e-5, 0.5, before), 14);
  }
}

TEST(AskedOf, OfATargetOfZeroIsTheFloor) { EXPECT_DOUBLE_EQ(krylov::asked_of(refining(1e-3), 7, 0).norm, 7e-3); }

TEST(Adapt, LeavesAFloorThatIsToStay) {
  for (const double reached : {1e-9, 1e-3, 0.9, 2.0}) {
    StagePolicy p = refining(1e-3);
    krylov::adapt(p, 1e-3, reached);
    EXPECT_EQ(p.floor, 1e-3);
  }
}

TEST(Adapt, FollowsWhatGoesReachBetweenItsBounds) {
  StagePolicy p = refining(1e-3, 1e-5);
  krylov::adapt(p, 1e-3, 1.2e-3);  // as asked, nearly: bolder
  EXPECT_DOUBLE_EQ(p.floor, 1e-4);
  krylov::adapt(p, 1e-4, 1e-4);
  krylov::adapt(p, 1e-5, 1e-5);
  krylov::adapt(p, 1e-5, 1e-5);
  EXPECT_DOUBLE_EQ(p.floor, 1e-5) << "not below the least";
  krylov::adapt(p, 1e-5, 3e-4);  // short of it
  EXPECT_DOUBLE_EQ(p.floor, 3e-4);
  krylov::adapt(p, 3e-4, 0.97);
  EXPECT_DOUBLE_EQ(p.floor, 0.5) << "not above one half";
  p.floor = 0.1;
  krylov::adapt(p, 0.3, 0.3);  // asked for little and got it: nothing was learnt
  EXPECT_DOUBLE_EQ(p.floor, 0.1);
}

TEST(AskedOf, AnOpeningIsWhatEndedAGoThatClaimsNoMore) {
  const krylov::Asked asked{1e-4, 1e-4, 0, 1e-4, 0.1};
  EXPECT_TRUE(krylov::has_opened(asked, 0.08));
  EXPECT_TRUE(krylov::has_opened(asked, 0.1 * (1 + 1e-7))) << "rounded to single precision";
  EXPECT_FALSE(krylov::has_opened(asked, 1e-4)) << "it met all that was asked for";
  EXPECT_FALSE(krylov::has_opened(asked, 0.3)) << "it ended for another reason";
  EXPECT_FALSE(krylov::has_opened(asked, std::nan("")));
  EXPECT_FALSE(krylov::has_opened({1e-4, 1e-4, 0, 1e-4, 0}, 0.08)) << "none was asked for";
}

TEST(Adapt, OpeningsAreTheFirstGoesAlone) {
  StagePolicy p = refining(1e-5, 1e-6);
  p.opening = 0.1;
  p.slow = 12;
  krylov::adapt(p, 1e-4, 0.09, true);
  EXPECT_DOUBLE_EQ(p.opening, 1e-3);
  EXPECT_EQ(p.slow, 0) << "the first one has shown it";
  EXPECT_DOUBLE_EQ(p.floor, 1e-5) << "nothing was learnt of that";
  StagePolicy other = p;
  krylov::adapt(other, 1e-4, 9e-4, true);
  EXPECT_EQ(other.opening, 0) << "the second is the last";
  krylov::adapt(p, 1e-4, 1e-4);
  EXPECT_EQ(p.opening, 0);
  p.opening = 0.1;
  p.floor = 1e-5;
  krylov::adapt(p, 1e-5, 3e-4);  // beyond the opening at once, as few iterations do it
  EXPECT_EQ(p.opening, 0);
  EXPECT_DOUBLE_EQ(p.floor, 3e-4);
}

}  // namespace
}  // namespace krilu::test
