// SPDX-License-Identifier: Apache-2.0
// Rounded ILU(k), ILUT, block ILU and RAS on a GPU: against the sweeps over explicitly scaled and rounded factors in
// double, to the rounding of single precision, and against the preconditioner itself, to the rounding of the storage;
// packed sweeps and those of any triangle, whatever layout the solver keeps its rows in; entries that are lost; the
// same bits again, and after the original took other values or went. Suite LocalRoundedSmall is what compute-sanitizer
// gets through.
#include <limits>
#include <map>

#include "precond/ilut.hpp"
#include "precond/local.cuh"
#include "precond/tiny_cases.hpp"
#include "support/rounded.hpp"
#include "support/sliced_matrix.cuh"

namespace krilu::test {
namespace {

using exec::Cuda;
using precond::Local;
using sparse::Rounding;
using triangular::Strategy;
using Single = precond::Preconditioner<Cuda, float>;

constexpr Strategy triangles[] = {Strategy::level_set, Strategy::sync_free, Strategy::tiled};
constexpr Rows rounded_layouts[] = {Rows::as_given, Rows::by_level_of_a_random_order, Rows::in_blocks, Rows::by_level};
const std::vector<std::string> rounded_kinds{"iluk:0",
                                             "iluk:1",
                                             "iluk:2",
                                             "ilut:5,0.01",
                                             "ilut:10,0",
                                             "block-ilu:7",
                                             "ras:8,1",
                                             "block-ilu:9,iluk:1",
                                             "block-ilu:40,dilu",
                                             "ras:8,2,ilut:6,0.01",
                                             "ras:20,1",
                                             "block-ilu:1000"};

// --- what should come out -------------------------------------------------------------------------------------------

/// Factors in local rows, in the scaled form of packed.hpp and to the GPU's bits: L, 1 / D and U in one CSR.
struct Factors {
  precond::LocalProblem problem;
  CsrMatrix value;
  Index longest = 0;
};

Factors factors_of(const Cuda& ex, const std::string& name, const CsrMatrix& a) {
  const exec::Host host(team);
  const precond::Spec spec = precond::parse_spec(name);
  Factors out;
  out.problem = precond::local_problem(host, a, spec);
  const precond::LocalProblem& p = out.problem;
  std::vector<double> local(p.pattern.columns.size());
  p.gather(host, a, 0, local.data());
  CsrView view = p.pattern.view(p.rows());
  view.values = local.data();
  if (spec.local == "ilut") {
    const precond::IlutFactors f = precond::ilut(host, view, p.offsets, {int(spec.most), spec.tolerance});
    EXPECT_EQ(f.zero_pivot, -1);
    out.value = f.factors;
    const std::vector<Offset> diagonal = precond::diagonal_positions(host, f.factors);
    for (Index i = 0; i < out.value.rows; ++i)
      for (Offset k = out.value.offsets[std::size_t(i)]; k < out.value.offsets[std::size_t(i) + 1]; ++k) {
        const Index j = out.value.columns[std::size_t(k)];
        const double scale = 1 / f.factors.values[std::size_t(diagonal[std::size_t(i)])];
        const double v = f.factors.values[std::size_t(k)] * scale;
        out.value.values[std::size_t(k)] = j < i    ? v * f.factors.values[std::size_t(diagonal[std::size_t(j)])]
                                           : j == i ? scale
                                                    : v;
      }
  } else {
    precond::DevicePattern there;
    there.rows = p.rows();
    there.entries = Offset(local.size());
    there.offsets = ex.brought(p.pattern.offsets);
    there.columns = ex.brought(p.pattern.columns);
    there.diagonal = ex.brought(p.diagonal);
    for (Index i = 0; i < view.rows; ++i)
      there.longest = std::max(there.longest, view.offsets[i + 1] - view.offsets[i]);
    const auto a = to_device(ex, local), to = to_device(ex, local);
    const double* const from = a.data();
    const precond::Gathered gathered = precond::gather(
        ex, there, [=] __device__(std::int64_t k) { return from[k]; }, to.data());
    const auto zero_pivot = to_device(ex, std::vector<Index>{std::numeric_limits<Index>::max()});
    precond::eliminate(ex, there, spec.local == "dilu" ? precond::Updated::pivots : precond::Updated::pattern,
                       precond::Lower::scaled, gathered, to.data(), zero_pivot.data());
    out.value.rows = out.value.cols = view.rows;
    out.value.offsets.assign(view.offsets, view.offsets + view.rows + 1);
    out.value.columns.assign(view.columns, view.columns + local.size());
    const std::vector<double> values = to_host(ex, to);
    out.value.values.assign(values.begin(), values.end());
  }
  for (Index i = 0; i < out.value.rows; ++i)
    out.longest = std::max(out.longest, out.value.offsets[std::size_t(i) + 1] - out.value.offsets[std::size_t(i)]);
  return out;
}

/// Scaled and rounded one by one.
template <class S>
Factors rounded_factors(const Factors& f, const Scaling& s, std::int64_t& lost) {
  Factors out = f;
  const auto count = [&](double before, double after) {
    lost += before != 0 && after == 0;
    return after;
  };
  for (Index i = 0; i < f.value.rows; ++i)
    for (Offset k = f.value.offsets[std::size_t(i)]; k < f.value.offsets[std::size_t(i) + 1]; ++k) {
      double& v = out.value.values[std::size_t(k)];
      const Index j = f.value.columns[std::size_t(k)], row = f.problem.caller_row(i), column = f.problem.caller_row(j);
      if (j == i)
        v = count(v, rounded<float>(v / s.r(row) / s.c(row)));
      else
        v = count(v, float(rounded<S>(v * s.c(column) / s.c(row))));
    }
  return out;
}

/// Zero but for what x of some owned row depends on: packed factors hold no more.
Factors that_count(Factors f) {
  if (f.problem.owned.empty()) return f;
  std::vector<std::uint8_t> upper = f.problem.owned, lower;
  const auto spread = [&](std::vector<std::uint8_t>& counts, bool above) {
    for (bool more = true; more;) {
      more = false;
      for (Index i = 0; i < f.value.rows; ++i)
        for (Offset k = f.value.offsets[std::size_t(i)]; k < f.value.offsets[std::size_t(i) + 1]; ++k) {
          const Index j = f.value.columns[std::size_t(k)];
          if (!counts[std::size_t(i)] || counts[std::size_t(j)] || (above ? j <= i : j >= i)) continue;
          counts[std::size_t(j)] = 1;
          more = true;
        }
    }
  };
  spread(upper, true);
  lower = upper;
  spread(lower, false);
  for (Index i = 0; i < f.value.rows; ++i)
    for (Offset k = f.value.offsets[std::size_t(i)]; k < f.value.offsets[std::size_t(i) + 1]; ++k) {
      const Index j = f.value.columns[std::size_t(k)];
      if (j != i && !(j > i ? upper : lower)[std::size_t(i)]) f.value.values[std::size_t(k)] = 0;
    }
  return f;
}

struct Applied {
  std::vector<double> z;
  double magnitude = 0;  // the largest that any sum grows to, were all its terms positive
};
/// z = sum over parts of R0^T (I + U)^-1 (I + L)^-1 D^-1 R r, in the caller's order.
Applied applied(const Factors& f, const std::vector<double>& r) {
  const auto n = std::size_t(f.value.rows);
  std::vector<double> x(n), m(n);
  Applied out{std::vector<double>(r.size(), 1e300)};
  const auto subtract = [&](std::size_t i, auto counts) {
    for (auto k = std::size_t(f.value.offsets[i]); k < std::size_t(f.value.offsets[i + 1]); ++k)
      if (const auto j = std::size_t(f.value.columns[k]); counts(j)) {
        x[i] -= f.value.values[k] * x[j];
        m[i] += std::abs(f.value.values[k]) * m[j];
      }
  };
  for (std::size_t i = 0; i < n; ++i) {
    for (auto k = std::size_t(f.value.offsets[i]); k < std::size_t(f.value.offsets[i + 1]); ++k)
      if (std::size_t(f.value.columns[k]) == i)
        x[i] = f.value.values[k] * r[std::size_t(f.problem.caller_row(Index(i)))];
    m[i] = std::abs(x[i]);
    subtract(i, [i](std::size_t j) { return j < i; });
  }
  for (std::size_t i = n; i-- > 0;) subtract(i, [i](std::size_t j) { return j > i; });
  for (std::size_t i = 0; i < n; ++i) {
    out.magnitude = std::max(out.magnitude, m[i]);
    if (f.problem.owned.empty() || f.problem.owned[i]) out.z[std::size_t(f.problem.caller_row(Index(i)))] = x[i];
  }
  return out;
}

double most_apart(const std::vector<double>& a, const std::vector<double>& b) {
  double most = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::isfinite(a[i]) ? std::max(most, std::abs(a[i] - b[i])) : std::numeric_limits<double>::infinity();
  return most;
}

// --- on the device --------------------------------------------------------------------------------------------------

/// A preconditioner as the engine makes it.
class GpuInDouble {
 public:
  GpuInDouble(const std::string& name, SlicedOn& s, const CsrView& a, Strategy strategy) : s_(s) {
    const precond::Context<Cuda> context{s.space, strategy, [row = s.row](Index i) { return row[std::size_t(i)]; },
                                         s.plan,  &s.there, a};
    precond_ = std::make_unique<Local<Cuda, double>>(context, s.pattern, name);
    factor(a);
  }
  void factor(const CsrView& a) {
    s_.fill(a);
    precond_->factor({s_.matrix, a}, 0);
  }
  std::vector<double> apply(const std::vector<double>& r) const {
    const auto in = s_.in(r), out = s_.in(std::vector<double>(r.size(), 1e300));
    precond_->apply(in.data(), out.data());
    return s_.out(out);
  }
  Local<Cuda, double>& precond() const { return *precond_; }
  void drop() { precond_.reset(); }

