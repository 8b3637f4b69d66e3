// SPDX-License-Identifier: Apache-2.0
// ILU(k), ILUT, block ILU and RAS against dense factorisations in long double of the parts that schedule::subdomains
// gives, solved and summed as the definition z = sum R0^T (L U)^-1 R r has it; against exact inverses and against one
// another where they coincide; strategies, teams, orderings of the solver and spaces against each other bit for bit;
// what they refuse, by the caller's row; and that more fill, and more overlap, cost no more iterations.
#include "precond/local.hpp"

#include <fmt/format.h>

#include <numeric>

#include "krilu/solver.hpp"
#include "precond/factored.hpp"
#include "schedule/subdomains.hpp"
#include "support/matrices.hpp"

namespace krilu::test {
namespace {

using precond::Spec;
using triangular::Strategy;

template <class Space>
class LocalTest : public ::testing::Test {};
TYPED_TEST_SUITE(LocalTest, Spaces);

const std::vector<std::string> kinds{"iluk:0",        "iluk:2",           "ilut:5,0.01",        "block-ilu:7",
                                     "ras:6,1",       "block-ilu:9,dilu", "block-ilu:5,iluk:1", "ras:6,2,ilut:6,0.01",
                                     "ras:4,1,iluk:2"};

// --- the dense counterpart -------------------------------------------------------------------------------------------

/// The places that ILU(level) keeps, by the sum rule of levels.
std::vector<std::vector<char>> places(const std::vector<std::vector<char>>& stored, int level) {
  const std::size_t n = stored.size();
  std::vector<std::vector<int>> lev(n, std::vector<int>(n, 1 << 20));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (stored[i][j] || i == j) lev[i][j] = 0;
  for (std::size_t m = 0; m < n; ++m)
    for (std::size_t i = m + 1; i < n; ++i)
      for (std::size_t j = m + 1; j < n; ++j) lev[i][j] = std::min(lev[i][j], lev[i][m] + lev[m][j] + 1);
  std::vector<std::vector<char>> kept(n, std::vector<char>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) kept[i][j] = lev[i][j] <= level;
  return kept;
}

/// One part: rows and columns `rows` of a, factored as `spec` says, and x in place of b.
void solve_part(const CsrView& a, const std::vector<Index>& rows, const Spec& spec, double shift,
                std::vector<long double>& x) {
  const std::size_t n = rows.size();
  LongDense m(n, std::vector<long double>(n, 0));
  std::vector<std::vector<char>> stored(n, std::vector<char>(n, 0));
  for (std::size_t i = 0; i < n; ++i)
    for (Offset k = a.offsets[rows[i]]; k < a.offsets[rows[i] + 1]; ++k) {
      const auto j = std::size_t(std::find(rows.begin(), rows.end(), a.columns[k]) - rows.begin());
      if (j == n) continue;
      stored[i][j] = 1;
      m[i][j] = a.values[k];
    }
  for (std::size_t i = 0; i < n && shift != 0; ++i) {
    long double largest = 0;
    for (Offset k = a.offsets[rows[i]]; k < a.offsets[rows[i] + 1]; ++k)  // of the whole row, not of the part's
      largest = std::max(largest, std::abs((long double)(a.values[k])));
    m[i][i] += (m[i][i] < 0 ? -1 : 1) * shift * largest;
  }
  const auto kept = places(stored, spec.local == "iluk" ? spec.level : 0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < i; ++k) {
      if (!kept[i][k]) continue;
      m[i][k] /= m[k][k];
      for (std::size_t j = k + 1; j < n; ++j)
        if (kept[i][j] && kept[k][j] && (spec.local != "dilu" || j == i)) m[i][j] -= m[i][k] * m[k][j];
    }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) x[i] -= m[i][j] * x[j];
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) x[i] -= m[i][j] * x[j];
    x[i] /= m[i][i];
  }
}

