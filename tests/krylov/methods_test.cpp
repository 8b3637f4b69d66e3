// SPDX-License-Identifier: Apache-2.0
// CG, BiCGStab, GMRES and FGMRES under their driver, on every space: solutions against Gaussian elimination, what
// theory promises of each (finite termination, monotone and exact residuals of GMRES), the trivial systems, histories
// equal bit for bit on any number of threads and on any space, and a number of synchronisations that does not grow with
// the iterations.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "krylov/driver.hpp"
#include "krylov/make_method.hpp"
#include "precond/registry.hpp"
#include "schedule/ordering.hpp"
#include "schedule/row_order.hpp"
#include "sparse/csr.hpp"
#include "support/support.hpp"

namespace {

using namespace krilu;
using krylov::Criterion;
using krylov::Outcome;
using test::from_dense;

constexpr int no_restart = 1000;

/// A matrix brought to a space, in storage order.
template <class Space>
struct Assembled {
  Space ex;
  sparse::RowOrder order;
  std::shared_ptr<const sparse::SplitPattern> pattern;
  sparse::SplitMatrix<double> matrix;

  Assembled(const CsrMatrix& a, int threads) : ex(threads) {
    const exec::Host host(threads);
    const CsrMatrix graph = sparse::adjacency(a);
    order = schedule::by_levels(host, a, graph, {});
    pattern = std::make_shared<const sparse::SplitPattern>(ex, host, a, order);
    matrix = sparse::fill_values<double>(host, pattern, a, order);
    for (auto* part : {&matrix.lower, &matrix.diagonal, &matrix.upper}) *part = sparse::to_space(ex, std::move(*part));
  }
  std::unique_ptr<precond::Preconditioner<Space, double>> precond(const std::string& name) const {
    const precond::Context<Space> context{ex, triangular::Strategy::serial, nullptr};
    auto m = precond::make<Space, double>(name, context, pattern);
    m->factor(matrix, 0);
    return m;
  }
  std::unique_ptr<krylov::Method<Space, double>> method(const std::string& name, int restart) const {
    return krylov::make_method<Space, double>(ex, name, pattern->rows(), restart);
  }
};

struct Asked {
  std::string method = "cg", precond = "none";
  Criterion criterion = {};
  int threads = 2;
  int restart = 30;
};
struct Answer {
  Outcome out;
  std::vector<double> x;
  double estimate = 0;  // the last residual of the recurrence, relative
  long synchronisations = 0;
};

/// Runs the driver on A x = b from x.
template <class Space>
Answer run(const CsrMatrix& a, const std::vector<double>& b, std::vector<double> x, const Asked& asked) {
  const Assembled<Space> s(a, asked.threads);
  const auto M = s.precond(asked.precond);
  const auto method = s.method(asked.method, asked.restart);
  krylov::Driver<Space, double> driver(s.ex, a.rows);
  const std::size_t n = b.size();
  std::vector<double> ordered_b(n), ordered_x(n);
  for (std::size_t i = 0; i < n; ++i) {
    ordered_b[i] = b[std::size_t(s.order.rows[i])];
    ordered_x[i] = x[std::size_t(s.order.rows[i])];
  }
  const auto there_b = test::to_device(s.ex, ordered_b), there_x = test::to_device(s.ex, ordered_x);
  const sparse::SplitOperator<Space, double> A(s.ex, s.matrix);
  Monitor monitor;
  Answer answer;
  const long before = s.ex.synchronisations();
  answer.out = driver.run(*method, A, *M, there_b, there_x, asked.criterion, monitor);
  answer.synchronisations = s.ex.synchronisations() - before;
  answer.estimate = monitor.relative_residual();
  ordered_x = test::to_host(s.ex, there_x);
  for (std::size_t i = 0; i < n; ++i) x[std::size_t(s.order.rows[i])] = ordered_x[i];
  answer.x = x;
  return answer;
}
template <class Space>
Answer run(const CsrMatrix& a, const std::vector<double>& b, const Asked& asked) {
  return run<Space>(a, b, std::vector<double>(b.size(), 0.0), asked);
}

Criterion until(double rtol, int max_iterations = 10000) { return {rtol, 0, Norm::true2, max_iterations}; }

CsrMatrix symmetric(Index rows, std::uint64_t seed) {
  return test::random_matrix({.rows = rows, .per_row = 6, .symmetric_values = true, .seed = seed});
}
CsrMatrix unsymmetric(Index rows, std::uint64_t seed) {
  return test::random_matrix({.rows = rows, .per_row = 6, .symmetric_pattern = seed % 2 == 0, .seed = seed});
}
CsrMatrix scaled(CsrMatrix a, double factor) {
  for (double& v : a.values) v *= factor;
  return a;
}

void expect_near(const std::vector<double>& x, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(x.size(), expected.size());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(x[i] - expected[i]));
    ASSERT_TRUE(std::isfinite(x[i])) << "row " << i;
  }
  EXPECT_LE(difference, tolerance * largest);
}

