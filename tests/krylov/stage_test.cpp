// SPDX-License-Identifier: Apache-2.0
// Refinement in its parts. GMRES in every arithmetic and storage of its basis: its claims against residuals formed in
// long double, and resume(): that it keeps what was learnt, that its claims stay true whatever it is given, and what it
// does at the ends (full basis, exact solution, one row). Stages under their driver, the first of them wrong on
// purpose: it is found out, nothing that was gained is lost, and the next one ends the work. What goes are asked for.
#include "krylov/stage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "krilu/io.hpp"
#include "krylov/driver.hpp"
#include "krylov/make_method.hpp"
#include "precond/jacobi.hpp"
#include "support/support.hpp"

namespace krilu::test {
namespace {

using krylov::Criterion;
using krylov::Outcome;
using krylov::Stage;
using krylov::StagePolicy;
using krylov::Stop;

/// Products of CSR in T, row by row, and how many of them and residuals the host asked for.
template <class Space, class T>
class Product final : public sparse::Operator<Space, T> {
 public:
  Product(Space space, const CsrView& a)
      : space_(std::move(space)),
        rows_(a.rows),
        offsets_(to_device(space_, std::vector<Offset>(a.offsets, a.offsets + a.rows + 1))),
        columns_(to_device(space_, std::vector<Index>(a.columns, a.columns + a.offsets[a.rows]))),
        values_(to_device(space_, std::vector<T>(a.values, a.values + a.offsets[a.rows]))) {}
  Index rows() const override { return rows_; }
  void apply(const T* x, T* y) const override {
    ++products;
    const auto offset = offsets_.view();
    const auto column = columns_.view();
    const auto value = values_.view();
    space_.for_each(
        std::size_t(rows_), KRILU_FN(Index i) {
          T sum = 0;
          for (Offset k = offset[i]; k < offset[i + 1]; ++k) sum += value[k] * x[column[k]];
          y[i] = sum;
        });
  }
  void residual(const T* b, const T* x, T* r) const override {
    ++residuals;
    const auto offset = offsets_.view();
    const auto column = columns_.view();
    const auto value = values_.view();
    space_.for_each(
        std::size_t(rows_), KRILU_FN(Index i) {
          T sum = b[i];
          for (Offset k = offset[i]; k < offset[i + 1]; ++k) sum -= value[k] * x[column[k]];
          r[i] = sum;
        });
  }
  mutable int products = 0, residuals = 0;

 private:
  Space space_;
  Index rows_;
  exec::Array<Offset> offsets_;
  exec::Array<Index> columns_;
  exec::Array<T> values_;
};

/// z = D r for any D, NaN included.
template <class Space, class T>
class Diagonal final : public precond::Preconditioner<Space, T> {
 public:
  Diagonal(Space space, const std::vector<T>& d) : space_(std::move(space)), d_(to_device(space_, d)) {}
  void factor(const precond::Values<Space, T>&, double) override {}
  using precond::Preconditioner<Space, T>::apply;
  void apply(const T* r, T* z) override {
    const auto d = d_.view();
    space_.for_each(
        d_.size(), KRILU_FN(Index i) { z[i] = d[i] * r[i]; });
  }
  std::size_t bytes() const override { return d_.bytes(); }