/// Rows of each part, and whether it owns them.
struct Parts {
  std::vector<std::vector<Index>> rows;
  std::vector<std::vector<char>> owned;
};
Parts parts_of(const CsrView& a, const Spec& spec) {
  if (spec.parts <= 1) return {{natural_order(a.rows)}, {std::vector<char>(std::size_t(a.rows), 1)}};
  const schedule::Subdomains s = schedule::subdomains(exec::Host(1), sparse::adjacency(a), spec.parts, spec.overlap);
  Parts p;
  for (std::size_t b = 0; b + 1 < s.offsets.size(); ++b) {
    p.rows.emplace_back(s.row.begin() + s.offsets[b], s.row.begin() + s.offsets[b + 1]);
    p.owned.emplace_back(s.owned.begin() + s.offsets[b], s.owned.begin() + s.offsets[b + 1]);
  }
  return p;
}

/// z of dilu, ilu0 and iluk, of a name with or without parts.
std::vector<double> by_dense_parts(const std::string& name, const CsrView& a, const std::vector<double>& r,
                                   double shift = 0) {
  const Spec spec = precond::parse_spec(name);
  const Parts p = parts_of(a, spec);
  std::vector<double> z(r.size(), 1e300);
  for (std::size_t b = 0; b < p.rows.size(); ++b) {
    std::vector<long double> x;
    for (Index i : p.rows[b]) x.push_back(r[std::size_t(i)]);
    solve_part(a, p.rows[b], spec, shift, x);
    for (std::size_t k = 0; k < x.size(); ++k)
      if (p.owned[b][k]) z[std::size_t(p.rows[b][k])] = double(x[k]);
  }
  return z;
}

/// The same through krilu's own preconditioner of each part's matrix: for ILUT, which has tests of its own.
std::vector<double> part_by_part(const std::string& name, const std::string& local, const CsrView& a,
                                 const std::vector<double>& r) {
  const Parts p = parts_of(a, precond::parse_spec(name));
  std::vector<double> z(r.size(), 1e300);
  for (std::size_t b = 0; b < p.rows.size(); ++b) {
    const std::vector<Index>& rows = p.rows[b];
    RowMaps own(rows.size());
    std::vector<double> x;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      x.push_back(r[std::size_t(rows[i])]);
      for (Offset k = a.offsets[rows[i]]; k < a.offsets[rows[i] + 1]; ++k)
        if (const auto at = std::find(rows.begin(), rows.end(), a.columns[k]); at != rows.end())
          own[i][Index(at - rows.begin())] = a.values[k];
    }
    const std::vector<double> y = Factored<exec::Host>(local, from_rows(own)).apply(x);
    for (std::size_t k = 0; k < y.size(); ++k)
      if (p.owned[b][k]) z[std::size_t(rows[k])] = y[k];
  }
  return z;
}

/// Two grids, a chain and three rows alone, in random order.
CsrMatrix disconnected(std::uint64_t seed) {
  RowMaps rows(83);
  const auto put = [&](const CsrMatrix& a, Index at) {
    for (Index i = 0; i < a.rows; ++i)
      for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
        rows[std::size_t(at + i)][at + a.columns[std::size_t(k)]] = a.values[std::size_t(k)];
  };
  put(grid(6, 5), 0);
  put(grid(5, 6), 30);
  put(grid(20, 1), 60);
  for (Index i : {80, 81, 82}) rows[std::size_t(i)][i] = 1.5 * double(i - 90);
  return permuted(from_rows(rows), shuffled_order(83, seed));
}

std::vector<NamedMatrix> local_matrices() {
  std::vector<NamedMatrix> all;
  all.push_back({"random", random_matrix({.rows = 90, .per_row = 4, .seed = 951})});
  all.push_back({"unsymmetric", random_matrix({.rows = 90, .per_row = 3, .symmetric_pattern = false, .seed = 952})});
  all.push_back({"one triangle", triangle_of(random_matrix({.rows = 70, .per_row = 5, .seed = 953}), false)});
  all.push_back({"grid", grid(11, 9)});
  all.push_back({"shuffled grid", permuted(grid(12, 8), shuffled_order(96, 954))});
  all.push_back({"27 points", generate("gen:convdiff3d27:5x4x4")});
  all.push_back({"dense row and column", arrow(60, 20)});
  all.push_back({"disconnected", disconnected(955)});
  all.push_back({"diagonal", diagonal(20)});
  all.push_back({"one row", from_dense({{-4.0}})});
  return all;
}

