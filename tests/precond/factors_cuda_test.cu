// SPDX-License-Identifier: Apache-2.0
// DILU, DIC, ILU(0) and IC(0) on a GPU against the host's in the same sequence of elimination: natural, a random order,
// and coloured blocks; the same bits under every strategy; new values; shifts of either sign; and what they refuse, by
// the caller's row.
#include "precond/factored.hpp"
#include "precond/factors.cuh"
#include "support/rounded.hpp"
#include "support/sliced_matrix.cuh"

namespace krilu::test {
namespace {

using exec::Cuda;
using triangular::Strategy;

constexpr Strategy factor_strategies[] = {Strategy::level_set, Strategy::sync_free, Strategy::tiled};
constexpr Rows orders[] = {Rows::by_level, Rows::by_level_of_a_random_order, Rows::in_blocks};

/// A preconditioner as the engine makes it.
class GpuFactored {
 public:
  GpuFactored(const std::string& name, SlicedOn& s, Strategy strategy, double shift = 0) : s_(s) {
    const precond::Context<Cuda> context{s.space, strategy, [row = s.row](Index i) { return row[std::size_t(i)]; },
                                         s.plan, &s.there};
    precond_ = precond::make<Cuda, double>(name, context, s.pattern);
    precond_->factor(s.matrix, shift);
  }
  void factor(const CsrView& a, double shift = 0) {
    s_.fill(a);
    precond_->factor(s_.matrix, shift);
  }
  std::vector<double> apply(const std::vector<double>& r) const {
    const auto in = s_.in(r), out = s_.in(std::vector<double>(r.size(), 1e300));
    precond_->apply(in.data(), out.data());
    return s_.out(out);
  }
  precond::Preconditioner<Cuda, double>& precond() const { return *precond_; }

 private:
  SlicedOn& s_;
  std::unique_ptr<precond::Preconditioner<Cuda, double>> precond_;
};

/// The host's class, eliminating in a given sequence.
class HostFactored {
 public:
  HostFactored(const std::string& name, const CsrView& a, const schedule::Order& order, double shift = 0)
      : split_(exec::Host(1), a, schedule::by_levels(exec::Host(1), a, sparse::adjacency(a), order)) {
    const precond::Context<exec::Host> context{split_.space, Strategy::serial,
                                               [rows = split_.order.rows](Index i) { return rows[std::size_t(i)]; }};
    precond_ = precond::make<exec::Host, double>(name, context, split_.pattern);
    precond_->factor(split_.matrix, shift);
  }
  std::vector<double> apply(const std::vector<double>& r) const {
    const auto in = split_.in(r), out = split_.in(r);
    precond_->apply(in.data(), out.data());
    return split_.out(out);
  }

