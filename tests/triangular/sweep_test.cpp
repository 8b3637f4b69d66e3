// SPDX-License-Identifier: Apache-2.0
// Triangular sweeps against substitution row by row in long double, for both forms of the factors; all strategies
// against the serial sweep bit for bit, for teams of one to four and every slice height; each slice once and after all
// that it reads; and the chooser, which must be right while it tries, settle, and say what it saw. The tuning is small,
// so that small matrices take the parallel paths.
#include "triangular/sweep.hpp"

#include <fmt/format.h>

#include <atomic>
#include <ranges>

#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "support/matrices.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

using namespace triangular;

constexpr RunnerTuning small{.narrow_rows = 1, .group_rows = 8, .trials = 2};
const std::vector<Strategy> strategies{Strategy::serial, Strategy::level_set, Strategy::sync_free};

struct SweepCase {
  std::string name, ordering;
  CsrMatrix a;
};
const std::vector<SweepCase>& sweep_cases() {
  static const std::vector<SweepCase> all = [] {
    std::vector<SweepCase> c;
    c.push_back({"random", "natural", scaled(random_matrix({.rows = 900, .per_row = 4, .seed = 91}))});
    c.push_back({"unsymmetric", "rcm",
                 scaled(random_matrix({.rows = 900, .per_row = 3, .symmetric_pattern = false, .seed = 92}))});
    c.push_back({"grid of two colours", "multicolour", scaled(grid(40, 25))});
    c.push_back({"chain", "natural", scaled(grid(2000, 1))});
    CsrMatrix arrow;  // row 40 of 300 reads, and is read by, all others
    arrow.rows = arrow.cols = 300;
    arrow.offsets.push_back(0);
    for (Index i = 0; i < 300; ++i) {
      for (Index j = 0; j < 300; ++j)
        if (i == j || i == 40 || j == 40) {
          arrow.columns.push_back(j);
          arrow.values.push_back(i == j ? 2 : 0.01 * double((i * 7 + j) % 11) - 0.04);
        }
      arrow.offsets.push_back(Offset(arrow.columns.size()));
    }
    c.push_back({"dense row and column", "natural", scaled(std::move(arrow))});
    // Nodes, which slices of a given height know nothing of.
    c.push_back({"nodes of one to eight", "natural",
                 scaled(with_nodes(random_matrix({.rows = 200, .per_row = 4, .seed = 97}),
                                   [](Index i) { return 1 + (i * 5 + i / 7) % 8; }))});
    c.push_back({"nodes of two and three", "rcm",
                 scaled(with_nodes(random_matrix({.rows = 200, .per_row = 3, .symmetric_pattern = false, .seed = 98}),
                                   [](Index i) { return 2 + i % 2; }))});
    c.push_back({"diagonal", "natural", random_matrix({.rows = 100, .per_row = 0})});
    c.push_back({"one row", "natural", from_dense({{2.0}})});
    CsrMatrix none;
    none.offsets.push_back(0);
    c.push_back({"no rows", "natural", std::move(none)});
    return c;
  }();
  return all;
}

/// One solve of each form, in the caller's order; and of the first the product that comes with it.
constexpr const char* forms[] = {"DILU", "DILU with a product", "its product", "LU"};
using Results = std::vector<std::vector<double>>;

struct Vectors {
  std::vector<double> d, b;
  explicit Vectors(std::size_t n) : d(random_vector(n, 93, 0.5, 1.0)), b(random_values(n, 94)) {}
};

SliceRunner runner_of(const SplitOn<exec::Host>& s, Strategy strategy, RunnerTuning tuning = small) {
  const auto p = s.pattern->view();
  return SliceRunner(s.host, *s.pattern, p.lower.column, p.upper.column, strategy, tuning);
}

Results solve(const SplitOn<exec::Host>& s, const SliceRunner& runner) {
  const auto n = std::size_t(s.pattern->rows());
  const Vectors v(n);
  const auto d = s.in(v.d), b = s.in(v.b);
  const auto view = s.matrix.view();
  const auto unwritten = [&] { return s.in(std::vector<double>(n, 1e300)); };  // what is not written is seen
  const auto z = unwritten(), both = unwritten(), product = unwritten(), x = s.in(v.b);
  solve_dilu_form(runner, view, d.data(), b.data(), z.data());
  solve_dilu_form(runner, view, d.data(), b.data(), both.data(), product.data());
  sparse::add_lower(s.host, view, both.data(), product.data());
  const auto by_itself = unwritten();
  sparse::multiply(s.host, view, both.data(), by_itself.data());
  EXPECT_EQ(s.out(product), s.out(by_itself));
  solve_lu(runner, view, d.data(), x.data());
  return {s.out(z), s.out(both), s.out(product), s.out(x)};
}