void expect_reference(const auto& factored, const std::string& name, const CsrView& a, double shift = 0) {
  for (std::uint64_t seed : {956, 957}) {
    const std::vector<double> r = random_values(std::size_t(a.rows), seed);
    ASSERT_LT(difference(factored.apply(r), by_dense_parts(name, a, r, shift)), 1e-13);
  }
}

// --- what they are ---------------------------------------------------------------------------------------------------

TYPED_TEST(LocalTest, LevelsOfFillAreTheDenseFactorisationOverTheirPlaces) {
  for (const NamedMatrix& m : local_matrices())
    for (const char* name : {"iluk:0", "iluk", "iluk:1", "iluk:2", "iluk:4"}) {
      SCOPED_TRACE(fmt::format("{} of {}", name, m.name));
      expect_reference(Factored<TypeParam>(name, m.a, {.threads = 2}), name, m.a);
    }
}

TYPED_TEST(LocalTest, BlockIluIsTheDenseFactorisationOfEachPart) {
  for (const NamedMatrix& m : local_matrices())
    for (const char* name : {"block-ilu:2", "block-ilu:7", "block-ilu:13,dilu", "block-ilu:4,ilu0",
                             "block-ilu:3,iluk:1", "block-ilu:5,iluk:3"}) {
      SCOPED_TRACE(fmt::format("{} of {}", name, m.name));
      expect_reference(Factored<TypeParam>(name, m.a, {.threads = 2}), name, m.a);
    }
}

TYPED_TEST(LocalTest, RasIsTheDenseFactorisationOfEachExtendedPartRestrictedToItsOwnRows) {
  for (const NamedMatrix& m : local_matrices())
    for (const char* name :
         {"ras:2", "ras:6,1", "ras:6,2", "ras:9,3", "ras:5,1,dilu", "ras:5,2,iluk:1", "ras:3,1,iluk:2"}) {
      SCOPED_TRACE(fmt::format("{} of {}", name, m.name));
      expect_reference(Factored<TypeParam>(name, m.a, {.threads = 2}), name, m.a);
    }
}

TYPED_TEST(LocalTest, IlutInPartsIsIlutOfEachPart) {
  for (const NamedMatrix& m : local_matrices())
    for (const char* name : {"block-ilu:5,", "ras:5,1,", "ras:4,2,"})
      for (const char* local : {"ilut:5,0.01", "ilut:2,0.1"}) {
        SCOPED_TRACE(fmt::format("{}{} of {}", name, local, m.name));
        const std::vector<double> r = random_values(std::size_t(m.a.rows), 958);
        const std::string whole = std::string(name) + local;
        ASSERT_LT(difference(Factored<TypeParam>(whole, m.a).apply(r), part_by_part(whole, local, m.a, r)), 1e-13);
      }
}

TYPED_TEST(LocalTest, WithAllFillTheyAreLu) {
  for (const NamedMatrix& m : local_matrices()) {
    const auto n = std::size_t(m.a.rows);
    const std::vector<double> x = random_values(n, 959);
    std::vector<double> b(n);
    sparse::multiply(exec::Host(1), m.a, x.data(), b.data());
    for (const std::string& name : {fmt::format("iluk:{}", n - 1), fmt::format("ilut:{},0", n)}) {
      SCOPED_TRACE(fmt::format("{} of {}", name, m.name));
      EXPECT_LT(difference(Factored<TypeParam>(name, m.a).apply(b), x), 1e-12);
    }
    if (m.a.nnz() > 2 * m.a.rows && m.name != "dense row and column" && m.name != "one triangle") {
      EXPECT_GT(difference(Factored<TypeParam>("iluk:0", m.a).apply(b), x), 1e-4) << "nothing fills in";
    }
  }
}

