// SPDX-License-Identifier: Apache-2.0
// Goes of GMRES, in every arithmetic and storage of its basis: its claims against residuals formed in long double, and
// resume(): that it keeps what was learnt, that its claims stay true whatever it is given, and what it does at the ends
// (full basis, exact solution, one row).
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "krilu/io.hpp"
#include "krylov/make_method.hpp"
#include "precond/jacobi.hpp"
#include "stage_parts.hpp"

namespace krilu::test {
namespace {

using krylov::Stop;

template <class T>
CsrMatrix held_in(CsrMatrix a) {
  for (double& v : a.values) v = double(T(v));
  return a;
}

struct Go {
  int iterations = 0;  // of this go
  Stop reason = Stop::none;
  double claimed = 0, truth = 0;  // over the norm of the right-hand side
  std::vector<double> d, left;    // the solution, and what it leaves of the right-hand side
};

/// Solves for one right-hand side after the other, from zero, with one method and one count of iterations.
template <class Space, class T, class B>
class Goes {
  static constexpr Format basis = std::is_same_v<B, Half>       ? Format::fp16
                                  : std::is_same_v<B, Bfloat16> ? Format::bf16
                                                                : Format::fp32;

 public:
  Goes(const CsrMatrix& matrix, int restart, bool flexible = false, int threads = 2)
      : space(threads),
        a(held_in<T>(matrix)),
        n(std::size_t(a.rows)),
        A(space, a),
        none(space, n),
        gmres(krylov::make_method<Space, T>(space, flexible ? "fgmres" : "gmres", a.rows, restart, basis)),
        control_(space.template allocate<krylov::Control<T>>(1)),
        feed_(space.template allocate_shared<Monitor::Feed>(1)),
        history_(space.template allocate_shared<double>(5001)) {
    *feed_.data() = {0, 0, 0};
    history_.data()[0] = 1;
  }
  Go go(std::vector<double> b, double reduction, bool resumes, int limit = 1000,
        double filling = std::numeric_limits<double>::infinity(), int least_room = 0) {
    for (double& e : b) e = double(T(e));
    const double size = norm(b);
    const auto there_b = to_device(space, in<T>(b)), r = to_device(space, in<T>(b)),
               x = to_device(space, std::vector<T>(n, T(0)));
    krylov::Control<T> c;
    c.target = T(reduction * size);
    c.filling = T(filling * size);
    c.scale = T(1 / size);
    c.begun = c.iteration = iteration;
    c.least_room = least_room;
    c.max_iterations = iteration + limit;
    c.history = history_.data();
    c.feed = feed_.data();
    c.wish = &c.feed->interrupt;
    space.copy_in(control_, &c, 1);
    const krylov::System<Space, T> system{A, M ? *M : none, there_b.data(), x.data(), r.data(), false};
    if (resumes)
      gmres->resume(system, control_.scalar());
    else
      gmres->iterate(system, control_.scalar());
    space.copy_out(&c, control_, 1);
    Go out;
    out.iterations = c.iteration - iteration;
    iteration = c.iteration;
    out.reason = c.reason;
    out.claimed = double(c.norm) / size;
    for (const T e : to_host(space, x)) out.d.push_back(double(e));
    out.left = residual_of(a, b, out.d);
    out.truth = norm(out.left) / size;
    return out;
  }
  std::vector<double> history() const { return {history_.data(), history_.data() + iteration + 1}; }

  Space space;
  CsrMatrix a;
  std::size_t n;
  Product<Space, T> A;
  precond::None<Space, T> none;
  std::unique_ptr<precond::Preconditioner<Space, T>> M;
  std::unique_ptr<krylov::Method<Space, T>> gmres;
  int iteration = 0;

