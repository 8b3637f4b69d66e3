// SPDX-License-Identifier: Apache-2.0
// The device's elimination against the host's, in both forms of what is left below the diagonal, with rows that fit
// shared memory and rows that do not. Suite EliminationSmall is what compute-sanitizer gets through.
#include <limits>
#include <string>
#include <vector>

#include "precond/elimination.cuh"
#include "precond/fill.hpp"
#include "precond/tiny_cases.hpp"
#include "support/sliced_matrix.cuh"

namespace krilu::test {
namespace {

using exec::Cuda;
using precond::Lower;
using precond::Updated;

/// A's values over a pattern with levels of fill, on the host and on the device.
struct Laid {
  Laid(const Cuda& on, const CsrView& a, int level) : space(on), rows(a.rows) {
    pattern = precond::fill_pattern(exec::Host(2), a, level);
    there.rows = rows;
    there.entries = Offset(pattern.columns.size());
    for (Index i = 0; i < rows; ++i) {
      const Offset begin = pattern.offsets[std::size_t(i)], end = pattern.offsets[std::size_t(i) + 1];
      there.longest = std::max(there.longest, end - begin);
      for (Offset k = begin; k < end; ++k) {
        if (pattern.columns[std::size_t(k)] == i) diagonal.push_back(k);
        const Offset from = pattern.source[std::size_t(k)];
        value.push_back(from >= 0 ? a.values[from] : 0.0);
      }
    }
    there.offsets = bring(pattern.offsets);
    there.columns = bring(pattern.columns);
    there.diagonal = bring(diagonal);
  }
  template <class V>
  exec::Array<typename V::value_type> bring(const V& from) const {
    return to_device(space, std::vector<typename V::value_type>(from.begin(), from.end()));
  }
  precond::EliminationPattern view() const { return {pattern.view(rows), diagonal.data(), {}}; }

  struct Factors {
    std::vector<double> value;
    Index zero_pivot;  // or -1
  };
  /// The host's multipliers m and U in the device's form: below the diagonal m_ij e_j, over e_i where scaled; 1 / e_i
  /// on it; u_ij / e_i above.
  Factors on_host(Updated updated, Lower lower) const {
    Factors f{value, -1};
    f.zero_pivot = precond::eliminate(exec::Host(2), view(), updated, f.value.data());
    std::vector<double> pivot;
    for (Offset d : diagonal) pivot.push_back(f.value[std::size_t(d)]);
    for (std::size_t i = 0; i < pivot.size(); ++i)
      for (Offset k = pattern.offsets[i]; k < pattern.offsets[i + 1]; ++k) {
        double& v = f.value[std::size_t(k)];
        if (k < diagonal[i])
          v *= pivot[std::size_t(pattern.columns[std::size_t(k)])] / (lower == Lower::scaled ? pivot[i] : 1);
        else
          v = (k == diagonal[i] ? 1 : v) / pivot[i];
      }
    return f;
  }
  Factors on_device(Updated updated, Lower lower) const {
    constexpr Index none = std::numeric_limits<Index>::max();
    const auto a = to_device(space, value), factors = to_device(space, std::vector<double>(value.size(), 1e300));
    const auto zero_pivot = to_device(space, std::vector<Index>{none});
    const double* const from = a.data();
    const precond::Gathered gathered = precond::gather(
        space, there, [=] __device__(std::int64_t k) { return from[k]; }, factors.data());
    precond::eliminate(space, there, updated, lower, gathered, factors.data(), zero_pivot.data());
    const Index bad = to_host(space, zero_pivot)[0];
    EXPECT_EQ(bits(to_host(space, gathered.a)), bits(value)) << "A's own values were changed";
    return {to_host(space, factors), bad == none ? -1 : bad};
  }