TYPED_TEST(LocalTest, LevelZeroIsIlu0AndOnePartIsItsLocalFactorisation) {
  for (const NamedMatrix& m : local_matrices()) {
    SCOPED_TRACE(m.name);
    const std::vector<double> r = random_values(std::size_t(m.a.rows), 960);
    const auto z = [&](const std::string& name) { return Factored<TypeParam>(name, m.a, {.threads = 2}).apply(r); };
    EXPECT_LT(difference(z("iluk:0"), Factored<TypeParam>("ilu0", m.a).apply(r)), 1e-12);
    EXPECT_LT(difference(z("block-ilu:1,dilu"), Factored<TypeParam>("dilu", m.a).apply(r)), 1e-12);
    for (const std::string one : {"block-ilu:1", "ras:1", "ras:1,0", "ras:1,3"}) {
      EXPECT_EQ(bits(z(one)), bits(z("iluk:0"))) << one;
      const std::string with = one == "ras:1" ? "ras:1,1" : one;
      for (const char* local : {"iluk:1", "iluk:3", "ilut:4,0.05"})
        EXPECT_EQ(bits(z(with + "," + local)), bits(z(local))) << with << "," << local;
    }
  }
}

TYPED_TEST(LocalTest, WithoutOverlapRasIsBlockIlu) {
  for (const NamedMatrix& m : local_matrices())
    for (const char* rest : {"", ",dilu", ",iluk:1", ",ilut:4,0.02"}) {
      SCOPED_TRACE(m.name + rest);
      const std::vector<double> r = random_values(std::size_t(m.a.rows), 961);
      for (int parts : {2, 6})
        EXPECT_EQ(bits(Factored<TypeParam>(fmt::format("ras:{},0{}", parts, rest), m.a).apply(r)),
                  bits(Factored<TypeParam>(fmt::format("block-ilu:{}{}", parts, rest), m.a).apply(r)));
    }
  const CsrMatrix a = grid(11, 9);
  const std::vector<double> r = random_values(99, 962);
  EXPECT_GT(difference(Factored<TypeParam>("ras:6,1", a).apply(r), Factored<TypeParam>("block-ilu:6", a).apply(r)),
            1e-3);
}

TYPED_TEST(LocalTest, MorePartsThanRowsAreJacobi) {
  for (const NamedMatrix& m : local_matrices()) {
    SCOPED_TRACE(m.name);
    const std::vector<double> r = random_values(std::size_t(m.a.rows), 963);
    const std::vector<double> jacobi = Factored<TypeParam>("jacobi", m.a).apply(r);
    for (const char* name : {"block-ilu:1000", "ras:2147483647,0", "block-ilu:1000,ilut:5,0", "block-ilu:100,dilu"})
      EXPECT_LT(difference(Factored<TypeParam>(name, m.a, {.threads = 3}).apply(r), jacobi), 1e-15) << name;
    expect_reference(Factored<TypeParam>("ras:1000,1", m.a), "ras:1000,1", m.a);
  }
}

TYPED_TEST(LocalTest, NoRowsAreNoTrouble) {
  CsrMatrix none;
  none.offsets.push_back(0);
  for (const std::string& name : kinds)
    for (int threads : {1, 3})
      EXPECT_EQ(Factored<TypeParam>(name, none, {.threads = threads}).apply({}), std::vector<double>{}) << name;
}

// --- the same bits ---------------------------------------------------------------------------------------------------

