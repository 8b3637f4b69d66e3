// SPDX-License-Identifier: Apache-2.0
// Triangular sweeps on a GPU against substitution row by row in long double, for every form of the diagonal and the
// pair of DILU; level-set, sync-free and tiled against each other bit for bit, with many tiles and few, levels narrow
// and wide; coloured blocks; the same bits on every repetition; NaN, and the number that stands for "not written yet",
// go through without a hang; and the chooser.
#include <limits>

#include "krilu/error.hpp"
#include "support/sliced_matrix.cuh"
#include "triangular/runner.cuh"

namespace krilu::test {
namespace {

using exec::Cuda;
using triangular::Diagonal;
using triangular::Recurrence;
using triangular::Strategy;
using triangular::WarpRunner;
using triangular::WarpTuning;

constexpr Strategy sweep_strategies[] = {Strategy::level_set, Strategy::sync_free, Strategy::tiled};

struct Vectors {
  std::vector<double> d, b;
  explicit Vectors(Index n, std::uint64_t seed = 601)
      : d(random_vector(std::size_t(n), seed, 0.5, 1.0)), b(random_values(std::size_t(n), seed + 1)) {}
};

/// unit lower, reciprocal lower, unit upper, reciprocal upper, the pair of DILU.
constexpr const char* forms[] = {"unit lower", "reciprocal lower", "unit upper", "reciprocal upper", "dilu"};
using Results = std::vector<std::vector<double>>;

/// A runner with the vectors that it works on: the pair's work space is its own, as both() wants it.
class Sweeper {
 public:
  Sweeper(const SlicedOn& s, Strategy strategy, const Vectors& v, const WarpTuning& tuning = {})
      : runner(s.space, s.plan, *s.pattern, strategy, tuning),
        s_(s),
        d_(s.in(v.d)),
        b_(s.in(v.b)),
        work_(s.in(v.b)),
        x_(s.in(v.b)) {}

  template <Diagonal form, bool lower>
  std::vector<double> sweep() {
    blot_out();
    const auto p = pattern();
    runner.sweep(Recurrence<double, form, lower>{lower ? p.lower : p.upper,
                                                 lower ? s_.matrix.lower.data() : s_.matrix.upper.data(), b_.data(),
                                                 form == Diagonal::unit ? nullptr : d_.data(), x_.data()});
    return s_.out(x_);
  }
  std::vector<double> both() {
    blot_out();
    const auto p = pattern();
    runner.both(
        Recurrence<double, Diagonal::reciprocal, true>{p.lower, s_.matrix.lower.data(), b_.data(), d_.data(),
                                                       work_.data()},
        Recurrence<double, Diagonal::dilu, false>{p.upper, s_.matrix.upper.data(), work_.data(), d_.data(), x_.data()});
    return s_.out(x_);
  }
  Results all() {
    return {sweep<Diagonal::unit, true>(), sweep<Diagonal::reciprocal, true>(), sweep<Diagonal::unit, false>(),
            sweep<Diagonal::reciprocal, false>(), both()};
  }

  WarpRunner runner;
  bool stencils = true;  // used where the pattern has them

 private:
  sparse::SlicedPatternView pattern() const {
    auto p = s_.pattern->view();
    if (!stencils) p.lower.stencil = p.upper.stencil = {};
    return p;
  }
  /// What is not written is seen.
  void blot_out() { s_.space.copy_in(x_, std::vector<double>(x_.size(), 1e300).data(), x_.size()); }

  const SlicedOn& s_;
  exec::Array<double> d_, b_, work_, x_;
};

/// The same by substitution in the sequence that was asked for: of the order, or of the blocks.
Results reference(const CsrMatrix& a, const SlicedOn& s, const Vectors& v) {
  const auto n = std::size_t(a.rows);
  const bool blocks = s.plan->layout->blocks;
  const std::vector<Index> order = blocks ? s.row : s.order.empty() ? natural_order(a.rows) : s.order;
  const std::vector<Index> rank = schedule::inverse(order);
  using Long = std::vector<long double>;
  const auto sum = [&](Index i, bool lower, const Long& x) {
    long double total = 0;
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      const auto j = std::size_t(a.columns[std::size_t(k)]);
      if (lower ? rank[j] < rank[std::size_t(i)] : rank[j] > rank[std::size_t(i)])
        total += a.values[std::size_t(k)] * x[j];
    }
    return total;
  };
  Results all;
  const auto keep = [&](const Long& x) { all.emplace_back(x.begin(), x.end()); };
  Long x(n);
  for (const bool lower : {true, false})
    for (const bool unit : {true, false}) {
      for (std::size_t k = 0; k < n; ++k) {
        const Index i = order[lower ? k : n - 1 - k];
        x[std::size_t(i)] = (v.b[std::size_t(i)] - sum(i, lower, x)) * (unit ? 1.0L : v.d[std::size_t(i)]);
      }
      keep(x);
    }
  for (Index i : order) x[std::size_t(i)] = (v.b[std::size_t(i)] - sum(i, true, x)) * v.d[std::size_t(i)];
  for (std::size_t k = n; k-- > 0;) x[std::size_t(order[k])] -= v.d[std::size_t(order[k])] * sum(order[k], false, x);
  keep(x);
  return all;
}

void expect_same_bits(const Results& got, const Results& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t f = 0; f < got.size(); ++f) ASSERT_EQ(bits(got[f]), bits(expected[f])) << forms[f];
}