 private:
  SlicedOn& s_;
  std::unique_ptr<Local<Cuda, double>> precond_;
};

/// One that was rounded, and what it lost.
class GpuRounded {
 public:
  GpuRounded(const GpuInDouble& of, const SlicedOn& s, const Scaling& scaling, Format storage) : s_(s) {
    const auto lost = to_device(s.space, std::vector<std::int64_t>{5});
    Rounding how{storage, nullptr, nullptr, lost.data()};
    exec::Array<double> row, column;
    if (!scaling.row.empty()) {
      row = s.in(scaling.row);
      column = s.in(scaling.column);
      how.row = row.data();
      how.column = column.data();
    }
    precond_ = of.precond().rounded(how, nullptr);
    lost_ = to_host(s.space, lost)[0] - 5;
  }
  std::vector<float> apply(const std::vector<float>& r) const {
    std::vector<float> w(r.size());
    for (std::size_t k = 0; k < w.size(); ++k) w[k] = r[std::size_t(s_.row[k])];
    const auto in = to_device(s_.space, w), out = to_device(s_.space, std::vector<float>(r.size(), 1e30f));
    precond_->apply(in.data(), out.data());
    const std::vector<float> z = to_host(s_.space, out);
    for (std::size_t k = 0; k < w.size(); ++k) w[std::size_t(s_.row[k])] = z[k];
    return w;
  }
  /// Until a chooser has settled; each of its trials gives the result.
  std::vector<float> settled(const std::vector<float>& r) const {
    const std::vector<float> first = apply(r);
    std::vector<float> z = first;
    for (int k = 0; precond_->trials_left() > 0 && k < 100; ++k) {
      z = apply(r);
      EXPECT_EQ(z, first) << "trial " << k << " has other bits";
    }
    EXPECT_EQ(precond_->trials_left(), 0);
    return z;
  }
  std::int64_t lost() const { return lost_; }
  Single& precond() const { return *precond_; }