TYPED_TEST(LocalTest, TheSameBitsUnderAllStrategiesTeamsAndOrderings) {
  // 45 x 40: levels and parts that three threads share; and a pattern without partners.
  for (const CsrMatrix& a :
       {grid(45, 40), random_matrix({.rows = 1500, .per_row = 3, .symmetric_pattern = false, .seed = 964})}) {
    const std::vector<double> r = random_values(std::size_t(a.rows), 965);
    for (const std::string& name : kinds) {
      const std::vector<double> expected = Factored<exec::Host>(name, a).apply(r);
      const bool parts = precond::parse_spec(name).parts != 1;
      for (int threads : {1, 3})
        for (Strategy s : {Strategy::serial, Strategy::level_set, Strategy::sync_free, Strategy::automatic}) {
          SCOPED_TRACE(fmt::format("{}, {}, {} threads, {} rows", name, to_string(s), threads, a.rows));
          const Factored<TypeParam> m(name, a, {.threads = threads, .strategy = s});
          for (int again = 0; again < (s == Strategy::automatic ? 7 : 1); ++again) ASSERT_EQ(m.apply(r), expected);
          const triangular::Report report = m.precond().triangular().value();
          if (s != Strategy::automatic) {
            EXPECT_EQ(report.used, s);
          } else if (threads == 1) {
            EXPECT_EQ(report.used, Strategy::serial);
          } else if (parts) {
            EXPECT_EQ(report.used, Strategy::parts);
            EXPECT_EQ(to_string(report.used), std::string("parts"));
          } else {
            EXPECT_TRUE(report.settled);
            EXPECT_NE(report.seen, "");
          }
        }
    }
    // Factors are of the caller's own order, whatever order the solver keeps its rows in.
    for (const char* ordering : {"rcm", "multicolour"})
      for (const std::string& name : kinds)
        ASSERT_EQ(Factored<TypeParam>(name, a, {.ordering = ordering, .threads = 2, .height = 4}).apply(r),
                  Factored<exec::Host>(name, a).apply(r))
            << name << ", " << ordering;
  }
}

TYPED_TEST(LocalTest, NewValuesGiveAFreshFactor) {
  for (const std::string& name : kinds) {
    SCOPED_TRACE(name);
    expect_fresh_factor<TypeParam>(name, "rcm", 966);
  }
}

TYPED_TEST(LocalTest, AnotherShiftIsAnotherFactorAndTheOldOneComesBack) {
  const CsrMatrix a = grid(15, 14);
  const std::vector<double> r = random_values(210, 967);
  for (const std::string& name : kinds) {
    Factored<TypeParam> m(name, a, {.threads = 2});
    const std::vector<double> first = m.apply(r);
    m.factor(a, 0.25);
    EXPECT_EQ(bits(m.apply(r)), bits(Factored<TypeParam>(name, a, {.shift = 0.25}).apply(r))) << name;
    EXPECT_GT(difference(m.apply(r), first), 1e-3) << name;
    m.factor(a);
    EXPECT_EQ(bits(m.apply(r)), bits(first)) << name;
  }
}

// --- pivots and shifts -----------------------------------------------------------------------------------------------