 private:
  exec::Array<krylov::Control<T>> control_;
  exec::Array<Monitor::Feed> feed_;
  exec::Array<double> history_;
};

/// What a go left, and as much again of something else: half of the next residual is news.
std::vector<double> disturbed(std::vector<double> left, std::uint64_t seed) {
  const std::vector<double> e = random_values(left.size(), seed);
  const double q = norm(left) / norm(e);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += q * e[i];
  return left;
}

template <class A, class B, class C>
struct On {
  using Space = A;
  using T = B;
  using Basis = C;
  /// What one go may be asked for, and how far its claim may be from the truth, over |b|.
  static constexpr double reduction = std::is_same_v<C, double>  ? 1e-9
                                      : std::is_same_v<C, float> ? 1e-4
                                      : std::is_same_v<C, Half>  ? 1e-2
                                                                 : 5e-2;
  static constexpr double slack = std::is_same_v<C, double>  ? 1e-14
                                  : std::is_same_v<C, float> ? 4e-6
                                  : std::is_same_v<C, Half>  ? 2e-3
                                                             : 1.6e-2;
};
/// The same for a go that may have been resumed: its C was rounded to 16 bits once more, and so were the vectors that x
/// is made of where none are kept beside (not flexible); what M^-1 A makes of that is missing in the claim.
template <class Case>
double slack_of(bool resumed, bool flexible) {
  const bool narrow = sizeof(typename Case::Basis) == 2;
  return Case::slack * (!resumed || !narrow ? 1 : flexible ? 4 : 30);
}
using All = ::testing::Types<On<exec::Host, double, double>, On<exec::Host, float, float>, On<exec::Host, float, Half>,
                             On<exec::Host, float, Bfloat16>, On<exec::Emulated, double, double>,
                             On<exec::Emulated, float, float>, On<exec::Emulated, float, Half>,
                             On<exec::Emulated, float, Bfloat16>>;

template <class Case>
class GmresGoes : public ::testing::Test {};
TYPED_TEST_SUITE(GmresGoes, All);
#define KRILU_CASE                         \
  using Space = typename TypeParam::Space; \
  using T = typename TypeParam::T;         \
  using B = typename TypeParam::Basis;

TYPED_TEST(GmresGoes, ClaimWhatIsTrue) {
  KRILU_CASE
  for (const CsrMatrix& a : {generate("gen:convdiff2d:15x14"), hard(300, 1), generate("gen:convdiff3d:7x8x9")})
    for (const bool flexible : {false, true})
      for (const int restart : {100, 9}) {
        SCOPED_TRACE(std::to_string(a.rows) + " rows, restart " + std::to_string(restart) + ", flexible " +
                     std::to_string(flexible));
        Goes<Space, T, B> goes(a, restart, flexible);
        std::vector<double> b = random_values(goes.n, 2);
        for (int k = 0; k < 5; ++k) {
          const Go g = goes.go(b, TypeParam::reduction, k > 0);
          EXPECT_EQ(g.reason, Stop::target) << "go " << k;
          EXPECT_LE(g.claimed, TypeParam::reduction * (1 + 1e-6));
          EXPECT_NEAR(g.claimed, g.truth, slack_of<TypeParam>(k > 0, flexible)) << "go " << k;
          EXPECT_GT(g.iterations, 0);
          b = disturbed(g.left, 3 + std::uint64_t(k));
        }
      }
}

// What is left of the claim's error is what rounding each next vector does to the residual. Were v another number than
// the u that A was applied to, that would do about as much again.
TYPED_TEST(GmresGoes, FormTheSolutionOfTheVectorsThatWereMultiplied) {
  KRILU_CASE
  CsrMatrix a = random_matrix({.rows = 256, .per_row = 5, .dominance = 12, .seed = 9});
  for (Index i = 0; i < a.rows; ++i) {
    const auto begin = std::size_t(a.offsets[std::size_t(i)]), end = std::size_t(a.offsets[std::size_t(i) + 1]);
    double diagonal = 1;
    for (std::size_t k = begin; k < end; ++k)
      if (a.columns[k] == i) diagonal = a.values[k];
    for (std::size_t k = begin; k < end; ++k) a.values[k] /= diagonal;
  }
  Goes<Space, T, B> goes(a, 30);
  std::vector<double> b = random_values(goes.n, 2);
  for (double& e : b) e = e < 0 ? -1 : 1;  // is what it is in 16 bits too, over its norm
  const Go g = goes.go(b, 1e-5, false, 10);
  const double most = std::is_same_v<B, Half> ? 9e-6 : std::is_same_v<B, Bfloat16> ? 1.1e-4 : TypeParam::slack;
  EXPECT_NEAR(g.claimed, g.truth, most);
}

TYPED_TEST(GmresGoes, ResumedWithAnyRightHandSideClaimWhatIsTrue) {
  // Another right-hand side altogether, one that the basis has solved before, one of its own images, a tiny one.
  KRILU_CASE
  const CsrMatrix a = generate("gen:convdiff2d:12x13");
  for (const bool flexible : {false, true}) {
    Goes<Space, T, B> goes(a, 400, flexible);
    const std::vector<double> b = random_values(goes.n, 4), c = random_values(goes.n, 5);
    std::vector<double> tiny = c, image = residual_of(goes.a, std::vector<double>(goes.n, 0.0), b);
    for (double& e : tiny) e *= 1e-12;
    const Go first = goes.go(b, TypeParam::reduction, false);
    for (const std::vector<double>* next : {&b, &c, &std::as_const(image), &std::as_const(tiny), &b}) {
      const Go g = goes.go(*next, TypeParam::reduction, true);
      EXPECT_NEAR(g.claimed, g.truth, slack_of<TypeParam>(true, flexible));
      EXPECT_LE(g.truth, TypeParam::reduction + slack_of<TypeParam>(true, flexible));
      if (next == &b) {
        EXPECT_LE(g.iterations, first.iterations / 4) << "it is known already";
      }
    }
  }
}

TYPED_TEST(GmresGoes, ResumedNeedFewerIterationsThanForgetting) {
  KRILU_CASE
  const CsrMatrix a = generate("gen:convdiff3d:10x10x10");
  const double reduction = std::max(1e-3, TypeParam::reduction);
  Goes<Space, T, B> resumed(a, 100), forgetful(a, 100);
  std::vector<double> b = random_values(resumed.n, 1);
  std::vector<int> counts;
  int anew = 0;
  for (int k = 0; k < 3; ++k) {
    const Go g = resumed.go(b, reduction, k > 0), f = forgetful.go(b, reduction, false);
    EXPECT_NEAR(g.claimed, g.truth, slack_of<TypeParam>(k > 0, false));
    EXPECT_LE(g.iterations, f.iterations - (k > 0));
    counts.push_back(g.iterations);
    anew += f.iterations;
    b = disturbed(g.left, 5);
  }
  EXPECT_EQ(forgetful.iteration, anew);
  EXPECT_LE(double(resumed.iteration), (sizeof(B) > 2 ? 0.8 : 0.95) * anew);
  if (sizeof(B) > 2) {
    EXPECT_LT(counts[1], counts[0]);
    EXPECT_LT(counts[2], counts[1]);
  }
  if (std::is_same_v<B, double>) {
    EXPECT_NEAR(counts[0], 38, 1);
    EXPECT_NEAR(counts[1], 29, 2);
    EXPECT_NEAR(counts[2], 21, 2);
    EXPECT_NEAR(anew, 3 * 38, 3);
  }
}

TYPED_TEST(GmresGoes, ResumedAreOneLongGmresWhereNothingDisturbs) {
  // Going on from the very residual that was left: no more iterations than GMRES that never stopped.
  if (!std::is_same_v<typename TypeParam::Basis, double>) GTEST_SKIP() << "lower precision disturbs";
  KRILU_CASE
  const CsrMatrix a = generate("gen:convdiff2d:14x14");
  Goes<Space, T, B> whole(a, 196), parts(a, 196);
  std::vector<double> b = random_values(whole.n, 7);
  const Go all = whole.go(b, 1e-9, false);
  for (int k = 0; k < 3; ++k) b = parts.go(b, 1e-3, k > 0).left;
  // A go ends at or below its target, and its first direction is one that the last go was about to take.
  EXPECT_LE(parts.iteration, all.iterations + 4);
}

TYPED_TEST(GmresGoes, AFullBasisIsBegunAnew) {
  KRILU_CASE
  const CsrMatrix a = generate("gen:convdiff2d:13x12");
  Goes<Space, T, B> probe(a, 200);
  const std::vector<double> b = random_values(probe.n, 8);
  const Go first = probe.go(b, TypeParam::reduction, false);
  const std::vector<double> c = disturbed(first.left, 9);
  const int steps = first.iterations;
  ASSERT_GT(steps, 3);
  for (const int restart : {steps - 1, steps, steps + 1, steps + 2, steps + 3}) {
    SCOPED_TRACE(std::to_string(restart) + " of " + std::to_string(steps));
    Goes<Space, T, B> resumed(a, restart), fresh(a, restart);
    resumed.go(b, TypeParam::reduction, false);
    const int before = resumed.iteration;
    const Go g = resumed.go(c, TypeParam::reduction, true), f = fresh.go(c, TypeParam::reduction, false);
    EXPECT_EQ(g.reason, Stop::target);
    EXPECT_NEAR(g.claimed, g.truth, slack_of<TypeParam>(true, false));
    EXPECT_EQ(resumed.iteration, before + g.iterations);
    if (restart == steps) {  // full exactly at the end of the go: nothing of it is left
      EXPECT_EQ(g.d, f.d);
      EXPECT_EQ(g.iterations, f.iterations);
    }
    for (int k = 0; k < 6; ++k) {  // the basis fills and is begun anew within goes and between them
      const Go more = resumed.go(disturbed(g.left, 10 + std::uint64_t(k)), TypeParam::reduction, true);
      EXPECT_EQ(more.reason, Stop::target);
      EXPECT_NEAR(more.claimed, more.truth, slack_of<TypeParam>(true, false));
    }
  }
}

TYPED_TEST(GmresGoes, FillABasisThatHasNoRoomForAnother) {
  KRILU_CASE
  const CsrMatrix a = generate("gen:convdiff2d:13x12");
  Goes<Space, T, B> probe(a, 200);
  const std::vector<double> b = random_values(probe.n, 8);
  const Go first = probe.go(b, TypeParam::reduction, false);
  const int steps = first.iterations;
  const std::vector<double> c = disturbed(first.left, 9);
  const Go second = probe.go(c, TypeParam::reduction, true);
  ASSERT_GT(steps, 4);
  const auto go = [&](int restart, double filling) {
    Goes<Space, T, B> goes(a, restart);
    const Go g = goes.go(b, TypeParam::reduction, false, 1000, filling);
    EXPECT_EQ(g.reason, Stop::target);
    EXPECT_NEAR(g.claimed, g.truth, slack_of<TypeParam>(false, false));
    return g;
  };
  EXPECT_EQ(go(2 * steps + 1, 0).iterations, steps) << "room for as many again, and for a residual";
  EXPECT_EQ(go(2 * steps, 0).iterations, 2 * steps);
  EXPECT_EQ(go(steps + 3, 0).iterations, steps + 3);
  EXPECT_EQ(go(steps, 0).iterations, steps) << "full";
  EXPECT_LT(go(steps + 3, 0).truth, first.truth);
  EXPECT_EQ(go(steps + 3, 0.999 * first.claimed).iterations, steps) << "as far as that without all of the room";
  // Of what the first go left, with a vector between: what counts is how long the second one took.
  for (const int spare : {0, 1}) {
    Goes<Space, T, B> goes(a, steps + 1 + 2 * second.iterations + spare);
    EXPECT_EQ(goes.go(b, TypeParam::reduction, false).iterations, steps);
    EXPECT_EQ(goes.go(c, TypeParam::reduction, true, 1000, 0).iterations, (spare ? 1 : 2) * second.iterations);
  }
  // No further than its limit, which is no failure of it.
  Goes<Space, T, B> limited(a, 2 * steps);
  const Go g = limited.go(b, TypeParam::reduction, false, steps + 2, 0);
  EXPECT_EQ(g.iterations, steps + 2);
  EXPECT_EQ(g.reason, Stop::target);
}

TYPED_TEST(GmresGoes, ABasisWithTooLittleRoomIsBegunAnew) {
  KRILU_CASE
  const CsrMatrix a = generate("gen:convdiff2d:13x12");
  constexpr int restart = 120;
  const auto second = [&](int least_room) {
    Goes<Space, T, B> goes(a, restart);
    const Go first = goes.go(random_values(goes.n, 8), TypeParam::reduction, false);
    const int room = restart - first.iterations - 1;
    return goes.go(disturbed(first.left, 9), TypeParam::reduction, true, 1000, std::numeric_limits<double>::infinity(),
                   least_room < 0 ? 0 : room + least_room);
  };
  Goes<Space, T, B> probe(a, restart), fresh(a, restart);
  const Go first = probe.go(random_values(probe.n, 8), TypeParam::reduction, false);
  const Go anew = fresh.go(disturbed(first.left, 9), TypeParam::reduction, false);
  ASSERT_LT(first.iterations, restart - 2);
  EXPECT_EQ(second(1).d, anew.d);
  EXPECT_EQ(second(0).d, second(-1).d) << "that is room enough";
  EXPECT_NE(second(0).d, anew.d);
}

TYPED_TEST(GmresGoes, HistoryCountsOn) {
  KRILU_CASE
  Goes<Space, T, B> goes(generate("gen:convdiff2d:11x11"), 60);
  std::vector<double> b = random_values(goes.n, 12), expected{1};
  for (int k = 0; k < 4; ++k) {
    const int before = goes.iteration;
    const Go g = goes.go(b, TypeParam::reduction, k > 0);
    const std::vector<double> h = goes.history();
    ASSERT_EQ(int(h.size()), before + g.iterations + 1);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), h.begin())) << "an earlier go was written over";
    for (std::size_t i = std::size_t(before) + 2; i < h.size(); ++i) EXPECT_LE(h[i], h[i - 1] * (1 + 1e-6));
    for (std::size_t i = std::size_t(before) + 1; i < h.size(); ++i) EXPECT_TRUE(h[i] > 0 && h[i] <= 1 + 1e-6);
    EXPECT_NEAR(h.back(), g.claimed, 1e-6 * g.claimed);
    expected = h;
    b = disturbed(g.left, 13 + std::uint64_t(k));
  }
}