/// Levels all left to one block, none, or as it comes; warps and threads few and many.
std::vector<WarpTuning> tunings() {
  std::vector<WarpTuning> all(3);
  all[1].level_set.narrow_slices = 0;
  all[1].level_set.wide_threads = 32;
  all[1].sync_free.threads = 32;
  all[1].sync_free.warps_per_multiprocessor = 1;
  all[1].sync_free.wide_level_slices = 1 << 30;
  all[1].tiled.threads = 32;
  all[2].level_set.narrow_slices = 1 << 30;
  all[2].sync_free.wide_level_slices = 0;
  all[2].tiled.threads = 64;
  return all;
}

void expect_sweeps(const Cuda& ex, const std::string& name, const CsrMatrix& matrix, std::uint64_t seed) {
  const CsrMatrix a = scaled(matrix);
  const Vectors v(a.rows, seed);
  for (Rows rows : {Rows::by_level, Rows::by_level_of_a_random_order})
    for (Index tile_rows : {0, 64, 16384}) {  // the last: more shared memory than a kernel has unasked
      if (std::size_t(tile_rows) * sizeof(double) + 1024 > ex.shared_memory()) continue;
      SCOPED_TRACE(name + ", rows " + to_string(rows) + ", tiles of " + std::to_string(tile_rows) + ", seed " +
                   std::to_string(seed));
      const SlicedOn s(ex, a, rows, seed, tile_rows);
      const Results expected = reference(a, s, v), first = Sweeper(s, Strategy::level_set, v).all();
      for (std::size_t f = 0; f < first.size(); ++f) EXPECT_LT(difference(first[f], expected[f]), 1e-13) << forms[f];
      for (const WarpTuning& tuning : tunings())
        for (Strategy strategy : sweep_strategies) {
          SCOPED_TRACE(to_string(strategy));
          Sweeper w(s, strategy, v, tuning);
          EXPECT_TRUE(w.runner.settled());
          EXPECT_EQ(w.runner.current(), strategy);
          expect_same_bits(w.all(), first);
          expect_same_bits(w.all(), first);  // what the sweeps before left behind does no harm
        }
    }
  SCOPED_TRACE(name + ", rows in blocks, seed " + std::to_string(seed));
  const SlicedOn s(ex, a, Rows::in_blocks);
  const Results expected = reference(a, s, v);
  Sweeper w(s, Strategy::automatic, v);
  EXPECT_TRUE(w.runner.settled()) << "there is one way to run blocks";
  const Results first = w.all();
  for (std::size_t f = 0; f < first.size(); ++f) EXPECT_LT(difference(first[f], expected[f]), 1e-13) << forms[f];
  expect_same_bits(w.all(), first);
}

TEST(SweepsSmall, AgainstSubstitutionAndTheSameBitsForAllStrategies) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : small_cases()) expect_sweeps(ex, c.name, c.a, 611);
  expect_sweeps(ex, "no rows", from_rows({}), 612);
}

TEST(Sweeps, AgainstSubstitutionAndTheSameBitsForAllStrategies) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : large_cases()) expect_sweeps(ex, c.name, c.a, 613);
}

TEST(Sweeps, FiveMillionIndependentRows) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const Index n = 5000000;
  const SlicedOn s(ex, diagonal(n), Rows::by_level);
  EXPECT_EQ(s.plan->levels(), 1);
  const Vectors v(n, 614);
  std::vector<double> expected(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = v.b[i] * v.d[i];
  for (Strategy strategy : sweep_strategies) {
    Sweeper w(s, strategy, v);
    EXPECT_TRUE(w.both() == expected) << to_string(strategy);
    EXPECT_TRUE((w.sweep<Diagonal::unit, false>() == v.b)) << to_string(strategy);
  }
}