 private:
  const SlicedOn& s_;
  std::unique_ptr<Single> precond_;
  std::int64_t lost_ = 0;
};

/// m rounded to S is what its factors, rounded, say, and near m itself. Returns what it made of random values.
template <class S>
std::vector<float> expect_rounded(const GpuInDouble& m, const SlicedOn& s, const Factors& f, const Scaling& scaling,
                                  std::size_t n, std::uint64_t seed) {
  std::int64_t lost = 0;
  const Factors expected_factors = rounded_factors<S>(f, scaling, lost);
  const std::vector<double> r = random_values(n, seed);
  std::vector<float> scaled_r(n);
  for (std::size_t i = 0; i < n; ++i) scaled_r[i] = float(scaling.r(Index(i)) * r[i]);
  const Applied expected = applied(expected_factors, in_double(scaled_r)), plain = applied(f, r);
  // Each row's sum is rounded as often as it has entries; errors go on as values do.
  const double single = 0x1p-24 * 4 * (4 + f.longest);
  const GpuRounded low(m, s, scaling, Stored<S>::format);
  EXPECT_EQ(low.lost(), lost);
  const std::vector<float> z = low.settled(scaled_r);
  EXPECT_LE(most_apart(in_double(z), expected.z), single * expected.magnitude);
  std::vector<double> unscaled = in_double(z);
  for (std::size_t i = 0; i < n; ++i) unscaled[i] *= scaling.c(Index(i));
  EXPECT_LE(most_apart(unscaled, plain.z), (4 * Stored<S>::unit + single) * plain.magnitude);
  EXPECT_EQ(low.apply(scaled_r), z) << "another application, other bits";
  EXPECT_EQ(GpuRounded(m, s, scaling, Stored<S>::format).settled(scaled_r), z) << "rounded again, other bits";
  EXPECT_LT(low.precond().bytes(), m.precond().bytes());
  EXPECT_TRUE(low.precond().triangular()->settled);
  return z;
}

/// Layouts and strategies in turn, formats and scales in each.
void expect_all(const Cuda& ex, const std::vector<GpuCase>& cases, const std::vector<std::string>& names,
                std::uint64_t seed) {
  for (std::size_t k = 0; k < cases.size(); ++k)
    for (std::size_t n = 0; n < names.size(); ++n) {
      const GpuCase& c = cases[k];
      const auto rows = std::size_t(c.a.rows);
      const Rows layout = rounded_layouts[(k + n) % 4];
      SCOPED_TRACE(names[n] + " of " + c.name + ", rows " + to_string(layout));
      SlicedOn s(ex, c.a, layout, seed, 64);
      const Factors f = factors_of(ex, names[n], c.a);
      const Scaling scaling = powers_of_two(c.a.rows, 4, seed + 1);
      std::vector<Strategy> under{Strategy::automatic, triangles[(k + n) % 3]};
      if (names[n] == "iluk:1" || names[n] == "ras:8,1")
        under = {Strategy::automatic, Strategy::level_set, Strategy::sync_free, Strategy::tiled};
      std::map<Format, std::vector<float>> first;
      for (Strategy strategy : under) {
        SCOPED_TRACE(to_string(strategy));
        const GpuInDouble m(names[n], s, c.a, strategy);
        for_formats([&](auto storage) {
          using S = decltype(storage);
          const std::vector<float> z = expect_rounded<S>(m, s, f, scaling, rows, seed + 2);
          const Strategy used = GpuRounded(m, s, scaling, Stored<S>::format).precond().triangular()->used;
          if (strategy == Strategy::automatic) {
            EXPECT_EQ(used == Strategy::parts, m.precond().triangular()->used == Strategy::parts);
            expect_rounded<S>(m, s, f, Scaling{}, rows, seed + 3);
          } else {
            EXPECT_EQ(used, strategy);
            std::vector<float>& of_the_first = first[Stored<S>::format];
            if (of_the_first.empty()) of_the_first = z;
            EXPECT_EQ(z, of_the_first) << "strategies differ";
          }
        });
        if (::testing::Test::HasFailure()) return;
      }
    }
}

TEST(LocalRoundedSmall, AreTheRoundedFactors) {
  KRILU_REQUIRE_GPU();
  expect_all(Cuda(0, team), tiny_cases(), rounded_kinds, 1104);
}

TEST(LocalRoundedSmall, WithLongRows) {
  KRILU_REQUIRE_GPU();
  expect_all(Cuda(0, team),
             {{"long rows among short ones", with_long_rows(400, {40, 300}, false, 1105)},
              {"long rows", random_matrix({.rows = 130, .per_row = 100, .seed = 1106})}},
             {"iluk:0", "block-ilu:2,dilu", "ras:2,1", "ilut:20,0.001"}, 1107);
}

TEST(LocalRoundedSmall, NoRowsAreNoTrouble) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix none = diagonal(0);
  for (const std::string& name : rounded_kinds)
    for (Strategy strategy : {Strategy::automatic, Strategy::tiled}) {
      SlicedOn s(ex, none, Rows::as_given);
      const GpuInDouble m(name, s, none, strategy);
      EXPECT_EQ(GpuRounded(m, s, {}, Format::fp16).apply({}), std::vector<float>{}) << name;
    }
}

TEST(LocalRoundedSmall, WhatBecomesZeroIsCounted) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix a = random_matrix({.rows = 250, .per_row = 4, .seed = 1108});
  const Scaling far = powers_of_two(250, 12, 1109);
  SlicedOn s(ex, a, Rows::by_level_of_a_random_order, 1110);
  for (const char* name : {"iluk:1", "ras:20,1", "block-ilu:40,dilu", "ilut:10,0", "block-ilu:1000"}) {
    SCOPED_TRACE(name);
    const Factors f = factors_of(ex, name, a);
    for (Strategy strategy : {Strategy::automatic, Strategy::sync_free}) {
      const GpuInDouble m(name, s, a, strategy);
      for_formats([&](auto storage) {
        std::int64_t lost = 0;
        rounded_factors<decltype(storage)>(strategy == Strategy::automatic ? that_count(f) : f, far, lost);
        EXPECT_EQ(GpuRounded(m, s, far, Stored<decltype(storage)>::format).lost(), lost);
        EXPECT_EQ(lost > 0, Stored<decltype(storage)>::format == Format::fp16 && name != std::string("block-ilu:1000"));
      });
      EXPECT_NE(m.precond().rounded({Format::fp16, nullptr, nullptr, nullptr}, nullptr), nullptr) << "without a count";
    }
  }
}