  Cuda space;
  Index rows;
  precond::FilledPattern pattern;
  std::vector<Offset> diagonal;
  std::vector<double> value;
  precond::DevicePattern there;
};

/// Both within 1e-12 of their row's largest magnitude, or of one.
void expect_close(const Laid& laid, const std::vector<double>& got, const std::vector<double>& expected) {
  const auto& offsets = laid.pattern.offsets;
  for (std::size_t i = 0; i < laid.diagonal.size(); ++i) {
    const auto begin = std::size_t(offsets[i]), end = std::size_t(offsets[i + 1]);
    double largest = 1;
    for (std::size_t k = begin; k < end; ++k) largest = std::max(largest, std::abs(expected[k]));
    for (std::size_t k = begin; k < end; ++k)
      if (!(std::abs(got[k] - expected[k]) <= 1e-12 * largest)) {
        FAIL() << "row " << i << ", column " << laid.pattern.columns[k] << ": " << got[k] << ", the host has "
               << expected[k];
      }
  }
}

void expect_host_elimination(Laid laid, const std::string& name) {
  const CsrView f = laid.pattern.view(laid.rows);
  const std::vector<Index> by_level = schedule::by_levels(exec::Host(1), f, sparse::adjacency(f), {}).rows;
  for (Updated updated : {Updated::pattern, Updated::pivots}) {
    std::vector<double> plain;
    for (Lower lower : {Lower::plain, Lower::scaled}) {
      SCOPED_TRACE(name + (updated == Updated::pattern ? ", pattern" : ", pivots") +
                   (lower == Lower::plain ? ", plain" : ", scaled"));
      const Laid::Factors host = laid.on_host(updated, lower);
      laid.there.sequence = {};
      const Laid::Factors gpu = laid.on_device(updated, lower);
      EXPECT_EQ(gpu.zero_pivot, host.zero_pivot);
      expect_close(laid, gpu.value, host.value);
      EXPECT_EQ(bits(laid.on_device(updated, lower).value), bits(gpu.value)) << "another elimination, other bits";
      laid.there.sequence = laid.bring(by_level);
      EXPECT_EQ(bits(laid.on_device(updated, lower).value), bits(gpu.value)) << "the sequence of rows changed bits";
      laid.there.levels = laid.rows;  // as if each row waited for the one before
      const Laid::Factors one_by_one = laid.on_device(updated, lower);
      EXPECT_EQ(one_by_one.zero_pivot, host.zero_pivot);
      expect_close(laid, one_by_one.value, host.value);
      laid.there.levels = 0;
      if (lower == Lower::plain) {
        plain = gpu.value;
        continue;
      }
      for (std::size_t i = 0; i < laid.diagonal.size(); ++i)
        for (Offset k = f.offsets[i]; k < laid.diagonal[i]; ++k)
          plain[std::size_t(k)] *= plain[std::size_t(laid.diagonal[i])];
      EXPECT_EQ(bits(gpu.value), bits(plain)) << "more than the lower triangle's scale differs";
    }
  }
}

/// One long row at the end, of exactly `length` entries, the others of `others` or fewer.
CsrMatrix last_row_of(Index length, Index others, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  const Index n = length + 30;
  RowMaps rows(static_cast<std::size_t>(n));
  for (Index i = 0; i + 1 < n; ++i)
    for (Index k = 1; k < others; ++k) rows[std::size_t(i)][(i + 7 * k) % n] = value(engine);
  for (Index k = 0; k + 1 < length; ++k) rows[std::size_t(n) - 1][k] = value(engine);
  return dominant(std::move(rows));
}

TEST(EliminationSmall, IsTheHosts) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  for (const GpuCase& c : tiny_cases())
    for (int level : {0, 2}) expect_host_elimination(Laid(ex, c.a, level), c.name + ", level " + std::to_string(level));
}

TEST(EliminationSmall, IsTheHostsAroundWhatFitsSharedMemory) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  for (Index length : {31, 32, 33, 40}) {  // eight lanes a row
    Laid laid(ex, last_row_of(length, 3, 1020), 0);
    EXPECT_EQ(laid.there.longest, length);
    ASSERT_LT(laid.there.entries / laid.there.rows, 12);
    expect_host_elimination(std::move(laid), "a row of " + std::to_string(length) + " among short ones");
  }
  for (Index length : {223, 224, 225, 300}) {  // a warp
    Laid laid(ex, last_row_of(length, 20, 1021), 0);
    EXPECT_EQ(laid.there.longest, length);
    ASSERT_GE(laid.there.entries / laid.there.rows, 12);
    expect_host_elimination(std::move(laid), "a row of " + std::to_string(length) + " among longer ones");
  }
  expect_host_elimination(Laid(ex, with_long_rows(400, {40, 300}, false, 1022), 0), "long rows among short ones");
  expect_host_elimination(Laid(ex, random_matrix({.rows = 280, .per_row = 240, .seed = 1023}), 0), "long rows");
  expect_host_elimination(Laid(ex, arrow(250, 5), 1), "an arrow that fills in");
}

TEST(EliminationSmall, TheFirstBadPivotIsTold) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (double bad : {0.0, nan, infinity})
    for (Updated updated : {Updated::pattern, Updated::pivots}) {
      SCOPED_TRACE(bad);
      Laid laid(ex, grid(18, 15), 0);
      for (Index i : {201, 77, 140}) {
        for (Offset k = laid.pattern.offsets[std::size_t(i)]; k < laid.diagonal[std::size_t(i)]; ++k)
          laid.value[std::size_t(k)] = 0;
        laid.value[std::size_t(laid.diagonal[std::size_t(i)])] = bad;
      }
      for (Lower lower : {Lower::plain, Lower::scaled}) {
        const Laid::Factors gpu = laid.on_device(updated, lower), host = laid.on_host(updated, lower);
        EXPECT_EQ(gpu.zero_pivot, 77);
        EXPECT_EQ(host.zero_pivot, 77);
        expect_close(laid, gpu.value, host.value);
      }
    }
}

TEST(Elimination, IsTheHosts) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  expect_host_elimination(Laid(ex, generate("gen:convdiff3d:40x40x40"), 0), "lattice");
  expect_host_elimination(Laid(ex, generate("gen:convdiff3d:30x30x30"), 1), "lattice, level 1");
  expect_host_elimination(Laid(ex, generate("gen:convdiff3d:20x20x20"), 2), "lattice, level 2");
  const CsrMatrix random = random_matrix({.rows = 20000, .per_row = 3, .symmetric_pattern = false, .seed = 1025});
  for (int level : {0, 2}) expect_host_elimination(Laid(ex, random, level), "random, level " + std::to_string(level));
  expect_host_elimination(Laid(ex, with_long_rows(5000, {40, 100, 300, 2000}, true, 1026), 1), "long rows, level 1");
  expect_host_elimination(Laid(ex, random_matrix({.rows = 800, .per_row = 250, .seed = 1027}), 0), "many long rows");
}

}  // namespace
}  // namespace krilu::test