TEST(Sweeps, TwoHundredRepetitionsGiveTheSameBits) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const CsrMatrix& matrix : {random_matrix({.rows = 3000, .per_row = 5, .seed = 615}), grid(60, 50),
                                  with_long_rows(2000, {40, 100, 300}, true, 616), chain(500)}) {
    const CsrMatrix a = scaled(matrix);
    const Vectors v(a.rows, 617);
    for (Index tile_rows : {0, 64}) {
      const SlicedOn s(ex, a, Rows::by_level, 1, tile_rows);
      const auto expected = bits(Sweeper(s, Strategy::level_set, v).both());
      for (Strategy strategy : sweep_strategies) {
        Sweeper w(s, strategy, v);
        for (int k = 0; k < 200; ++k) ASSERT_EQ(bits(w.both()), expected) << to_string(strategy) << ", pair " << k;
      }
    }
    const SlicedOn s(ex, a, Rows::in_blocks);
    Sweeper w(s, Strategy::automatic, v);
    const auto expected = bits(w.both());
    for (int k = 0; k < 200; ++k) ASSERT_EQ(bits(w.both()), expected) << "blocks, pair " << k;
  }
}

/// Lattices, in blocks whose slices read alike, of sizes that boxes do not divide.
std::vector<GpuCase> lattices() {
  std::vector<GpuCase> all;
  for (const char* name : {"gen:convdiff2d:100x70", "gen:poisson3d:33x30x29", "gen:convdiff3d27:41x40x39"})
    all.push_back({name, generate(name)});
  return all;
}

TEST(SweepsSmall, StencilsChangeNoBit) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : lattices()) {
    SCOPED_TRACE(c.name);
    const CsrMatrix a = scaled(c.a);
    const SlicedOn s(ex, a, Rows::in_blocks);
    ASSERT_TRUE(s.pattern->view().lower.stencil && s.pattern->view().upper.stencil);
    const Vectors v(a.rows, 618);
    const Results expected = reference(a, s, v);
    for (Index slices_to_share : {0, 1 << 20}) {  // two slices a warp, and one
      WarpTuning tuning;
      tuning.slices_to_share = slices_to_share;
      Sweeper w(s, Strategy::automatic, v, tuning);
      const Results with = w.all();
      for (std::size_t f = 0; f < with.size(); ++f) EXPECT_LT(difference(with[f], expected[f]), 1e-13) << forms[f];
      w.stencils = false;
      expect_same_bits(w.all(), with);
    }
  }
}

// --- numbers that are none -----------------------------------------------------------------------------------------

double awaited() {
  const auto pattern = triangular::Awaited<double>::bits;
  double v;
  std::memcpy(&v, &pattern, sizeof v);
  return v;
}

void expect_nan_where(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << "row " << i;
    if (!std::isnan(got[i])) {
      ASSERT_NEAR(got[i], expected[i], 1e-12) << "row " << i;
    }
  }
}

/// NaN of several kinds, in two rows and in all.
void expect_not_a_number_passes(const Cuda& ex, const GpuCase& c) {
  const CsrMatrix a = scaled(c.a);
  const auto n = std::size_t(a.rows);
  for (Rows rows : {Rows::by_level, Rows::by_level_of_a_random_order, Rows::in_blocks}) {
    const SlicedOn s(ex, a, rows, 622, 64);
    for (double bad : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::quiet_NaN(), awaited()})
      for (bool everywhere : {false, true}) {
        Vectors v(a.rows, 621);
        v.b[n / 3] = v.b[n - 1] = bad;
        if (everywhere) v.b.assign(n, bad);
        const Results expected = reference(a, s, v);
        for (Strategy strategy : sweep_strategies) {
          if (rows == Rows::in_blocks && strategy != Strategy::level_set) continue;
          SCOPED_TRACE(c.name + ", rows " + to_string(rows) + ", " + to_string(strategy) +
                       (everywhere ? ", NaN everywhere" : ", NaN in two rows"));
          Sweeper w(s, strategy, v);
          const Results got = w.all();
          for (std::size_t f = 0; f < got.size(); ++f) {
            SCOPED_TRACE(forms[f]);
            expect_nan_where(got[f], expected[f]);
          }
          expect_nan_where(w.both(), expected.back());
        }
      }
  }
}

TEST(NotANumberSmall, ReachesTheRowsThatDependOnItAndHangsNothing) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : small_cases()) expect_not_a_number_passes(ex, c);
}

