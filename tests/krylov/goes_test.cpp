// SPDX-License-Identifier: Apache-2.0
// What the driver does between the goes of stages, the goes made up: in double when what was learnt is kept, when it is
// forgotten, and when that is the end; below that when goes that claim too much have the next stage take its turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "krylov/driver.hpp"
#include "support/support.hpp"

namespace krilu::test {
namespace {

using exec::Host;
using krylov::Outcome;
using krylov::Stop;

/// A = I.
class Identity final : public sparse::Operator<Host, double> {
 public:
  explicit Identity(Index rows) : rows_(rows) {}
  Index rows() const override { return rows_; }
  void apply(const double* x, double* y) const override {
    for (Index i = 0; i < rows_; ++i) y[i] = x[i];
  }
  void residual(const double* b, const double* x, double* r) const override {
    for (Index i = 0; i < rows_; ++i) r[i] = b[i] - x[i];
  }

 private:
  Index rows_;
};

constexpr Index unknowns = 5;

struct ScriptedGo {
  double gain;  // the residual after it, over that before
  Stop reason = Stop::target;
  double claimed = 0;  // what it takes that to be; 0: half of the target where it is met, else 1
};

/// Goes as they are written, the last one again and again. `log`: g for each go, f where it is told to forget.
class Scripted final : public krylov::Stage<Host, double> {
 public:
  Scripted(std::vector<ScriptedGo> goes, bool keeps, krylov::StagePolicy policy = {.name = "fp64"})
      : Stage(std::move(policy)), goes_(std::move(goes)), keeps_(keeps) {}
  void go(const double*, double* x, double* r, double* before, double two, krylov::Control<double>& control,
          const std::function<void()>& then) override {
    const ScriptedGo& next = goes_[std::min(gone_++, goes_.size() - 1)];
    log += 'g';
    if (before) std::copy(x, x + unknowns, before);
    for (Index i = 0; i < unknowns; ++i) x[i] += (1 - next.gain) * r[i];
    control.record(next.claimed > 0 ? next.claimed * two : next.reason == Stop::target ? 0.5 * control.target : two);
    control.reason = next.reason;
    then();
  }
  bool forget() override {
    log += 'f';
    return keeps_;
  }
  std::size_t bytes() const override { return 0; }
  std::string log;