 private:
  Space space_;
  exec::Array<T> d_;
};

double norm(const std::vector<double>& v) {
  long double sum = 0;
  for (const double e : v) sum += static_cast<long double>(e) * e;
  return double(std::sqrt(sum));
}
template <class T>
std::vector<T> in(const std::vector<double>& v) {
  return std::vector<T>(v.begin(), v.end());
}
/// b - a x, each entry formed in long double.
std::vector<double> residual_of(const CsrView& a, const std::vector<double>& b, const std::vector<double>& x) {
  std::vector<double> r(b.size());
  for (std::size_t i = 0; i < r.size(); ++i) {
    long double sum = b[i];
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
      sum -= static_cast<long double>(a.values[k]) * x[std::size_t(a.columns[k])];
    r[i] = double(sum);
  }
  return r;
}
template <class T>
CsrMatrix held_in(CsrMatrix a) {
  for (double& v : a.values) v = double(T(v));
  return a;
}

// --- goes of GMRES -------------------------------------------------------------------------------------------------

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
  Go go(std::vector<double> b, double reduction, bool resumes, int limit = 1000) {
    for (double& e : b) e = double(T(e));
    const double size = norm(b);
    const auto there_b = to_device(space, in<T>(b)), r = to_device(space, in<T>(b)),
               x = to_device(space, std::vector<T>(n, T(0)));
    krylov::Control<T> c;
    c.target = T(reduction * size);
    c.scale = T(1 / size);
    c.iteration = iteration;
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

CsrMatrix hard(Index rows, std::uint64_t seed) {
  return random_matrix({.rows = rows, .per_row = 6, .symmetric_pattern = false, .dominance = 0.9, .seed = seed});
}

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
          EXPECT_NEAR(g.claimed, g.truth, TypeParam::slack);
          EXPECT_LE(g.iterations, (std::is_same_v<T, B> ? 2 : 6));
        }
        for (const double e : g.d) ASSERT_TRUE(std::isfinite(e));
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

// --- stages under the driver ---------------------------------------------------------------------------------------

template <class Space>
class Stages : public ::testing::Test {};
TYPED_TEST_SUITE(Stages, Spaces);

/// A refinement in float of whatever matrix, preconditioner and scales, and double behind it.
template <class Space>
struct Pair {
  Pair(const CsrMatrix& matrix, const CsrMatrix& low_matrix, const std::vector<float>& low_precond)
      : space(2),
        a(matrix),
        n(std::size_t(a.rows)),
        A(space, a),
        none(space, n),
        A_low(space, low_matrix),
        M_low(space, low_precond),
        low(krylov::make_method<Space, float>(space, "gmres", a.rows, 30)),
        high(krylov::make_method<Space, double>(space, "gmres", a.rows, 30)),
        driver(space, a.rows) {}

  struct Answer {
    Outcome out;
    std::vector<double> x;
  };
  /// `good`: whether there is a stage in double.
  Answer run(const std::vector<double>& b, const std::vector<double>& x0, const Criterion& criterion,
             bool good = true) {
    const exec::Array<double> R = to_device(space, row), C = to_device(space, column);
    krylov::Refinement<Space, double, float> first(space, policy, a.rows, *low, A_low, M_low,
                                                   row.empty() ? nullptr : R.data(),
                                                   column.empty() ? nullptr : C.data());
    krylov::Direct<Space, double> second(space, {.name = "high"}, *high, A, none);
    std::vector<Stage<Space, double>*> stages{&first};
    if (good) stages.push_back(&second);
    std::size_t at = 0;
    const auto next = [&]() -> Stage<Space, double>* { return at < stages.size() ? stages[at++] : nullptr; };
    const auto there_b = to_device(space, b), x = to_device(space, x0);
    Monitor monitor;
    Answer answer{driver.run(next, A, there_b, x, criterion, monitor), {}};
    answer.x = to_host(space, x);
    return answer;
  }
  /// What every outcome promises.
  void expect_honest(const Answer& r, const std::vector<double>& b, const std::vector<double>& x0) const {
    for (const double e : r.x) ASSERT_TRUE(std::isfinite(e));
    const double truth = norm(residual_of(a, b, r.x)), first = norm(residual_of(a, b, x0));
    double sizes = 0;  // of what a residual is the small difference of
    for (const double v : a.values) sizes = std::max(sizes, std::abs(v));
    const double rounding = 1e-10 * truth + 1e-14 * (norm(b) + sizes * norm(r.x));
    EXPECT_NEAR(r.out.residual, truth, rounding);
    EXPECT_LE(truth, first * (1 + 1e-12)) << "worse than the guess";
    ASSERT_EQ(r.out.history.size(), std::size_t(r.out.iterations) + 1);
    EXPECT_NEAR(r.out.history.back(), truth / norm(b), rounding / norm(b));
    EXPECT_NEAR(r.out.history.front(), first / norm(b), 1e-10 * first / norm(b) + 1e-14);
  }