/// The same by substitution in the sequence of the ordering, from the caller's own matrix.
Results reference(const CsrView& a, const std::string& ordering) {
  const auto n = std::size_t(a.rows);
  schedule::Order order = schedule::order_by_name(ordering, a, sparse::adjacency(a));
  if (order.empty()) order = natural_order(a.rows);
  const schedule::Order rank = schedule::inverse(order);
  const Vectors v(n);
  using Long = std::vector<long double>;
  const auto sum = [&](Index i, bool lower, const Long& x) {
    long double s = 0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const Index j = a.columns[k];
      if (lower ? rank[std::size_t(j)] < rank[std::size_t(i)] : rank[std::size_t(j)] > rank[std::size_t(i)])
        s += a.values[k] * x[std::size_t(j)];
    }
    return s;
  };
  Results all;
  const auto keep = [&](const Long& x) { all.emplace_back(x.begin(), x.end()); };
  Long x(n), product(n);
  const auto d = [&](Index i) -> long double { return v.d[std::size_t(i)]; };
  for (Index i : order) x[std::size_t(i)] = (v.b[std::size_t(i)] - sum(i, true, x)) * d(i);
  for (Index i : order | std::views::reverse) x[std::size_t(i)] -= d(i) * sum(i, false, x);
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
      product[std::size_t(i)] += a.values[k] * x[std::size_t(a.columns[k])];
  for (const Long* form : {&x, &x, &product}) keep(*form);
  for (Index i : order) x[std::size_t(i)] = v.b[std::size_t(i)] - sum(i, true, x);
  for (Index i : order | std::views::reverse) x[std::size_t(i)] = (x[std::size_t(i)] - sum(i, false, x)) * d(i);
  keep(x);
  return all;
}

TEST(Sweeps, AgainstSubstitutionAndTheSameBitsForAllStrategiesAndTeams) {
  for (const SweepCase& c : sweep_cases()) {
    const Results expected = reference(c.a, c.ordering);
    Results first;
    for (int height : {1, 4, 8, 0}) {
      if (height == 4 || height == 0) first.clear();  // entries are added in another sequence, or may be
      for (int threads : {1, 2, 3, 4}) {
        const SplitOn<exec::Host> s(exec::Host(threads), c.a, c.ordering, height);
        for (Strategy strategy : strategies) {
          SCOPED_TRACE(fmt::format("{}, {}, {} threads, height {}", c.name, to_string(strategy), threads, height));
          const Results got = solve(s, runner_of(s, strategy));
          if (first.empty()) first = got;
          for (std::size_t f = 0; f < got.size(); ++f) {
            if (threads == 1) {
              EXPECT_LT(difference(got[f], expected[f]), 1e-13) << forms[f];
            }
            EXPECT_EQ(got[f], first[f]) << forms[f];  // numbers, not bits: padding may turn -0 into 0
          }
        }
      }
    }
  }
}