TEST(LocalRoundedSmall, LivesOnWhenTheOriginalTakesOtherValuesOrGoes) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix a = random_matrix({.rows = 250, .per_row = 4, .seed = 1111});
  CsrMatrix b = a;
  for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] *= 1 + 0.2 * double(k % 5);
  const Scaling scaling = powers_of_two(250, 3, 1112);
  const std::vector<float> r = in_single(random_values(250, 1113));
  for (const std::string& name : rounded_kinds)
    for (Strategy strategy : {Strategy::automatic, Strategy::sync_free, Strategy::level_set})
      for_formats([&](auto storage) {
        const Format format = Stored<decltype(storage)>::format;
        SCOPED_TRACE(name + ", " + to_string(strategy));
        SlicedOn s(ex, a, Rows::by_level);
        GpuInDouble m(name, s, a, strategy);
        const GpuRounded of_a(m, s, scaling, format);
        const std::vector<float> first = of_a.settled(r);
        m.factor(b);
        EXPECT_EQ(of_a.apply(r), first);
        const GpuRounded of_b(m, s, scaling, format);
        const std::vector<float> second = of_b.settled(r);
        EXPECT_GT(difference(in_double(second), in_double(first)), 1e-3);
        // The original's own applications in between are no trouble, nor is its end.
        m.apply(random_values(250, 1114));
        EXPECT_EQ(of_b.apply(r), second);
        m.drop();
        const auto other = to_device(ex, std::vector<double>(100000, 1e300));  // where its arrays may have stood
        EXPECT_EQ(of_a.apply(r), first);
        EXPECT_EQ(of_b.apply(r), second);
      });
}