TYPED_TEST(GmresGoes, StoppedByTheirLimitClaimWhatIsTrueAndGoOn) {
  KRILU_CASE
  const CsrMatrix a = generate("gen:convdiff2d:12x12");
  Goes<Space, T, B> goes(a, 100);
  std::vector<double> b = random_values(goes.n, 15);
  for (int k = 0; k < 6; ++k) {
    const Go g = goes.go(b, 1e-30, k > 0, k == 0 ? 1 : 5);
    EXPECT_EQ(g.reason, Stop::limit);
    EXPECT_EQ(g.iterations, k == 0 ? 1 : 5);
    EXPECT_NEAR(g.claimed, g.truth, slack_of<TypeParam>(k > 0, false));
    EXPECT_LT(g.truth, 1);
    b = g.left;
  }
}

TYPED_TEST(GmresGoes, AnExactSolutionIsFoundAndGoneOnFrom) {
  // Two eigenvalues: two steps. Then another right-hand side, of which that basis knows little.
  KRILU_CASE
  Dense two(40, std::vector<double>(40, 0.0));
  for (std::size_t i = 0; i < 40; ++i) two[i][i] = i % 2 ? 1 : 4;
  for (const bool flexible : {false, true})
    for (const double reduction : {TypeParam::reduction, 1e-30}) {
      Goes<Space, T, B> goes(from_dense(two), 20, flexible);
      for (int k = 0; k < 4; ++k) {
        const Go g = goes.go(random_values(40, 16 + std::uint64_t(k)), reduction, k > 0, 200);
        EXPECT_LE(g.truth, TypeParam::reduction + TypeParam::slack) << "go " << k;
        if (reduction > 1e-20) {
          // That nothing is left is known when that has been multiplied: until then little is claimed, in 16 bits less.
          EXPECT_LE(g.truth, g.claimed + TypeParam::slack);
          EXPECT_LE(g.claimed, (std::is_same_v<T, B> ? TypeParam::slack : TypeParam::reduction));
          EXPECT_LE(g.iterations, (std::is_same_v<T, B> ? 2 : 6));
        }
        for (const double e : g.d) ASSERT_TRUE(std::isfinite(e));
      }
    }
}