TEST(Sweeps, OfNodesInSinglePrecisionAndHalfAreThoseOfTheirValuesAndSoAreProducts) {
  // Nodes of each size among their like, and of all sizes among each other. Values that every format holds: what
  // differs is the arithmetic alone.
  for (Index size = 2; size <= sparse::most_node_rows + 1; ++size) {
    SCOPED_TRACE(size);
    CsrMatrix a = with_nodes(grid(7, 5), [size](Index i) { return size <= sparse::most_node_rows ? size : 1 + i % 8; });
    std::mt19937_64 engine(99);
    for (double& v : a.values) v = double(int(engine() % 3) - 1);
    const SplitOn<exec::Host> s(exec::Host(1), a, "natural");
    ASSERT_EQ(s.pattern->height(), 0);
    const auto n = std::size_t(a.rows);
    const SliceRunner runner = runner_of(s, Strategy::serial);
    const auto ones = s.in(std::vector<double>(n, 0.0625)), b = s.in(std::vector<double>(n, 1.0)),
               z = s.in(random_values(n, 1)), product = s.in(random_values(n, 2));
    solve_dilu_form(runner, s.matrix.view(), ones.data(), b.data(), z.data());
    sparse::multiply(s.host, s.matrix.view(), z.data(), product.data());
    const auto in_float = [&](const exec::Array<double>& v) {
      auto f = s.host.allocate<float>(v.size());
      for (std::size_t i = 0; i < v.size(); ++i) f.data()[i] = float(v.data()[i]);
      return f;
    };
    const auto ones32 = in_float(ones), b32 = in_float(b), z32 = in_float(z);
    const auto differ = [n](const exec::Array<float>& x, const exec::Array<double>& y) {
      double most = 0, largest = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double error = std::abs(double(x.data()[i]) - y.data()[i]);
        most = std::isfinite(error) ? std::max(most, error) : std::numeric_limits<double>::infinity();
        largest = std::max(largest, std::abs(y.data()[i]));
      }
      return most / largest;
    };
    const auto check = [&](auto value, Format storage) {
      using S = decltype(value);
      const auto rounded = sparse::rounded_matrix<S>(s.host, s.pattern, s.matrix.view(), {.storage = storage}, nullptr);
      const auto x = s.host.allocate<float>(n);
      solve_dilu_form(runner, rounded.view(), ones32.data(), b32.data(), x.data());
      EXPECT_LT(differ(x, z), 1e-5);
      sparse::multiply(s.host, rounded.view(), z32.data(), x.data());
      EXPECT_LT(differ(x, product), 1e-5);
    };
    check(float{}, Format::fp32);
    check(Half{}, Format::fp16);
    check(Bfloat16{}, Format::bf16);
  }
}

TEST(Sweeps, TwoHundredThousandIndependentRows) {
  const CsrMatrix a = random_matrix({.rows = 200000, .per_row = 0});
  const Vectors v(200000);
  std::vector<double> expected(200000);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = v.b[i] * v.d[i];
  for (Strategy strategy : strategies) {
    const SplitOn<exec::Host> s(exec::Host(3), a, "natural");
    EXPECT_EQ(s.order.group.size(), 2u) << "one level";
    EXPECT_EQ(bits(solve(s, runner_of(s, strategy, RunnerTuning{}))[0]), bits(expected)) << to_string(strategy);
  }
}

TEST(Sweeps, ABarrierAfterEveryRowOfAChain) {
  const CsrMatrix a = scaled(grid(150, 1));
  for (int threads : {2, 3}) {
    const SplitOn<exec::Host> s(exec::Host(threads), a, "natural");
    const Results serial = solve(s, runner_of(s, Strategy::serial));
    EXPECT_EQ(solve(s, runner_of(s, Strategy::level_set, {.narrow_rows = 0})), serial);
    EXPECT_EQ(solve(s, runner_of(s, Strategy::sync_free, {.group_rows = 1})), serial);
  }
}

TEST(Sweeps, ThreeHundredRepetitionsGiveTheSameBits) {
  const CsrMatrix a = scaled(random_matrix({.rows = 500, .per_row = 4, .seed = 95}));
  for (int threads : {2, 3}) {
    const SplitOn<exec::Host> s(exec::Host(threads), a, "natural", 4);
    const Vectors v(500);
    const auto d = s.in(v.d), b = s.in(v.b), x = s.in(v.b);
    for (Strategy strategy : strategies) {
      const SliceRunner runner = runner_of(s, strategy);
      std::vector<double> first;
      for (int k = 0; k < 300; ++k) {
        solve_dilu_form(runner, s.matrix.view(), d.data(), b.data(), x.data());
        if (k == 0) first = s.out(x);
        ASSERT_EQ(bits(s.out(x)), bits(first)) << to_string(strategy) << ", solve " << k;
      }
    }
  }
}

TEST(SliceRunner, EachSliceOnceAndAfterAllThatItReads) {
  for (const SweepCase& c : sweep_cases())
    for (int height : {1, 8, 0})
      for (int threads : {1, 2, 4})
        for (Strategy strategy : strategies) {
          SCOPED_TRACE(fmt::format("{}, {}, {} threads, height {}", c.name, to_string(strategy), threads, height));
          const SplitOn<exec::Host> s(exec::Host(threads), c.a, c.ordering, height);
          const auto p = s.pattern->view();
          const SliceRunner runner = runner_of(s, strategy);
          std::vector<Index> slice_of(std::size_t(p.rows));
          for (Index k = 0; k < p.slices; ++k)
            for (Index i = p.slice_row[k]; i < p.slice_row[k + 1]; ++i) slice_of[std::size_t(i)] = k;
          const auto slices = std::size_t(p.slices);
          std::vector<std::atomic<int>> up(slices), down(slices);
          std::atomic<int> early{0};
          const auto visit = [&](const sparse::PartPattern& part, std::vector<std::atomic<int>>& done, Index k) {
            for (Offset e = part.offset[k]; e < part.offset[k + 1]; ++e) {
              const Index other = slice_of[std::size_t(part.column[e])];
              early += other != k && done[std::size_t(other)] == 0;  // rows of a node read one another
            }
            ++done[std::size_t(k)];
          };
          runner.both([&](Index k) { visit(p.lower, up, k); },
                      [&](Index k) {
                        for (const auto& u : {&up.front(), &up.back()}) early += *u == 0;  // all of forward is over
                        visit(p.upper, down, k);
                      });
          runner.ascending([&](Index k) { ++up[std::size_t(k)]; });
          EXPECT_EQ(early, 0);
          for (std::size_t k = 0; k < slices; ++k) {
            ASSERT_EQ(up[k], 2) << "slice " << k;
            ASSERT_EQ(down[k], 1) << "slice " << k;
          }
        }
}