TEST(NotANumber, LeavesTheNextSolveAlone) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix a = scaled(random_matrix({.rows = 5000, .per_row = 5, .seed = 623}));
  const SlicedOn s(ex, a, Rows::by_level);
  const Vectors v(a.rows, 624);
  const auto d = s.in(v.d), b = s.in(v.b), work = s.in(v.b), x = s.in(v.b);
  const auto p = s.pattern->view();
  const auto expected = bits(Sweeper(s, Strategy::level_set, v).both());
  for (Strategy strategy : sweep_strategies) {
    const WarpRunner runner(ex, s.plan, *s.pattern, strategy);
    const auto both = [&](const std::vector<double>& right) {
      const auto r = s.in(right);
      runner.both(
          Recurrence<double, Diagonal::reciprocal, true>{p.lower, s.matrix.lower.data(), r.data(), d.data(),
                                                         work.data()},
          Recurrence<double, Diagonal::dilu, false>{p.upper, s.matrix.upper.data(), work.data(), d.data(), x.data()});
      return s.out(x);
    };
    both(std::vector<double>(v.b.size(), awaited()));
    EXPECT_EQ(bits(both(v.b)), expected) << to_string(strategy);
    both(std::vector<double>(v.b.size(), std::numeric_limits<double>::infinity()));
    EXPECT_EQ(bits(both(v.b)), expected) << to_string(strategy);
  }
}

// --- the chooser ---------------------------------------------------------------------------------------------------

/// Milliseconds after each name in "level-set 0.80 ms, tiled 0.31 ms"; negative for one that is not there.
double milliseconds(const std::string& seen, Strategy strategy) {
  const std::string name = std::string(to_string(strategy)) + " ";
  const auto at = seen.find(name);
  return at == std::string::npos ? -1 : std::stod(seen.substr(at + name.size()));
}

TEST(GpuChooserSmall, IsRightWhileItTriesThenSettlesAndSaysWhatItSaw) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix a = scaled(random_matrix({.rows = 2000, .per_row = 5, .seed = 631}));
  const SlicedOn s(ex, a, Rows::by_level, 1, 64);
  const Vectors v(a.rows, 632);
  const auto expected = bits(Sweeper(s, Strategy::tiled, v).both());
  const auto single = bits(Sweeper(s, Strategy::tiled, v).sweep<Diagonal::unit, true>());
  for (int trials : {1, 2, 4}) {
    WarpTuning tuning;
    tuning.trials = trials;
    Sweeper w(s, Strategy::automatic, v, tuning);
    EXPECT_EQ(w.runner.report().seen, "");
    EXPECT_FALSE(w.runner.report().settled);
    EXPECT_EQ(bits(w.sweep<Diagonal::unit, true>()), single);
    const int left = w.runner.trials_left();
    EXPECT_EQ(left, 3 * trials) << "single sweeps are no trials";
    for (int k = 0; k < left; ++k) {
      EXPECT_FALSE(w.runner.settled()) << "after " << k << " of " << trials << " trials each";
      EXPECT_EQ(w.runner.trials_left(), left - k);
      EXPECT_EQ(bits(w.both()), expected) << "trial " << k;
    }
    EXPECT_TRUE(w.runner.settled());
    EXPECT_EQ(w.runner.trials_left(), 0);
    const triangular::Report report = w.runner.report();
    EXPECT_TRUE(report.settled);
    EXPECT_EQ(report.used, w.runner.current());
    for (Strategy strategy : sweep_strategies) {
      ASSERT_GE(milliseconds(report.seen, strategy), 0) << report.seen;
      EXPECT_LE(milliseconds(report.seen, report.used), milliseconds(report.seen, strategy)) << report.seen;
    }
    for (int k = 0; k < 5; ++k) EXPECT_EQ(bits(w.both()), expected) << "after it settled";
    EXPECT_EQ(bits(w.sweep<Diagonal::unit, true>()), single);
    EXPECT_EQ(bits(w.both()), expected);
    EXPECT_EQ(w.runner.report().seen, report.seen) << "it times no more";
  }
}

TEST(GpuChooserSmall, LeavesOutLevelSetWhereLaunchesWouldBeTooMany) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix a = scaled(chain(600));
  const SlicedOn s(ex, a, Rows::by_level);
  const Vectors v(a.rows, 633);
  WarpTuning tuning;
  tuning.level_set.narrow_slices = 0;  // 600 levels, 600 launches
  Sweeper w(s, Strategy::automatic, v, tuning);
  const auto expected = bits(Sweeper(s, Strategy::level_set, v, tuning).both());
  for (int left = w.runner.trials_left(); left > 0; --left) EXPECT_EQ(bits(w.both()), expected);
  EXPECT_TRUE(w.runner.settled());
  EXPECT_LT(milliseconds(w.runner.report().seen, Strategy::level_set), 0) << w.runner.report().seen;
  EXPECT_GE(milliseconds(w.runner.report().seen, Strategy::sync_free), 0) << w.runner.report().seen;
  EXPECT_GE(milliseconds(w.runner.report().seen, Strategy::tiled), 0) << w.runner.report().seen;
}

TEST(GpuChooserSmall, SerialIsForTheHost) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const SlicedOn s(ex, grid(5, 5), Rows::by_level);
  EXPECT_THROW(WarpRunner(ex, s.plan, *s.pattern, Strategy::serial), Error);
}

}  // namespace
}  // namespace krilu::test