 private:
  std::vector<ScriptedGo> goes_;
  bool keeps_;
  std::size_t gone_ = 0;
};

/// What the driver makes of these stages, one after the other.
Outcome through(const std::vector<krylov::Stage<Host, double>*>& stages, double rtol) {
  const Host space(1);
  const auto b = to_device(space, std::vector<double>(unknowns, 1.0)),
             x = to_device(space, std::vector<double>(unknowns, 0.0));
  krylov::Driver<Host, double> driver(space, unknowns);
  std::size_t begun = 0;
  Monitor monitor;
  return driver.run([&] { return begun < stages.size() ? stages[begun++] : nullptr; }, Identity(unknowns), b, x,
                    {.rtol = rtol, .max_iterations = 100}, monitor);
}

struct Ended {
  Outcome out;
  std::string log;
};
Ended run(std::vector<ScriptedGo> goes, bool keeps = true) {
  Scripted stage(std::move(goes), keeps);
  Outcome out = through({&stage}, 5e-6);
  return {std::move(out), stage.log};
}

TEST(Goes, KeepWhatWasLearntAsLongAsThatGains) {
  const Ended e = run({{1e-2}});
  EXPECT_EQ(e.out.status, Status::converged);
  EXPECT_EQ(e.log, "ggg");
}

TEST(Goes, AreTriedAnewWhereWhatWasLearntGainsNothing) {
  const Ended e = run({{1e-2}, {1}, {1e-5}});
  EXPECT_EQ(e.out.status, Status::converged);
  EXPECT_EQ(e.log, "ggfg");
}

TEST(Goes, ThatGainNothingAnewTwiceAreTheEnd) {
  Ended e = run({{1}});
  EXPECT_EQ(e.out.status, Status::stagnated);
  EXPECT_EQ(e.log, "gfgf");
  e = run({{1e-2}, {1}});
  EXPECT_EQ(e.out.status, Status::stagnated);
  EXPECT_EQ(e.log, "ggfgfgf") << "the one that used what was learnt does not count";
  e = run({{1e-2}, {1}}, false);
  EXPECT_EQ(e.out.status, Status::stagnated);
  EXPECT_EQ(e.log, "ggfgf") << "of a method that keeps nothing all count";
}

TEST(Goes, ThatOnlyMakeGoodWhatTheyLostAreTheEndToo) {
  const Ended e = run({{1e-2}, {4}, {0.25}, {4}, {0.25}, {4}, {0.25}});
  EXPECT_EQ(e.out.status, Status::stagnated);
  EXPECT_EQ(e.log, "ggfggfggf");
  EXPECT_NEAR(e.out.residual, 1e-2 * std::sqrt(5.0), 1e-12) << "the best x is the answer";
}

TEST(Goes, AfterABreakdownBeginAnew) {
  Ended e = run({{1e-2}, {0.9, Stop::breakdown}, {1e-5}});
  EXPECT_EQ(e.out.status, Status::converged);
  EXPECT_EQ(e.log, "ggfg");
  e = run({{1e-2}, {0.9, Stop::breakdown}, {1}});
  EXPECT_EQ(e.out.status, Status::stagnated);
  EXPECT_EQ(e.log, "ggfgfgf") << "what was learnt is gone: all count";
  e = run({{1e-2, Stop::breakdown}, {1e-2, Stop::breakdown}});
  EXPECT_EQ(e.out.status, Status::breakdown);
  EXPECT_EQ(e.out.iterations, 2);
}

TEST(Goes, ThatAreNotFiniteLeaveNothingBehind) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Ended e = run({{1e-2}, {nan, Stop::not_finite}, {1e-5}});
  EXPECT_EQ(e.out.status, Status::converged);
  EXPECT_EQ(e.log, "ggfg");
  EXPECT_NEAR(e.out.residual, 1e-2 * 1e-5 * std::sqrt(5.0), 1e-15) << "from the best x";
}

/// Of a stage below double that is to keep so much of what it claims, and one in double after it.
Ended refined(std::vector<ScriptedGo> goes, double truth, bool keeps = true) {
  Scripted low(std::move(goes), keeps,
               {.name = "low", .most_goes = 100, .floor = 1e-3, .truth = truth, .keeps = keeps, .refines = true});
  Scripted high({{1e-10}}, true);
  Outcome out = through({&low, &high}, 1e-9);
  return {std::move(out), low.log + high.log};
}

TEST(GoesBelowDouble, ThatKeepHalfOfWhatTheyClaimHaveTheNextStageTakeItsTurn) {
  const ScriptedGo half{1e-1, Stop::limit, 1e-2}, nearly{1e-2, Stop::limit, 5e-3};
  Ended e = refined({half}, 0.65);
  EXPECT_EQ(e.out.status, Status::converged);
  EXPECT_EQ(e.log, "gg");
  EXPECT_EQ(e.out.precision, "fp64");
  ASSERT_EQ(e.out.notes.size(), 1u);
  EXPECT_EQ(e.out.notes[0], "precision raised from low to fp64 after 1 iterations: its residual is not the true one");
  e = refined({nearly}, 0.65);
  EXPECT_EQ(e.log, "ggggg");
  EXPECT_EQ(e.out.precision, "low");
  EXPECT_EQ(refined({half}, 0).out.precision, "low") << "of a stage that is asked for none";
  EXPECT_EQ(refined({{1.001, Stop::limit, 1}, {1e-2}}, 0).out.precision, "low") << "even less than none";
}

TEST(GoesBelowDouble, AreJudgedTogetherAndByNoMoreThanTheyWereAskedFor) {
  const ScriptedGo half{1e-1, Stop::limit, 1e-2}, nearly{1e-2, Stop::limit, 5e-3};
  EXPECT_EQ(refined({nearly, nearly, half, nearly}, 0.65).out.precision, "low");
  EXPECT_EQ(refined({nearly, half, half, half}, 0.65).log, "gggg") << "the third has 4 digits of 6.3";
  EXPECT_EQ(refined({{1e-3, Stop::target, 1e-8}}, 0.65).out.precision, "low");
  EXPECT_EQ(refined({{0.995, Stop::limit, 0.99}, {1e-2}}, 0.65).out.precision, "low") << "too little for a judgement";
}

TEST(GoesBelowDouble, ThatKeepWhatTheyLearnAreTooSlowWhereTwoInARowAre) {
  const ScriptedGo slow{0.9, Stop::target, 0.9}, quick{1e-3};
  EXPECT_EQ(refined({slow, quick}, 0).out.precision, "low");
  EXPECT_EQ(refined({slow, quick, slow, quick}, 0).out.precision, "low");
  const Ended e = refined({slow, slow, quick}, 0);
  EXPECT_EQ(e.log, "ggg");
  EXPECT_EQ(e.out.notes.at(0),
            "precision raised from low to fp64 after 2 iterations: at this rate its refinements will "
            "not do");
  EXPECT_EQ(refined({slow, quick}, 0, false).log, "gg") << "what forgets will be as slow again";
}

TEST(GoesBelowDouble, ThatOpenAreNotJudgedByTheirRate) {
  const auto notes = [](double opening, double gain) {
    Scripted low({{gain, Stop::target, 0.1}, {1e-3, Stop::target, 1e-3}, {1e-3}}, false,
                 {.name = "low", .most_goes = 4, .floor = 1e-5, .opening = opening, .slow = 1, .refines = true});
    Scripted high({{1e-10}}, true);
    return through({&low, &high}, 1e-9).notes;
  };
  EXPECT_TRUE(notes(0.1, 0.1).empty());
  const std::string too_slow =
      "precision raised from low to fp64 after 1 iterations: at this rate its refinements "
      "will not do";
  ASSERT_EQ(notes(0, 0.1).size(), 1u);
  EXPECT_EQ(notes(0, 0.1)[0], too_slow) << "9 goes at that rate";
  EXPECT_TRUE(notes(0.1, 0.4).empty()) << "it gained something";
  ASSERT_EQ(notes(0.1, 0.6).size(), 1u);
  EXPECT_EQ(notes(0.1, 0.6)[0],
            "precision raised from low to fp64 after 1 iterations: its residual is not the true one");
}

}  // namespace
}  // namespace krilu::test