TEST(Chooser, IsRightWhileItTriesThenSettlesAndSaysWhatItSaw) {
  const CsrMatrix a = scaled(random_matrix({.rows = 700, .per_row = 4, .seed = 96}));
  const SplitOn<exec::Host> s(exec::Host(2), a, "natural");
  const Vectors v(700);
  const auto d = s.in(v.d), b = s.in(v.b);
  const auto dilu = [&](const SliceRunner& runner) {
    const auto x = s.in(std::vector<double>(700, 1e300));
    solve_dilu_form(runner, s.matrix.view(), d.data(), b.data(), x.data());
    return s.out(x);
  };
  const std::vector<double> expected = dilu(runner_of(s, Strategy::serial));
  for (int trials : {1, 2, 5}) {
    const SliceRunner runner = runner_of(s, Strategy::automatic, {.narrow_rows = 1, .group_rows = 8, .trials = trials});
    EXPECT_EQ(runner.report().seen, "");
    runner.ascending([](Index) {});
    EXPECT_EQ(runner.report().seen, "") << "single sweeps are no trials";
    for (int k = 0; k < 3 * trials; ++k) {
      EXPECT_FALSE(runner.settled()) << "after " << k << " of " << trials << " trials each";
      EXPECT_EQ(runner.current(), Strategy::serial) << "what single sweeps run until then";
      EXPECT_EQ(bits(dilu(runner)), bits(expected)) << "trial " << k;
    }
    EXPECT_TRUE(runner.settled());
    EXPECT_NE(runner.current(), Strategy::automatic);
    const std::string seen = runner.report().seen;
    // The one that it settled on is the one that it saw to be the fastest.
    double best = 1e300, chosen = -1;
    for (Strategy strategy : strategies) {
      const std::string name = std::string(to_string(strategy)) + " ";
      const auto at = seen.find(name);
      ASSERT_NE(at, std::string::npos) << seen;
      const double ms = std::stod(seen.substr(at + name.size()));
      best = std::min(best, ms);
      if (strategy == runner.current()) chosen = ms;
    }
    EXPECT_EQ(chosen, best) << seen;
    EXPECT_EQ(bits(dilu(runner)), bits(expected));
    EXPECT_EQ(runner.report().seen, seen) << "it times no more";
  }
}

TEST(Chooser, HasNothingToChooseOnOneThreadOrWhereItIsTold) {
  const SplitOn<exec::Host> s(exec::Host(1), grid(5, 5), "natural");
  const SliceRunner alone = runner_of(s, Strategy::automatic);
  EXPECT_TRUE(alone.settled());
  EXPECT_EQ(alone.current(), Strategy::serial);
  EXPECT_EQ(alone.report().seen, "");
  const SplitOn<exec::Host> two(exec::Host(2), grid(5, 5), "natural");
  for (Strategy strategy : strategies) {
    const SliceRunner told = runner_of(two, strategy);
    EXPECT_TRUE(told.settled());
    EXPECT_EQ(told.current(), strategy);
  }
}

TEST(StrategyNames, GoThereAndBack) {
  for (const std::string& name : strategy_names()) EXPECT_EQ(to_string(strategy_by_name(name)), name);
  EXPECT_EQ(strategy_by_name("sync-free"), Strategy::sync_free);
  try {
    strategy_by_name("levelset");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "unknown triangular strategy 'levelset': did you mean 'level-set'? It is one of auto, serial, "
                 "level-set, sync-free, tiled");
  }
}

}  // namespace
}  // namespace krilu::test