 private:
  SplitOn<exec::Host> split_;
  std::unique_ptr<precond::Preconditioner<exec::Host, double>> precond_;
};

/// The sequence in which the layout's rows are eliminated.
schedule::Order sequence(const SlicedOn& s) { return s.plan->layout->blocks ? s.row : s.order; }

void expect_factors(const Cuda& ex, const std::string& name, const GpuCase& c, std::uint64_t seed, double shift = 0) {
  const std::vector<double> r = random_values(std::size_t(c.a.rows), seed);
  for (Rows rows : orders) {
    SlicedOn s(ex, c.a, rows, seed, 64);
    const std::vector<double> expected = HostFactored(name, c.a, sequence(s), shift).apply(r);
    std::vector<double> first;
    for (Strategy strategy : factor_strategies) {
      if (rows == Rows::in_blocks && strategy != Strategy::level_set) continue;
      SCOPED_TRACE(name + " of " + c.name + ", rows " + to_string(rows) + ", " + to_string(strategy) + ", seed " +
                   std::to_string(seed) + ", shift " + std::to_string(shift));
      GpuFactored m(name, s, strategy, shift);
      const std::vector<double> z = m.apply(r);
      ASSERT_LT(difference(z, expected), 1e-12);
      EXPECT_EQ(bits(m.apply(r)), bits(z)) << "another application, other bits";
      if (first.empty()) first = z;
      ASSERT_EQ(bits(z), bits(first)) << "strategies differ";
      m.factor(c.a, shift);
      EXPECT_EQ(bits(m.apply(r)), bits(first)) << "another factorisation, other bits";
      EXPECT_GT(m.precond().bytes(), 8 * r.size());
    }
  }
}

void expect_all_factors(const Cuda& ex, const std::vector<GpuCase>& cases, std::uint64_t seed) {
  for (const GpuCase& c : cases)
    if (c.full_diagonal)
      for (const char* name : {"dilu", "ilu0"}) expect_factors(ex, name, c, seed);
}

/// A lattice of five points, every 19th row of which has a diagonal neighbour too: most rows change in their pivot
/// alone.
CsrMatrix with_few_triangles(Index nx, Index ny) {
  RowMaps rows(std::size_t(nx * ny));
  const auto couple = [&](Index i, Index j) {
    rows[std::size_t(i)][j] = -1 - 0.01 * (i % 7);
    rows[std::size_t(j)][i] = -1 + 0.01 * (j % 5);
  };
  for (Index i = 0; i < nx * ny; ++i) {
    if (i % nx + 1 < nx) couple(i, i + 1);
    if (i + nx < nx * ny) couple(i, i + nx);
    if (i % 19 == 0 && i % nx + 1 < nx && i + nx < nx * ny) couple(i, i + nx + 1);
  }
  return dominant(std::move(rows));
}

TEST(FactorsSmall, AreTheHostsInTheSameSequence) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  expect_all_factors(ex, small_cases(), 701);
  expect_factors(ex, "ilu0", {"few triangles", with_few_triangles(24, 17)}, 704);
  for (const char* name : {"dic", "ic0"}) {
    expect_factors(ex, name, {"grid", grid(20, 15, true)}, 702);
    expect_factors(ex, name,
                   {"symmetric", random_matrix({.rows = 300, .per_row = 40, .symmetric_values = true, .seed = 703})},
                   703);
  }
}

TEST(Factors, AreTheHostsInTheSameSequence) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  expect_all_factors(ex, large_cases(), 704);
  for (const char* name : {"dic", "ic0"}) expect_factors(ex, name, {"grid", grid(200, 150, true)}, 705);
}

/// Products with a matrix, of which z = M^-1 r and A z together take a part from the sweeps in coloured blocks.
template <class T>
struct Pair {
  std::vector<T> z, Az, product;  // together; and A z by itself
};
template <class T>
Pair<T> pair_of(const SlicedOn& s, precond::Preconditioner<Cuda, T>& m, const sparse::Operator<Cuda, T>& A,
                std::uint64_t seed) {
  const auto n = std::size_t(s.there.rows);
  const auto r = s.space.allocate<T>(n), z = s.space.allocate<T>(n), Az = s.space.allocate<T>(n),
             product = s.space.allocate<T>(n);
  const std::vector<double> values = random_values(n, seed);
  const std::vector<T> in(values.begin(), values.end());
  s.space.copy_in(r, in.data(), n);
  m.apply(A, r.data(), z.data(), Az.data());
  A.apply(z.data(), product.data());
  return {to_host(s.space, z), to_host(s.space, Az), to_host(s.space, product)};
}
template <class T>
double apart(const std::vector<T>& a, const std::vector<T>& b) {
  double most = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(double(a[i]) - double(b[i])));
    size = std::max(size, std::abs(double(b[i])));
  }
  return most / size;
}

TEST(FactorsSmall, ComeWithTheProductOfTheVeryMatrixThatIsAskedFor) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  using sparse::SplitOperator;
  for (const CsrMatrix& a : {grid(40, 30), random_matrix({.rows = 900, .per_row = 6, .seed = 713})})
    for (Rows rows : orders) {
      SCOPED_TRACE(std::string("rows ") + to_string(rows));
      SlicedOn s(ex, a, rows);
      GpuFactored m("dilu", s, Strategy::level_set);
      const SplitOperator<Cuda, double> own(ex, s.matrix);
      const Pair<double> same = pair_of(s, m.precond(), own, 714);
      EXPECT_LT(apart(same.Az, same.product), 1e-13);
      // Of the same pattern, and another matrix.
      CsrMatrix twice = a;
      for (double& v : twice.values) v *= 2;
      const SlicedOn t(ex, twice, rows);
      const SplitOperator<Cuda, double> doubled(ex, t.matrix);
      const Pair<double> other = pair_of(s, m.precond(), doubled, 714);
      EXPECT_EQ(bits(other.Az), bits(other.product));

      // Factors that stay in 16 bits while the matrix is raised to 32.
      const auto half = std::make_shared<const sparse::RoundedMatrixOf<Cuda, Half>>(
          sparse::rounded_matrix<Half>(ex, s.pattern, s.matrix.view(), {.storage = Format::fp16}));
      const auto single = sparse::rounded_matrix<float>(ex, s.pattern, s.matrix.view(), {.storage = Format::fp32});
      const auto rounded = m.precond().rounded({.storage = Format::fp16}, half);
      ASSERT_NE(rounded, nullptr);
      const SplitOperator<Cuda, float, Half> in_half(ex, half->matrix);
      const SplitOperator<Cuda, float> in_single(ex, single);
      const Pair<float> low = pair_of(s, *rounded, in_half, 715), raised = pair_of(s, *rounded, in_single, 715);
      EXPECT_LT(apart(low.Az, low.product), 1e-5);
      EXPECT_EQ(raised.Az, raised.product);
      EXPECT_GT(apart(raised.Az, low.Az), 2e-5) << "the two matrices are too near each other to tell";
    }
}