TYPED_TEST(LocalTest, TheShiftGrowsTheDiagonalInItsOwnSign) {
  RowMaps rows(60);
  const CsrMatrix a = random_matrix({.rows = 60, .per_row = 4, .seed = 968});
  for (Index i = 0; i < 60; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      rows[std::size_t(i)][a.columns[std::size_t(k)]] = (i % 2 ? 1 : -1) * a.values[std::size_t(k)];
  for (const char* name : {"iluk:0", "iluk:2", "block-ilu:7", "ras:6,1", "block-ilu:9,dilu", "ras:4,2,iluk:1"}) {
    // A missing diagonal grows upwards.
    RowMaps with_gaps = rows;
    int gaps = 0;
    for (Index i = 7; i < 60; i += 3)
      if (gaps < 4) gaps += int(with_gaps[std::size_t(i)].erase(i));
    ASSERT_EQ(gaps, 4) << name;
    const CsrMatrix b = from_rows(with_gaps);
    for (double shift : {0.3, 1.0}) {
      SCOPED_TRACE(fmt::format("{}, shift {}", name, shift));
      expect_reference(Factored<TypeParam>(name, b, {.threads = 2, .shift = shift}), name, b, shift);
    }
  }
}

TYPED_TEST(LocalTest, AZeroPivotIsNamedByTheCallersRowAndMendedByAShift) {
  for (bool stored : {true, false}) {
    const CsrMatrix a = with_zero_pivot(stored, 969);
    const std::vector<double> r = random_values(200, 970);
    for (const std::string& name : kinds)
      for (const char* ordering : {"natural", "rcm"})
        for (int threads : {1, 3}) {
          SCOPED_TRACE(fmt::format("{}, {}, {} threads", name, ordering, threads));
          const Setting setting{.ordering = ordering, .threads = threads};
          EXPECT_THROW(Factored<TypeParam>(name, a, setting), ZeroPivot);
          EXPECT_EQ(complaint([&] { Factored<TypeParam>(name, a, setting); }),
                    name +
                        ": zero pivot in row 124 (counting from 1): give --shift (0.01, say), --scaling matching (on "
                        "the host, in double), "
                        "another ordering, or --precond jacobi or none");
        }
    for (const char* name : {"iluk:0", "iluk:2", "block-ilu:2", "ras:6,1", "block-ilu:3,dilu", "ras:4,1,iluk:2"}) {
      SCOPED_TRACE(name);
      const std::vector<double> z = Factored<TypeParam>(name, a, {.threads = 3, .shift = 0.5}).apply(r);
      EXPECT_LT(difference(z, by_dense_parts(name, a, r, 0.5)), 1e-12);
    }
  }
}

TYPED_TEST(LocalTest, ZeroPivotsInSeveralPartsNameARowThatHasOne) {
  CsrMatrix a = grid(20, 10);
  for (Index i : {37, 150, 199})  // whole rows: zero pivots wherever they stand
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) a.values[std::size_t(k)] = 0;
  for (const std::string& name : kinds) {
    std::string first;
    for (int threads : {1, 3}) {
      const std::string text = complaint([&] { Factored<TypeParam>(name, a, {.threads = threads}); });
      bool named = false;
      for (int row : {38, 151, 200}) named |= text.starts_with(fmt::format("{}: zero pivot in row {} (", name, row));
      EXPECT_TRUE(named) << text;
      if (first.empty()) first = text;
      EXPECT_EQ(text, first) << "another team, another row";
    }
    if (!name.starts_with("ras") && !name.starts_with("block")) {
      EXPECT_NE(first.find("row 38 ("), std::string::npos) << first;
    }
  }
}

TYPED_TEST(LocalTest, AFailureIsForgottenWithTheNextValues) {
  const CsrMatrix bad = with_zero_pivot(true, 969);
  CsrMatrix good = bad;
  for (double& v : good.values)
    if (v == 0) v = 7;
  const std::vector<double> r = random_values(200, 971);
  for (const std::string& name : kinds) {
    SCOPED_TRACE(name);
    Factored<TypeParam> m(name, good, {.threads = 2});
    const std::vector<double> expected = m.apply(r);
    EXPECT_THROW(m.factor(bad), ZeroPivot);
    EXPECT_THROW(m.factor(bad), ZeroPivot);
    m.factor(good);
    EXPECT_EQ(bits(m.apply(r)), bits(expected));
  }
}

// --- what they say ---------------------------------------------------------------------------------------------------

TYPED_TEST(LocalTest, TheDescriptionSaysHowManyPartsAndHowMuchOverlap) {
  const CsrMatrix a = grid(40, 30);
  const auto says = [&](const std::string& name) { return Factored<TypeParam>(name, a).precond().description(); };
  for (const char* name : {"iluk", "ilut", "block-ilu:1", "ras:1,2"}) EXPECT_EQ(says(name), "") << name;
  for (const char* name : {"block-ilu:7", "block-ilu:7,ilut", "ras:7,0", "ras:7", "ras:7,2"}) {
    const Spec spec = precond::parse_spec(name);
    const Parts p = parts_of(a, spec);
    std::size_t largest = 0, all = 0;
    for (const auto& rows : p.rows) {
      largest = std::max(largest, rows.size());
      all += rows.size();
    }
    std::string expected = fmt::format("{} parts of up to {} rows", p.rows.size(), largest);
    if (spec.overlap > 0) expected += fmt::format(", overlap included: {:.2f} local rows a row", double(all) / 1200);
    EXPECT_EQ(says(name), expected) << name;
  }
  // 1,200 rows of 256 at least.
  EXPECT_EQ(precond::parts_for(1200), 4);
  EXPECT_TRUE(says("block-ilu").starts_with("4 parts of up to ")) << says("block-ilu");
  EXPECT_TRUE(says("ras").starts_with("4 parts of up to ")) << says("ras");
}