TEST(LocalRoundedSmall, TakesFewerBytesTheSmallerItsValuesAre) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix a = generate("gen:convdiff3d:12x12x12");
  SlicedOn s(ex, a, Rows::as_given);
  for (const char* name : {"ras:20,1", "iluk:1"})
    for (Strategy strategy : {Strategy::automatic, Strategy::tiled}) {
      const GpuInDouble m(name, s, a, strategy);
      const auto bytes = [&](Format f) { return GpuRounded(m, s, {}, f).precond().bytes(); };
      EXPECT_LT(bytes(Format::fp32), m.precond().bytes());
      EXPECT_LT(bytes(Format::fp16), bytes(Format::fp32));
      EXPECT_EQ(bytes(Format::fp16), bytes(Format::bf16));
    }
}

// --- larger ---------------------------------------------------------------------------------------------------------

TEST(LocalRounded, AreTheRoundedFactorsOnLattices) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  expect_all(ex, {{"gen:convdiff3d:20x20x20", generate("gen:convdiff3d:20x20x20")}}, rounded_kinds, 1120);
  expect_all(ex,
             {{"gen:convdiff3d:40x40x40", generate("gen:convdiff3d:40x40x40")},
              {"gen:convdiff3d27:30x30x30", generate("gen:convdiff3d27:30x30x30")}},
             {"block-ilu", "ras", "ras:0,2,dilu", "block-ilu:500,iluk:1", "ras:200,1,ilut:6,0.01"}, 1121);
}

TEST(LocalRounded, AreTheRoundedFactorsOnRandomPatterns) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  expect_all(ex,
             {{"random", random_matrix({.rows = 6000, .per_row = 3, .seed = 1122})},
              {"unsymmetric", random_matrix({.rows = 6000, .per_row = 2, .symmetric_pattern = false, .seed = 1123})},
              {"long rows", with_long_rows(5000, {40, 100, 300, 2000}, true, 1124)}},
             {"iluk:0", "block-ilu:6", "ras:20,1", "ras:5,1,dilu", "block-ilu:1000", "ilut:30,0.001"}, 1125);
}

TEST(LocalRounded, AThousandPartsOfUnevenSizeGiveTheSameBitsAHundredTimes) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix a = random_matrix({.rows = 20000, .per_row = 4, .seed = 1126});
  const std::vector<float> r = in_single(random_values(20000, 1127));
  SlicedOn s(ex, a, Rows::as_given);
  const GpuInDouble m("ras:1000,1", s, a, Strategy::automatic);
  for_formats([&](auto storage) {
    const GpuRounded low(m, s, {}, Stored<decltype(storage)>::format);
    const std::vector<float> first = low.settled(r);
    for (int k = 0; k < 100; ++k) ASSERT_EQ(low.apply(r), first) << "application " << k;
  });
}

}  // namespace
}  // namespace krilu::test