/// Scaled by what it folds, a DILU form has pivots of 1: not to keep them changes no bit. And it is M C.
TEST(FactorsSmall, PivotsGoIntoTheMatrix) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const CsrMatrix& a : {grid(40, 30), generate("gen:convdiff3d:33x30x29"), with_few_triangles(24, 17)})
    for (Rows rows : orders)
      for (const char* name : {"dilu", "ilu0"})
        for (Strategy strategy : {Strategy::level_set, Strategy::tiled, Strategy::sync_free}) {
          SCOPED_TRACE(std::string(name) + ", rows " + to_string(rows) + ", " + to_string(strategy));
          SlicedOn s(ex, a, rows);
          GpuFactored m(name, s, strategy);
          const double* const scale = m.precond().folds().scale;
          ASSERT_NE(scale, nullptr);
          std::vector<double> c(std::size_t(a.rows));
          exec::require_cuda(cudaMemcpy(c.data(), scale, c.size() * sizeof(double), cudaMemcpyDefault), "copying");
          const sparse::SplitOperator<Cuda, double> in_double(ex, s.matrix);
          const Pair<double> exact = pair_of(s, m.precond(), in_double, 719);
          const auto expect_same = [&](auto stored, double accuracy) {
            using S = decltype(stored);
            sparse::Rounding how{Stored<S>::format, nullptr, scale};
            const auto matrix = std::make_shared<const sparse::RoundedMatrixOf<Cuda, S>>(
                sparse::rounded_matrix<S>(ex, s.pattern, s.matrix.view(), how));
            const sparse::SplitOperator<Cuda, float, S> A(ex, matrix->matrix);
            const auto kept = m.precond().rounded(how, matrix);
            how.folded = true;
            const auto folded = m.precond().rounded(how, matrix);
            EXPECT_EQ(kept->bytes() - folded->bytes(), std::size_t(a.rows) * sizeof(float));
            const Pair<float> with = pair_of(s, *kept, A, 719), without = pair_of(s, *folded, A, 719);
            EXPECT_EQ(without.z, with.z);
            EXPECT_EQ(without.Az, with.Az);
            std::vector<double> z(without.z.begin(), without.z.end());
            for (std::size_t i = 0; i < z.size(); ++i) z[i] *= c[i];
            EXPECT_LT(apart(z, exact.z), accuracy);
          };
          expect_same(float{}, 1e-5);
          expect_same(Bfloat16{}, 0.05);
        }
}

/// Of any y and z: with stencils and without.
template <class T, class S>
void expect_same_product(const SlicedOn& s, sparse::SlicedView<T, S> a, std::uint64_t seed) {
  const auto n = std::size_t(s.there.rows);
  const auto vector = [&](std::uint64_t from) {
    const std::vector<double> values = random_vector(n, from, 0.5, 1.0);
    return s.space.brought(std::vector<T>(values.begin(), values.end()));
  };
  const auto rd = vector(seed), y = vector(seed + 1), z = vector(seed + 2), with = vector(seed), without = vector(seed);
  ASSERT_TRUE(a.pattern.lower.stencil);
  precond::product_after_sweeps(s.space, a, s.pattern->widest(), rd.data(), y.data(), z.data(), with.data());
  a.pattern.lower.stencil = {};
  precond::product_after_sweeps(s.space, a, s.pattern->widest(), rd.data(), y.data(), z.data(), without.data());
  EXPECT_EQ(to_host(s.space, with), to_host(s.space, without));
}