TYPED_TEST(GmresGoes, ASolutionThatFillsTheBasisTakesNoFurtherStep) {
  KRILU_CASE
  if (!std::is_same_v<T, B>) GTEST_SKIP() << "the second step solves what rounding to 16 bits leaves";
  Dense two(40, std::vector<double>(40, 0.0));
  for (std::size_t i = 0; i < 40; ++i) two[i][i] = i % 2 ? 1 : 4;
  Goes<Space, T, B> goes(from_dense(two), 2);
  const Go g = goes.go(random_values(40, 31), TypeParam::reduction, false);
  EXPECT_EQ(g.reason, Stop::target);
  EXPECT_EQ(g.iterations, 2);
  EXPECT_NEAR(g.claimed, g.truth, TypeParam::slack);
  EXPECT_NEAR(goes.history().back(), g.claimed, 1e-6 * g.claimed);
}

TYPED_TEST(GmresGoes, ANormThatIsInDoubtIsToldByTheNextProduct) {
  // Of A u so little is new that its length cannot be had from that of A u.
  KRILU_CASE
  if (!std::is_same_v<T, B>) GTEST_SKIP() << "in 16 bits that is less than rounding";
  const double news = std::sqrt(double(std::numeric_limits<T>::epsilon()));
  Dense nearly(50, std::vector<double>(50, 0.0));
  for (std::size_t i = 0; i < 50; ++i) {
    nearly[i][i] = 1;
    nearly[i][(i + 1) % 50] = news;
  }
  for (const bool flexible : {false, true}) {
    Goes<Space, T, B> goes(from_dense(nearly), 20, flexible), one(from_dense(nearly), 20, flexible);
    std::vector<double> b = random_values(50, 32);
    const Go limited = one.go(b, 1e-30, false, 1);
    EXPECT_GE(limited.claimed, limited.truth) << "not known yet";
    for (int k = 0; k < 2; ++k) {  // on from there: a column that was in doubt is settled as the basis goes on
      const Go g = one.go(disturbed(limited.left, 60 + std::uint64_t(k)), 0.1 * news, true);
      EXPECT_EQ(g.reason, Stop::target);
      EXPECT_LE(g.iterations, 3);
      EXPECT_NEAR(g.claimed, g.truth, TypeParam::slack);
    }
    // Doubt after doubt, and the go goes on: each norm is set right but the last one, of what rounding leaves.
    const int before = one.iteration;
    const Go further = one.go(b, 0.01 * news, false, 15);
    EXPECT_EQ(further.reason, Stop::target);
    EXPECT_LE(further.iterations, 3);
    EXPECT_NEAR(further.claimed, further.truth, TypeParam::slack);
    EXPECT_LT(one.history()[std::size_t(before) + 1], 2 * news);
    for (int k = 0; k < 3; ++k) {
      const Go g = goes.go(b, 2 * news, k > 0);
      EXPECT_EQ(g.reason, Stop::target);
      EXPECT_EQ(g.iterations, 1) << "the product that told is of a vector that is not used";
      EXPECT_NEAR(g.claimed, g.truth, 1e-2 * g.truth + 1e-15);
      EXPECT_LT(g.truth, 2 * news);
      b = disturbed(g.left, 33 + std::uint64_t(k));
    }
  }
}