template <class Space>
class Methods : public ::testing::Test {};
TYPED_TEST_SUITE(Methods, test::Spaces);

// --- solutions -----------------------------------------------------------------------------------------------------

TYPED_TEST(Methods, AgreeWithGaussianElimination) {
  const std::vector<std::string> of_symmetric{"none", "jacobi", "dic", "ic0"},
      of_others{"none", "jacobi", "dilu", "ilu0"};
  for (std::uint64_t seed : {1, 2, 3}) {
    const auto b = test::random_values(60, seed + 100), x0 = test::random_values(60, seed + 200);
    for (const char* method : {"cg", "bicgstab", "gmres", "fgmres"}) {
      const bool cg = std::string(method) == "cg";
      const CsrMatrix a = cg ? symmetric(60, seed) : unsymmetric(60, seed);
      const auto expected = test::dense_solve(test::to_dense(a), b);
      for (const std::string& precond : cg ? of_symmetric : of_others) {
        SCOPED_TRACE(std::string(method) + " " + precond + " seed " + std::to_string(seed));
        const Answer r = run<TypeParam>(a, b, x0, {.method = method, .precond = precond, .criterion = until(1e-12)});
        EXPECT_EQ(r.out.status, Status::converged);
        EXPECT_GT(r.out.iterations, 1);
        expect_near(r.x, expected, 1e-10);
        EXPECT_LE(test::true_residual(a, r.x, b), 1.01e-12);
      }
    }
  }
}

TYPED_TEST(Methods, CgTakesNegativeDefiniteMatricesInTheSameSteps) {
  const CsrMatrix a = symmetric(80, 7), negative = scaled(a, -1);
  const auto b = test::random_values(80, 8);
  for (const char* precond : {"none", "jacobi", "dic", "ic0"}) {
    SCOPED_TRACE(precond);
    const Asked asked{.method = "cg", .precond = precond, .criterion = until(1e-11)};
    const Answer plus = run<TypeParam>(a, b, asked), minus = run<TypeParam>(negative, b, asked);
    EXPECT_EQ(minus.out.status, Status::converged);
    expect_near(minus.x, test::dense_solve(test::to_dense(negative), b), 1e-9);
    // Signs cancel exactly in every product of the recurrence.
    EXPECT_EQ(minus.out.history, plus.out.history);
  }
}

// --- what theory promises ------------------------------------------------------------------------------------------

TYPED_TEST(Methods, CgEndsWithinAsManyStepsAsDistinctEigenvalues) {
  // The path's second difference of 12 points: 12 distinct eigenvalues. Of a diagonal with three values: 3 steps.
  const CsrMatrix path = generate("gen:poisson2d:12x1");
  const Answer r = run<TypeParam>(path, test::random_values(12, 3), {.method = "cg", .criterion = until(1e-12)});
  EXPECT_EQ(r.out.status, Status::converged);
  EXPECT_EQ(r.out.iterations, 12);

  test::Dense d(30, std::vector<double>(30, 0.0));
  for (std::size_t i = 0; i < 30; ++i) d[i][i] = i % 3 == 0 ? 1 : i % 3 == 1 ? 4 : 10;
  const Answer three =
      run<TypeParam>(from_dense(d), test::random_values(30, 4), {.method = "cg", .criterion = until(1e-12)});
  EXPECT_EQ(three.out.status, Status::converged);
  EXPECT_EQ(three.out.iterations, 3);
}