TEST(FactorsSmall, StencilsChangeNoBitOfTheProductAfterSweeps) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const char* name : {"gen:convdiff2d:100x70", "gen:poisson3d:33x30x29", "gen:convdiff3d27:41x40x39"}) {
    SCOPED_TRACE(name);
    const SlicedOn s(ex, generate(name), Rows::in_blocks);
    expect_same_product(s, s.matrix.view(), 716);
    expect_same_product(
        s, sparse::rounded_matrix<float>(ex, s.pattern, s.matrix.view(), {.storage = Format::fp32}).view(), 717);
    expect_same_product(
        s, sparse::rounded_matrix<Bfloat16>(ex, s.pattern, s.matrix.view(), {.storage = Format::bf16}).view(), 718);
  }
}

TEST(FactorsSmall, TheShiftGrowsTheDiagonalInItsOwnSign) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  CsrMatrix a = with_long_rows(400, {40, 100, 300}, true, 706);
  for (Index i = 0; i < a.rows; i += 2)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) a.values[std::size_t(k)] *= -1;
  for (const char* name : {"dilu", "ilu0"})
    for (double shift : {0.01, 0.5}) expect_factors(ex, name, {"two signs", a}, 707, shift);
  // Without a shift the factor is another.
  SlicedOn s(ex, a, Rows::by_level);
  const std::vector<double> r = random_values(400, 708);
  const std::vector<double> shifted = GpuFactored("dilu", s, Strategy::tiled, 0.5).apply(r);
  EXPECT_GT(difference(shifted, GpuFactored("dilu", s, Strategy::tiled).apply(r)), 1e-3);
}

TEST(FactorsSmall, NewValuesGiveAFreshFactor) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix a = random_matrix({.rows = 400, .per_row = 6, .seed = 709});
  CsrMatrix b = a;
  for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] *= 1 + 0.2 * double(k % 5);
  const std::vector<double> r = random_values(400, 710);
  for (const char* name : {"dilu", "ilu0"})
    for (Rows rows : orders) {
      SCOPED_TRACE(std::string(name) + ", rows " + to_string(rows));
      SlicedOn s(ex, a, rows), t(ex, b, rows);
      GpuFactored m(name, s, Strategy::sync_free);
      const std::vector<double> first = m.apply(r);
      m.factor(b);
      const std::vector<double> second = m.apply(r);
      EXPECT_NE(second, first);
      if (rows != Rows::in_blocks) {  // blocks look at the values
        EXPECT_EQ(bits(second), bits(GpuFactored(name, t, Strategy::tiled).apply(r)));
      }
      m.factor(a);
      EXPECT_EQ(bits(m.apply(r)), bits(first)) << "something is left of the values before";
    }
}

// --- refusals ------------------------------------------------------------------------------------------------------

TEST(FactorsSmall, AZeroPivotIsNamedByTheCallersRowAndMendedByAShift) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (bool stored : {true, false})
    for (const char* name : {"dilu", "ilu0"})
      for (Rows rows : orders)
        for (Strategy strategy : factor_strategies) {
          SCOPED_TRACE(std::string(name) + ", rows " + to_string(rows) + ", " + to_string(strategy));
          const CsrMatrix a = with_zero_pivot(stored, 711);
          SlicedOn s(ex, a, rows, 712, 64);
          EXPECT_THROW(GpuFactored(name, s, strategy), ZeroPivot);
          EXPECT_EQ(complaint([&] { GpuFactored(name, s, strategy); }),
                    std::string(name) + ": zero pivot in row 124 (counting from 1): give --shift (0.01, say), " +
                        (std::string(name) == "ilu0" ? "--scaling matching (on the host, in double), " : "") +
                        "another ordering, or --precond jacobi or none");
          const std::vector<double> r = random_values(200, 713);
          GpuFactored mended(name, s, strategy, 0.01);
          const std::vector<double> z = mended.apply(r);
          EXPECT_LT(difference(z, HostFactored(name, a, sequence(s), 0.01).apply(r)), 1e-12);
          // A failure is forgotten with the next values.
          EXPECT_THROW(mended.factor(a), ZeroPivot);
          mended.factor(a, 0.01);
          EXPECT_EQ(bits(mended.apply(r)), bits(z));
        }
}