TEST(LocalProblem, TheNumberOfPartsSuitsTheRows) {
  for (Index rows : {0, 1, 511}) EXPECT_LE(precond::parts_for(rows), 1) << rows;
  EXPECT_EQ(precond::parts_for(512), 2);
  EXPECT_EQ(precond::parts_for(132 * 256), 132);
  for (Index rows = 512, before = 1; rows < 500000000; rows = rows * 5 / 4 + 1) {
    const Index parts = precond::parts_for(rows);
    EXPECT_GE(parts, before) << rows;
    EXPECT_GE(rows / parts, 256) << rows;
    EXPECT_LE(rows / parts, 2500) << rows;
    EXPECT_TRUE(parts % 132 == 0 || rows < 132 * 256) << rows << " rows leave multiprocessors without a part";
    before = parts;
  }
}

TYPED_TEST(LocalTest, BytesGrowWithFillAndOverlap) {
  const CsrMatrix a = grid(40, 30);
  const auto bytes = [&](const std::string& name) { return Factored<TypeParam>(name, a).precond().bytes(); };
  for (const std::string& name : kinds)
    EXPECT_GE(bytes(name), 1200 * sizeof(double) + std::size_t(a.nnz()) * 8) << name;
  EXPECT_LT(bytes("iluk:0"), bytes("iluk:1"));
  EXPECT_LT(bytes("iluk:1"), bytes("iluk:2"));
  EXPECT_LT(bytes("block-ilu:7"), bytes("ras:7,1"));
  EXPECT_LT(bytes("ras:7,1"), bytes("ras:7,2"));
}

// --- what they are for -----------------------------------------------------------------------------------------------

int iterations(const CsrMatrix& a, const std::string& name) {
  Options o;
  o.solver = "gmres";
  o.precond = name;
  o.device = "host";
  o.threads = 2;
  o.rtol = 1e-8;
  Solver solver(o);
  solver.setup(a);
  const std::vector<double> b = random_values(std::size_t(a.rows), 972);
  std::vector<double> x(b.size(), 0.0);
  const Result r = solver.solve(b, x);
  EXPECT_EQ(r.status, Status::converged) << name;
  EXPECT_EQ(r.precond, name);
  EXPECT_LT(true_residual(a, x, b), 1.001e-8) << name;
  EXPECT_GT(r.iterations, 3) << name;
  return r.iterations;
}

void expect_fewer(const CsrMatrix& a, const std::vector<std::string>& names) {
  std::vector<int> counts;
  for (const std::string& name : names) counts.push_back(iterations(a, name));
  for (std::size_t k = 1; k < names.size(); ++k)
    EXPECT_LE(counts[k], counts[k - 1]) << names[k] << " after " << names[k - 1];
  EXPECT_LT(counts.back(), counts.front()) << names.back() << " against " << names.front();
}

TEST(LocalIterations, FallWithOverlap) {
  expect_fewer(generate("gen:poisson3d:24x24x24"), {"block-ilu:64", "ras:64,1", "ras:64,2"});
}

TEST(LocalIterations, FallWithFill) {
  const CsrMatrix a = generate("gen:poisson3d:24x24x24");
  expect_fewer(a, {"iluk:0", "iluk:1", "iluk:2"});
  EXPECT_EQ(iterations(a, "iluk:0"), iterations(a, "ilu0"));
  expect_fewer(a, {"ilut:2,0.1", "ilut:10,0.01", "ilut:30,0.001"});
}

TEST(LocalIterations, AreFewerWithLargerParts) {
  expect_fewer(generate("gen:poisson3d:24x24x24"),
               {"jacobi", "block-ilu:512", "block-ilu:64", "block-ilu:8", "iluk:0"});
}

}  // namespace
}  // namespace krilu::test