TYPED_TEST(Methods, GmresEndsWithinAsManyStepsAsRows) {
  for (std::uint64_t seed : {1, 2, 3, 4, 5}) {
    // Not dominant: nothing but the dimension ends it.
    const CsrMatrix a =
        test::random_matrix({.rows = 25, .per_row = 8, .symmetric_pattern = false, .dominance = 0.1, .seed = seed});
    const auto b = test::random_values(25, seed);
    for (const char* method : {"gmres", "fgmres"}) {
      SCOPED_TRACE(std::string(method) + " seed " + std::to_string(seed));
      const Answer r = run<TypeParam>(a, b, {.method = method, .criterion = until(1e-9), .restart = no_restart});
      EXPECT_EQ(r.out.status, Status::converged);
      EXPECT_LE(r.out.iterations, 25);
      EXPECT_GT(r.out.iterations, 15) << "the matrix is meant to be hard";
    }
  }
}

TYPED_TEST(Methods, GmresOfAShiftTakesAllStepsAtOnce) {
  // The cyclic shift: no progress at all for n - 1 steps, then the answer.
  test::Dense d(9, std::vector<double>(9, 0.0));
  for (std::size_t i = 0; i < 9; ++i) d[i][(i + 1) % 9] = 1;
  std::vector<double> b(9, 0.0);
  b[0] = 1;
  const Answer r = run<TypeParam>(from_dense(d), b, {.method = "gmres", .criterion = until(1e-13), .restart = 9});
  EXPECT_EQ(r.out.status, Status::converged);
  ASSERT_EQ(r.out.iterations, 9);
  for (std::size_t k = 0; k < 9; ++k) EXPECT_EQ(r.out.history[k], 1) << k;
  expect_near(r.x, test::dense_solve(d, b), 1e-14);
}

TYPED_TEST(Methods, GmresHistoryIsMonotoneAndTrue) {
  const CsrMatrix a =
      test::random_matrix({.rows = 90, .per_row = 7, .symmetric_pattern = false, .dominance = 0.9, .seed = 11});
  const auto b = test::random_values(90, 12), x0 = test::random_values(90, 13);
  for (const char* method : {"gmres", "fgmres"})
    for (const int restart : {7, no_restart}) {
      SCOPED_TRACE(std::string(method) + " restart " + std::to_string(restart));
      const Asked all{.method = method, .precond = "jacobi", .criterion = until(1e-10, 400), .restart = restart};
      const Answer whole = run<TypeParam>(a, b, x0, all);
      EXPECT_EQ(whole.out.status, Status::converged);
      ASSERT_GT(whole.out.iterations, 10);
      for (std::size_t k = 1; k < whole.out.history.size(); ++k)
        EXPECT_LE(whole.out.history[k], whole.out.history[k - 1] * (1 + 1e-12)) << k;
      // Stopped after k steps, what the rotations estimate is the residual of the x that is returned.
      for (int k = 1; k < whole.out.iterations; k += 3) {
        Asked some = all;
        some.criterion.max_iterations = k;
        const Answer r = run<TypeParam>(a, b, x0, some);
        ASSERT_EQ(r.out.iterations, k);
        const double truth = test::true_residual(a, r.x, b);
        EXPECT_NEAR(r.estimate, truth, 1e-10 * truth + 1e-14) << k;
        EXPECT_NEAR(whole.out.history[std::size_t(k)], truth, 1e-10 * truth + 1e-14) << k;
      }
    }
}

TYPED_TEST(Methods, GmresMinimisesOverTheKrylovSpace) {
  // One step, by hand: x = t b with t = (A b, b) / (A b, A b).
  const CsrMatrix a = unsymmetric(40, 21);
  const auto b = test::random_values(40, 22);
  const auto d = test::to_dense(a);
  std::vector<double> Ab(40, 0.0);
  double up = 0, down = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t j = 0; j < 40; ++j) Ab[i] += d[i][j] * b[j];
    up += Ab[i] * b[i];
    down += Ab[i] * Ab[i];
  }
  const Answer r = run<TypeParam>(a, b, {.method = "gmres", .criterion = until(1e-12, 1)});
  EXPECT_EQ(r.out.status, Status::max_iterations);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_NEAR(r.x[i], up / down * b[i], 1e-14);
}