  Space space;
  CsrMatrix a;
  std::size_t n;
  Product<Space, double> A;
  precond::None<Space, double> none;
  Product<Space, float> A_low;
  Diagonal<Space, float> M_low;
  std::unique_ptr<krylov::Method<Space, float>> low;
  std::unique_ptr<krylov::Method<Space, double>> high;
  krylov::Driver<Space, double> driver;
  StagePolicy policy{
      .name = "low", .most_inner = 60, .most_goes = 20, .floor = 1e-4, .least_floor = 1e-5, .refines = true};
  std::vector<double> row, column;
};

CsrMatrix model() { return generate("gen:convdiff2d:12x11"); }
CsrMatrix times(CsrMatrix a, double factor) {
  for (double& v : a.values) v *= factor;
  return a;
}
bool says(const Outcome& out, const std::string& words) {
  return std::any_of(out.notes.begin(), out.notes.end(),
                     [&](const std::string& n) { return n.find(words) != std::string::npos; });
}
Criterion until(double rtol, int most = 2000) { return {rtol, 0, Norm::true2, most}; }

TYPED_TEST(Stages, RefinementInFloatReachesWhatDoubleDoes) {
  const CsrMatrix a = model();
  Pair<TypeParam> pair(a, a, std::vector<float>(std::size_t(a.rows), 1));
  const std::vector<double> b = random_values(pair.n, 31), x0 = random_values(pair.n, 32);
  const auto r = pair.run(b, x0, until(1e-13));
  EXPECT_EQ(r.out.status, Status::converged);
  EXPECT_EQ(r.out.precision, "low");
  EXPECT_TRUE(r.out.notes.empty()) << r.out.notes[0];
  EXPECT_GE(r.out.outer_iterations, 3);
  EXPECT_LE(r.out.outer_iterations, 6);
  pair.expect_honest(r, b, x0);
  EXPECT_LE(norm(residual_of(a, b, r.x)), 1.01e-13 * norm(b));
  // One go less: not there yet. What the driver looked at is what it says.
  for (int most = 1; most < r.out.iterations; most += 7) {
    const auto part = pair.run(b, x0, until(1e-13, most));
    EXPECT_EQ(part.out.status, Status::max_iterations);
    EXPECT_EQ(part.out.iterations, most);
    pair.expect_honest(part, b, x0);
  }
}

TYPED_TEST(Stages, RefinementScalesByRowsAndColumns) {
  // A = R^-1 S C^-1 spans what no float holds; S, which the stage is given, is tame.
  const CsrMatrix s = model();
  Pair<TypeParam> pair(s, s, std::vector<float>(std::size_t(s.rows), 1));
  std::vector<double> R(pair.n), C(pair.n);
  CsrMatrix a = s;
  for (std::size_t i = 0; i < pair.n; ++i) {
    R[i] = std::ldexp(1.0, int(i % 5) - 2);
    C[i] = std::ldexp(1.0, 300 - int(i % 7));
  }
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      a.values[std::size_t(k)] /= R[std::size_t(i)] * C[std::size_t(a.columns[std::size_t(k)])];
  Pair<TypeParam> scaled(a, s, std::vector<float>(std::size_t(s.rows), 1));
  scaled.row = R;
  scaled.column = C;
  const std::vector<double> b = random_values(pair.n, 33), zero(pair.n, 0.0);
  const auto r = scaled.run(b, zero, until(1e-12), false);
  EXPECT_EQ(r.out.status, Status::converged);
  EXPECT_TRUE(r.out.notes.empty());
  scaled.expect_honest(r, b, zero);
}

TYPED_TEST(Stages, AWrongOneIsFoundOutAndTheNextEndsTheWork) {
  const CsrMatrix a = model();
  const auto n = std::size_t(a.rows);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ones(n, 1);
  std::vector<float> one_nan = ones;
  one_nan[n / 2] = nan;
  CsrMatrix singular = times(a, 0), other = hard(a.rows, 34);
  struct Liar {
    const char* name;
    CsrMatrix a;
    std::vector<float> m;
  };
  for (const Liar& liar : {Liar{"the wrong sign", times(a, -1), ones}, Liar{"a third of A", times(a, 1.0 / 3), ones},
                           Liar{"another matrix", other, ones}, Liar{"zero", singular, ones},
                           Liar{"NaN in one row of M", a, one_nan}, Liar{"NaN", a, std::vector<float>(n, nan)},
                           Liar{"infinity", a, std::vector<float>(n, infinity)}, Liar{"overflow", times(a, 1e38), ones},
                           Liar{"underflow", times(a, 1e-42), ones}, Liar{"M of zeros", a, std::vector<float>(n, 0)}}) {
    SCOPED_TRACE(liar.name);
    Pair<TypeParam> pair(a, liar.a, liar.m);
    const std::vector<double> b = random_values(n, 35), x0 = random_values(n, 36);
    const auto r = pair.run(b, x0, until(1e-11));
    EXPECT_EQ(r.out.status, Status::converged);
    EXPECT_EQ(r.out.precision, "high");
    EXPECT_TRUE(says(r.out, "precision raised from low to high after "));
    EXPECT_GE(r.out.outer_iterations, 1);
    EXPECT_LE(r.out.outer_iterations, 20);
    pair.expect_honest(r, b, x0);
    // Where nothing better is left, it says so and returns the best.
    const auto alone = pair.run(b, x0, until(1e-11, 500), false);
    EXPECT_NE(alone.out.status, Status::converged);
    EXPECT_EQ(alone.out.precision, "low");
    pair.expect_honest(alone, b, x0);
    // From a good guess a wrong stage spoils nothing.
    const auto polished = pair.run(b, r.x, until(1e-15, 40), false);
    EXPECT_LE(norm(residual_of(a, b, polished.x)), norm(residual_of(a, b, r.x)) * (1 + 1e-12));
    for (int most : {1, 2, 7, 30}) pair.expect_honest(pair.run(b, x0, until(1e-11, most)), b, x0);
  }
}

TYPED_TEST(Stages, TooLittlePrecisionIsRaisedAndWhatWasGainedIsKept) {
  // Condition about 1e10: single precision gains little or nothing, double ends it.
  CsrMatrix a = from_dense([] {
    Dense d(60, std::vector<double>(60, 0.0));
    for (std::size_t i = 0; i < 60; ++i)
      for (std::size_t j = 0; j < 60; ++j)
        d[i][j] = i == j ? 1 + 1e-9 * double(i) : 1 - 1e-9 * double((i * 7 + j * 3) % 5);
    for (std::size_t i = 0; i < 60; ++i) d[i][i] += 1e-8 * double(1 + i);
    return d;
  }());
  Pair<TypeParam> pair(a, a, std::vector<float>(60, 1));
  const std::vector<double> b = random_values(60, 37), zero(60, 0.0);
  const auto r = pair.run(b, zero, until(1e-7, 5000));
  EXPECT_TRUE(says(r.out, "raised"));
  pair.expect_honest(r, b, zero);
  const auto alone = pair.run(b, zero, until(1e-7, 5000), false);
  pair.expect_honest(alone, b, zero);
  EXPECT_LE(r.out.residual, alone.out.residual * (1 + 1e-12));
}

TYPED_TEST(Stages, AreRaisedWhereTheirGoesWillNotDo) {
  const CsrMatrix a = model();
  Pair<TypeParam> pair(a, a, std::vector<float>(std::size_t(a.rows), 1));
  const std::vector<double> b = random_values(pair.n, 38), zero(pair.n, 0.0);
  pair.policy.floor = 0.1;
  pair.policy.least_floor = 0;
  pair.policy.most_goes = 3;
  const auto few = pair.run(b, zero, until(1e-10));
  EXPECT_EQ(few.out.status, Status::converged);
  EXPECT_EQ(few.out.precision, "high");
  EXPECT_TRUE(says(few.out, "its refinements will not do"));
  EXPECT_EQ(few.out.outer_iterations, 1) << "seen after the first, not after the last";
  pair.expect_honest(few, b, zero);
  pair.policy.most_goes = 11;
  const auto enough = pair.run(b, zero, until(1e-10));
  EXPECT_EQ(enough.out.precision, "low");
  EXPECT_EQ(enough.out.status, Status::converged);
  EXPECT_GE(enough.out.outer_iterations, 10);
  EXPECT_LE(enough.out.outer_iterations, 11);
  // Goes stopped by their limit of iterations whose claims are true are no reason, until there are no more, where
  // nothing is forgotten in between.
  pair.policy = {.name = "low", .most_inner = 4, .most_goes = 5, .floor = 1e-4, .keeps = true, .refines = true};
  const auto limited = pair.run(b, zero, until(1e-10));
  EXPECT_EQ(limited.out.outer_iterations, 5);
  EXPECT_TRUE(says(limited.out, "precision raised from low to high after 20 iterations: its iterations did not do"));
  EXPECT_EQ(limited.out.status, Status::converged);
  pair.expect_honest(limited, b, zero);
  // A look on the way is none of the goes.
  pair.policy.first_look = 2;
  const auto looked_at = pair.run(b, zero, until(1e-10));
  EXPECT_EQ(looked_at.out.outer_iterations, 5);
  EXPECT_TRUE(says(looked_at.out, "precision raised from low to high after 22 iterations: its iterations did not do"));
  pair.expect_honest(looked_at, b, zero);
}

TYPED_TEST(Stages, AWrongOneIsFoundOutAtTheFirstLook) {
  const CsrMatrix a = model();
  Pair<TypeParam> pair(a, times(a, -1), std::vector<float>(std::size_t(a.rows), 1));
  const std::vector<double> b = random_values(pair.n, 40), zero(pair.n, 0.0);
  pair.policy = {.name = "low", .most_inner = 40, .first_look = 3, .floor = 1e-6, .keeps = true, .refines = true};
  const auto r = pair.run(b, zero, until(1e-10));
  EXPECT_EQ(r.out.status, Status::converged);
  EXPECT_TRUE(says(r.out, "precision raised from low to high after 3 iterations: the residual grew"));
  pair.expect_honest(r, b, zero);
}

TYPED_TEST(Stages, ATargetOfZeroEnds) {
  const CsrMatrix a = model();
  Pair<TypeParam> pair(a, a, std::vector<float>(std::size_t(a.rows), 1));
  const std::vector<double> b = random_values(pair.n, 39), zero(pair.n, 0.0);
  for (const bool good : {true, false}) {
    const auto r = pair.run(b, zero, until(0, 400), good);
    EXPECT_NE(r.out.status, Status::converged);
    pair.expect_honest(r, b, zero);
    if (good) {
      EXPECT_LE(r.out.residual, 1e-13 * norm(b));
    }
  }
}

// --- what goes are asked for ---------------------------------------------------------------------------------------

StagePolicy refining(double floor, double least = 0) {
  return {.name = "p", .floor = floor, .least_floor = least, .refines = true};
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

// Conditioned well enough for a few iterations a go, a system has fewer goes; and no more of them where it is not.
TEST(Goes, GoFurtherWhereFewIterationsDo) {
  using krylov::Control;
  double history[40] = {};
  Monitor::Feed feed;
  int wish = 0;
  const auto stops_after = [&](double reduction) {  // of an iteration
    Control<double> c;
    c.target = 1e-4;
    c.further = 1e-6;
    c.early = 5;
    c.max_iterations = 40;
    c.history = history;
    c.feed = &feed;
    c.wish = &wish;
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

// Half an iteration of BiCGStab counts as one only where it is the last: not where a target is met that moves on.
TEST(Goes, ThatGoFurtherTakeTheIterationsOfAStraightOne) {
  const exec::Host space(1);
  const CsrMatrix a = generate("gen:poisson2d:12x11");
  const auto n = std::size_t(a.rows);
  const Product<exec::Host, double> A(space, a);
  precond::None<exec::Host, double> none(space, n);
  const std::vector<double> side = random_values(n, 4);
  const auto b = to_device(space, side);
  std::vector<double> history(200);
  Monitor::Feed feed;
  int wish = 0;
  for (const char* name : {"cg", "bicgstab", "gmres"}) {
    const auto method = krylov::make_method<exec::Host, double>(space, name, a.rows, 100);
    const auto iterations = [&](double reduction, int early) {
      const auto x = to_device(space, std::vector<double>(n, 0.0)), r = to_device(space, side);
      krylov::Control<double> c;
      c.target = reduction * norm(side);
      c.further = 1e-10 * norm(side);
      c.early = early;
      c.max_iterations = 199;
      c.history = history.data();
      c.feed = &feed;
      c.wish = &wish;
      method->iterate({A, none, b.data(), x.data(), r.data(), false}, {&c});
      EXPECT_EQ(c.reason, Stop::target);
      return c.iteration;
    };
    const int straight = iterations(1e-10, 0);
    EXPECT_GT(straight, 10) << name;
    for (double reduction = 0.9; reduction > 1e-9; reduction *= 0.9)
      EXPECT_EQ(iterations(reduction, 1000), straight) << name << " by way of " << reduction;
  }
}

// On a device the iterations are spoken once, whatever the right-hand side, the guess and the target of the next solve.
TEST(Kept, TheNextSolveDoesWhatWasRecorded) {
  for (const char* name : {"cg", "bicgstab", "gmres", "fgmres"}) {
    SCOPED_TRACE(name);
    const exec::Emulated space(2);
    const CsrMatrix a = generate("gen:poisson2d:12x11");
    const auto n = std::size_t(a.rows);
    const Product<exec::Emulated, double> A(space, a);
    precond::None<exec::Emulated, double> none(space, n);
    const auto method = krylov::make_method<exec::Emulated, double>(space, name, a.rows, 30);
    krylov::Driver<exec::Emulated, double> driver(space, a.rows);
    const auto b = space.allocate<double>(n), x = space.allocate<double>(n);
    using Kept = krylov::Kept<exec::Emulated, double>;
    const auto kept = std::make_shared<Kept>(space);
    const auto solve = [&](std::uint64_t seed, double rtol, const std::shared_ptr<Kept>& known) {
      const std::vector<double> side = random_values(n, seed), guess(n, double(seed));
      space.copy_in(b, side.data(), n);
      space.copy_in(x, guess.data(), n);
      Monitor monitor;
      Outcome out = driver.run(*method, A, none, b, x, until(rtol), monitor, known);
      EXPECT_EQ(out.status, Status::converged);
      EXPECT_LE(norm(residual_of(a, side, to_host(space, x))), rtol * norm(side) * (1 + 1e-9));
      return out.history;
    };
    solve(1, 1e-10, kept);
    const int spoken = A.products;
    EXPECT_GT(spoken, 0);
    const auto other = solve(2, 1e-6, kept);
    EXPECT_EQ(A.products, spoken);
    kept->iterations.renew();
    EXPECT_EQ(solve(2, 1e-6, kept), other);
    EXPECT_EQ(A.products, 2 * spoken);
    EXPECT_EQ(solve(2, 1e-6, nullptr), other);
    EXPECT_EQ(A.products, 3 * spoken);
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

}  // namespace
}  // namespace krilu::test