TYPED_TEST(GmresGoes, OfOneRow) {
  KRILU_CASE
  for (const int restart : {1, 5}) {
    Goes<Space, T, B> goes(from_dense({{-3.0}}), restart);
    for (int k = 0; k < 3; ++k) {
      const Go g = goes.go({2.0 + k}, TypeParam::reduction, k > 0);
      EXPECT_EQ(g.reason, Stop::target);
      EXPECT_EQ(g.iterations, 1);
      EXPECT_NEAR(g.d[0], (2.0 + k) / -3, TypeParam::slack * (2 + k));
    }
  }
}

TYPED_TEST(GmresGoes, OfAZeroResidualLeaveXAlone) {
  KRILU_CASE
  Goes<Space, T, B> goes(generate("gen:convdiff2d:8x8"), 30);
  const std::vector<double> zero(goes.n, 0.0);
  for (const bool resumes : {false, true}) {
    if (resumes) goes.go(random_values(goes.n, 20), TypeParam::reduction, false);
    const int before = goes.iteration;
    const Go g = goes.go(zero, 1, resumes);
    EXPECT_EQ(g.reason, Stop::breakdown);
    EXPECT_EQ(goes.iteration, before);
    EXPECT_EQ(g.d, zero);
  }
  // And what comes after is as good as ever.
  const Go g = goes.go(random_values(goes.n, 21), TypeParam::reduction, true);
  EXPECT_EQ(g.reason, Stop::target);
  EXPECT_NEAR(g.claimed, g.truth, TypeParam::slack);
}