TYPED_TEST(Methods, GmresRestarts) {
  const CsrMatrix a = generate("gen:convdiff2d:12x12");
  const auto b = test::random_values(144, 5);
  const Answer full = run<TypeParam>(a, b, {.method = "gmres", .criterion = until(1e-9), .restart = no_restart});
  EXPECT_EQ(full.out.status, Status::converged);
  for (const int restart : {1, 2, 5, 10}) {
    SCOPED_TRACE(restart);
    const Answer r = run<TypeParam>(a, b, {.method = "gmres", .criterion = until(1e-9), .restart = restart});
    EXPECT_EQ(r.out.status, Status::converged);
    EXPECT_LE(test::true_residual(a, r.x, b), 1e-9);
    EXPECT_GT(r.out.iterations, full.out.iterations);
    EXPECT_TRUE(r.out.notes.empty()) << "a restart of the basis is not one of the driver";
    // Up to its restart a short basis does what a long one does; after it, less.
    for (std::size_t k = 0; k <= std::size_t(restart); ++k) EXPECT_EQ(r.out.history[k], full.out.history[k]) << k;
    EXPECT_GT(r.out.history[std::size_t(restart) + 2], full.out.history[std::size_t(restart) + 2]);
  }
}

/// Applies 1/diagonal in even applications and a rough scaling in odd ones: no fixed matrix.
template <class Space>
class Fickle final : public precond::Preconditioner<Space, double> {
 public:
  Fickle(const Space& space, std::size_t n) : space_(space), n_(n), times_(space_.template allocate<int>(1)) {
    const int zero = 0;
    space_.copy_in(times_, &zero, 1);
  }
  void factor(const precond::Values<Space, double>&, double) override {}
  void apply(const double* r, double* z) override {
    const auto times = times_.scalar();
    space_.for_each(
        n_, KRILU_FN(Index i) { z[i] = times() % 2 ? r[i] * (1 + i % 3) : r[i] * 0.25; });
    space_.once(KRILU_FN() { ++times(); });
  }
  std::size_t bytes() const override { return times_.bytes(); }

 private:
  Space space_;
  std::size_t n_;
  exec::Array<int> times_;
};

TYPED_TEST(Methods, FgmresBearsAPreconditionerThatChanges) {
  const CsrMatrix a = unsymmetric(50, 31);
  const auto b = test::random_values(50, 32);
  const auto estimate_and_truth = [&](bool flexible) {
    const Assembled<TypeParam> s(a, 1);
    Fickle<TypeParam> M(s.ex, 50);
    const auto method = s.method(flexible ? "fgmres" : "gmres", 30);
    krylov::Driver<TypeParam, double> driver(s.ex, 50);
    std::vector<double> ordered(50);
    for (std::size_t i = 0; i < 50; ++i) ordered[i] = b[std::size_t(s.order.rows[i])];
    const auto there_b = test::to_device(s.ex, ordered), x = test::to_device(s.ex, std::vector<double>(50, 0.0));
    const sparse::SplitOperator<TypeParam, double> A(s.ex, s.matrix);
    Monitor monitor;
    const Outcome out = driver.run(*method, A, M, there_b, x, until(1e-14, 9), monitor);
    return std::pair{monitor.relative_residual(), out.residual / out.rhs};
  };
  const auto [flexible_estimate, flexible_truth] = estimate_and_truth(true);
  EXPECT_NEAR(flexible_estimate, flexible_truth, 1e-10 * flexible_truth);
  EXPECT_LT(flexible_truth, 0.1);
  const auto [estimate, truth] = estimate_and_truth(false);
  EXPECT_GT(std::abs(estimate - truth), 1e-3 * truth) << "the preconditioner is meant to be too much for GMRES";
}

TYPED_TEST(Methods, FgmresIsGmresWhereThePreconditionerIsFixed) {
  const CsrMatrix a = generate("gen:convdiff2d:15x15");
  const auto b = test::random_values(225, 41);
  const Answer g = run<TypeParam>(a, b, {.method = "gmres", .precond = "dilu", .criterion = until(1e-9)});
  const Answer f = run<TypeParam>(a, b, {.method = "fgmres", .precond = "dilu", .criterion = until(1e-9)});
  ASSERT_EQ(f.out.iterations, g.out.iterations);
  for (std::size_t k = 0; k < g.out.history.size(); ++k)
    EXPECT_NEAR(f.out.history[k], g.out.history[k], 1e-12 * g.out.history[0]) << k;
}