TEST(FactorsSmall, APivotThatCancelsIsZeroToo) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix a = from_dense({{1, 1, 0}, {1, 1, 0}, {0, 0, 1}});  // 1 - 1 * 1 * 1
  for (const char* name : {"dilu", "dic", "ilu0", "ic0"})
    for (Strategy strategy : factor_strategies) {
      SlicedOn s(ex, a, Rows::by_level);
      const std::string text = complaint([&] { GpuFactored(name, s, strategy); });
      EXPECT_TRUE(text.starts_with(std::string(name) + ": zero pivot in row 2 (")) << text;
      EXPECT_EQ(complaint([&] { GpuFactored(name, s, strategy, 0.01); }), "");
    }
}

/// Whether some entry of the row, or of its column, is not its mirror.
bool is_asymmetric(const CsrMatrix& a, Index row) {
  const Dense d = to_dense(a);
  for (std::size_t j = 0; j < d.size(); ++j)
    if (d[std::size_t(row)][j] != d[j][std::size_t(row)]) return true;
  return false;
}

void expect_refusal(const Cuda& ex, const CsrMatrix& a, const std::string& what) {
  for (const char* name : {"dic", "ic0"})
    for (Rows rows : orders)
      for (Strategy strategy : factor_strategies) {
        SCOPED_TRACE(std::string(name) + " of " + what + ", rows " + to_string(rows) + ", " + to_string(strategy));
        SlicedOn s(ex, a, rows, 714, 64);
        const std::string text = complaint([&] { GpuFactored(name, s, strategy); });
        const std::string start = name + std::string(" needs a symmetric matrix, and row ");
        const std::string other = name == std::string("dic") ? "dilu" : "ilu0";
        ASSERT_TRUE(text.starts_with(start)) << "'" << text << "'";
        const Index row = std::stoi(text.substr(start.size()));
        EXPECT_EQ(text, start + std::to_string(row) + " is not its column's mirror: use " + other + " instead");
        ASSERT_TRUE(row >= 1 && row <= a.rows) << text;
        EXPECT_TRUE(is_asymmetric(a, row - 1)) << "the row that is named is its column's mirror: " << text;
        EXPECT_EQ(complaint([&] { GpuFactored(other, s, strategy); }), "");
      }
}

TEST(FactorsSmall, SymmetricOnesRefuseOtherValues) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix symmetric = grid(20, 15, true);
  for (Rows rows : orders) {
    SlicedOn s(ex, symmetric, rows, 715);
    for (const char* name : {"dic", "ic0"})
      EXPECT_EQ(complaint([&] { GpuFactored(name, s, Strategy::tiled); }), "") << to_string(rows);
  }
  CsrMatrix values = symmetric;
  values.values[std::size_t(values.offsets[131]) - 1] *= 2;  // the last entry of row 131 (from 1)
  expect_refusal(ex, values, "a grid with one value doubled");
  // In natural order it is the row below that meets it, as on the host.
  SlicedOn s(ex, values, Rows::by_level);
  EXPECT_EQ(complaint([&] { GpuFactored("dic", s, Strategy::tiled); }),
            complaint([&] { HostFactored("dic", values, {}); }));
}

TEST(FactorsSmall, SymmetricOnesRefuseOtherPatterns) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const CsrMatrix below = from_dense({{3, 0, 0, 0}, {0, 3, 0, 0}, {0, 0, 3, 0}, {0, 1, 0, 3}});
  expect_refusal(ex, below, "an entry below");
  expect_refusal(ex, sparse::transpose(below), "an entry above");
  expect_refusal(ex, from_dense({{3, 0, 0, 0}, {0, 3, 1, 0}, {0, 0, 3, 0}, {0, 1, 0, 3}}), "one above and one below");
  CsrMatrix grid_with_a_gap = grid(20, 15, true);
  RowMaps rows(300);
  for (Index i = 0; i < 300; ++i)
    for (Offset k = grid_with_a_gap.offsets[std::size_t(i)]; k < grid_with_a_gap.offsets[std::size_t(i) + 1]; ++k)
      rows[std::size_t(i)][grid_with_a_gap.columns[std::size_t(k)]] = grid_with_a_gap.values[std::size_t(k)];
  rows[130].erase(131);
  expect_refusal(ex, from_rows(rows), "a grid with a gap");
}

}  // namespace
}  // namespace krilu::test