TYPED_TEST(GmresGoes, BearAPreconditioner) {
  KRILU_CASE
  CsrMatrix a = generate("gen:convdiff2d:12x12");
  for (Index i = 0; i < a.rows; ++i)  // rows of sizes far apart, which the preconditioner takes back
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      a.values[std::size_t(k)] *= double(1 + a.columns[std::size_t(k)] % 17);
  std::vector<T> d(std::size_t(a.rows));
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = T(1) / T(1 + i % 17);
  for (const bool flexible : {false, true}) {
    Goes<Space, T, B> goes(a, 80, flexible), plain(generate("gen:convdiff2d:12x12"), 80);
    goes.M = std::make_unique<Diagonal<Space, T>>(goes.space, d);
    std::vector<double> b = random_values(goes.n, 22);
    for (int k = 0; k < 4; ++k) {
      const Go g = goes.go(b, TypeParam::reduction, k > 0), p = plain.go(b, TypeParam::reduction, k > 0);
      EXPECT_NEAR(g.claimed, g.truth, slack_of<TypeParam>(k > 0, flexible));
      EXPECT_NEAR(g.iterations, p.iterations, 3) << "A M^-1 is the plain matrix";
      b = disturbed(g.left, 23);
    }
  }
}

TYPED_TEST(GmresGoes, AreTheSameBitsOnAnyTeamAndSpace) {
  KRILU_CASE
  const CsrMatrix a = generate("gen:convdiff2d:70x60");
  Goes<exec::Host, T, B> reference(a, 40, false, 1);
  Goes<Space, T, B> goes(a, 40, false, 3);
  std::vector<double> b = random_values(goes.n, 24);
  for (int k = 0; k < 3; ++k) {
    const Go g = goes.go(b, 10 * TypeParam::reduction, k > 0, 25),
             f = reference.go(b, 10 * TypeParam::reduction, k > 0, 25);
    EXPECT_EQ(g.d, f.d);
    b = disturbed(g.left, 25);
  }
  EXPECT_EQ(goes.history(), reference.history());
}

}  // namespace
}  // namespace krilu::test