// --- trivial systems -----------------------------------------------------------------------------------------------

const std::vector<std::string> all_methods{"cg", "bicgstab", "gmres", "fgmres"};

TYPED_TEST(Methods, IdentityTakesOneStep) {
  test::Dense d(20, std::vector<double>(20, 0.0));
  for (std::size_t i = 0; i < 20; ++i) d[i][i] = 1;
  const auto b = test::random_values(20, 1);
  for (const auto& method : all_methods) {
    SCOPED_TRACE(method);
    const Answer r = run<TypeParam>(from_dense(d), b, {.method = method, .criterion = until(1e-14)});
    EXPECT_EQ(r.out.status, Status::converged);
    EXPECT_EQ(r.out.iterations, 1);
    expect_near(r.x, b, 1e-15);
  }
}

TYPED_TEST(Methods, AnExactGuessTakesNoStepAndStays) {
  const CsrMatrix a = generate("gen:poisson2d:6x6");  // whole numbers: A ones is exact
  const std::vector<double> x(36, 1.0);
  std::vector<double> b(36, 0.0);
  for (Index i = 0; i < 36; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      b[std::size_t(i)] += a.values[std::size_t(k)];
  for (const auto& method : all_methods)
    for (const double rtol : {1e-8, 0.0}) {
      const Answer r = run<TypeParam>(a, b, x, {.method = method, .criterion = until(rtol)});
      EXPECT_EQ(r.out.status, Status::converged) << method;
      EXPECT_EQ(r.out.iterations, 0);
      EXPECT_EQ(r.out.history, std::vector<double>{0});
      EXPECT_EQ(r.x, x);
    }
}

TYPED_TEST(Methods, AZeroRightHandSideHasTheZeroSolution) {
  const CsrMatrix a = symmetric(40, 51);
  const std::vector<double> b(40, 0.0);
  for (const auto& method : all_methods) {
    SCOPED_TRACE(method);
    const Answer at_once = run<TypeParam>(a, b, {.method = method});
    EXPECT_EQ(at_once.out.status, Status::converged);
    EXPECT_EQ(at_once.out.iterations, 0);
    EXPECT_EQ(at_once.x, b);
    // From elsewhere an absolute tolerance says when to stop.
    const Criterion absolute{1e-8, 1e-12, Norm::true2, 1000};
    const Answer r = run<TypeParam>(a, b, test::random_values(40, 52), {.method = method, .criterion = absolute});
    EXPECT_EQ(r.out.status, Status::converged);
    EXPECT_GT(r.out.iterations, 1);
    EXPECT_LE(r.out.residual, 1e-12);
    for (double v : r.x) EXPECT_LE(std::abs(v), 1e-11);
  }
}

TYPED_TEST(Methods, OneRowAndNone) {
  for (const auto& method : all_methods) {
    SCOPED_TRACE(method);
    const Answer one = run<TypeParam>(from_dense({{-4}}), {2}, {.method = method, .criterion = until(1e-15)});
    EXPECT_EQ(one.out.status, Status::converged);
    EXPECT_EQ(one.out.iterations, 1);
    EXPECT_EQ(one.x, std::vector<double>{-0.5});

    CsrMatrix empty;
    empty.offsets.push_back(0);
    const Answer none = run<TypeParam>(empty, {}, {.method = method});
    EXPECT_EQ(none.out.status, Status::converged);
    EXPECT_EQ(none.out.iterations, 0);
    EXPECT_EQ(none.out.residual, 0);
  }
}

TYPED_TEST(Methods, GmresKeepsWhatASingularMatrixAllows) {
  // The middle unknown is out of reach: what is left of b is its second entry, and the driver says that it broke down.
  const CsrMatrix a = from_dense({{2, 0, 0}, {0, 0, 0}, {0, 0, 1}});
  const std::vector<double> b{1, 0.25, -1};
  for (const char* method : {"gmres", "fgmres"}) {
    const Answer r = run<TypeParam>(a, b, {.method = method});
    EXPECT_EQ(r.out.status, Status::breakdown);
    EXPECT_NEAR(r.out.residual, 0.25, 1e-12);
    EXPECT_NEAR(r.x[0], 0.5, 1e-12);
    EXPECT_NEAR(r.x[2], -1, 1e-12);
  }
  // The second step finds nothing new, and nothing to solve with, whether the basis ends there or not.
  for (const int restart : {2, no_restart}) {
    const Answer r = run<TypeParam>(from_dense({{1, 1}, {1, 1}}), {2, 0}, {.method = "gmres", .restart = restart});
    EXPECT_EQ(r.out.status, Status::breakdown) << restart;
    EXPECT_NEAR(r.out.residual, std::sqrt(2), 1e-12);
    EXPECT_LE(r.out.iterations, 4);
  }
  // Nor does the third where three eigenvalues are all that there is, of many rows, and one of them is 0.
  test::Dense three(60, std::vector<double>(60, 0.0));
  for (std::size_t i = 0; i < 60; ++i) three[i][i] = double(i % 3);
  const auto some = test::random_values(60, 77);
  double out_of_reach = 0;
  for (std::size_t i = 0; i < 60; i += 3) out_of_reach += some[i] * some[i];
  const Answer left = run<TypeParam>(from_dense(three), some, {.method = "gmres", .restart = no_restart});
  EXPECT_NE(left.out.status, Status::converged);
  EXPECT_NEAR(left.out.residual, std::sqrt(out_of_reach), 1e-10);
  EXPECT_LE(left.out.iterations, 12);
  // Nothing at all is in reach.
  const Answer r = run<TypeParam>(from_dense({{0, 1}, {0, 0}}), {1, 0}, {.method = "gmres"});
  EXPECT_EQ(r.out.status, Status::breakdown);
  EXPECT_EQ(r.x, (std::vector<double>{0, 0}));
}

// --- sameness ------------------------------------------------------------------------------------------------------

TEST(Sameness, HistoriesDoNotDependOnThreadsOrSpace) {
  // More rows than 3 teams need to share a loop; a last block that is not whole.
  const CsrMatrix unsymmetric = generate("gen:convdiff2d:93x77"), symmetric = generate("gen:poisson2d:93x77");
  const auto b = test::random_values(93 * 77, 61);
  for (const auto& method : all_methods)
    for (const Norm norm : {Norm::true2, Norm::openfoam}) {
      if (norm == Norm::openfoam && method.ends_with("gmres")) continue;
      for (const char* precond : {"none", "dilu"}) {
        SCOPED_TRACE(method + " " + precond + (norm == Norm::openfoam ? " openfoam" : ""));
        const CsrMatrix& a = method == "cg" ? symmetric : unsymmetric;
        const Criterion criterion{1e-7, 0, norm, 60};
        const Answer first = run<exec::Host>(a, b, {method, precond, criterion, 1});
        ASSERT_GT(first.out.iterations, 10);
        for (const int threads : {2, 3}) {
          const Answer r = run<exec::Host>(a, b, {method, precond, criterion, threads});
          EXPECT_EQ(r.out.history, first.out.history) << threads << " threads";
          EXPECT_EQ(r.x, first.x) << threads << " threads";
        }
        for (const int threads : {1, 3}) {
          const Answer r = run<exec::Emulated>(a, b, {method, precond, criterion, threads});
          EXPECT_EQ(r.out.history, first.out.history) << "emulated, " << threads << " threads";
          EXPECT_EQ(r.x, first.x) << "emulated, " << threads << " threads";
        }
      }
    }
}

TEST(Sameness, SynchronisationsDoNotGrowWithIterations) {
  const CsrMatrix a = generate("gen:poisson2d:40x40");
  const auto b = test::random_values(1600, 71);
  for (const auto& method : all_methods) {
    SCOPED_TRACE(method);
    const auto after = [&](int iterations) {
      const Answer r =
          run<exec::Emulated>(a, b, {.method = method, .criterion = until(1e-15, iterations), .restart = 10});
      EXPECT_EQ(r.out.iterations, iterations);
      return r.synchronisations;
    };
    const long few = after(3);
    EXPECT_GT(few, 0);
    EXPECT_LT(few, 12);
    EXPECT_EQ(after(45), few);
  }
}

}  // namespace
