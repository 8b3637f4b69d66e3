// SPDX-License-Identifier: Apache-2.0
// The solver's storage: its shape against what its header promises (slices within groups, padding that is harmless),
// its entries against the caller's matrix one by one, and its products against those of CSR to rounding, for every
// slice height, random row orders and groups, and matrices with rows that are long, short, empty or without a diagonal.
#include "sparse/split.hpp"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "krilu/error.hpp"
#include "sparse/operator.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {
namespace {

/// Any permutation, cut into random groups; rank as the permutation has it, or empty.
sparse::RowOrder random_row_order(Index n, std::uint64_t seed, bool ranked) {
  std::mt19937_64 engine(seed);
  sparse::RowOrder order;
  order.rows = shuffled_order(n, seed);
  order.place = schedule::inverse(order.rows);
  order.group = {0};
  while (order.group.back() < n)
    order.group.push_back(std::min<Index>(n, order.group.back() + 1 + Index(engine() % 40)));
  if (ranked) order.rank = schedule::inverse(shuffled_order(n, seed + 1));
  return order;
}

CsrMatrix without_diagonal(const CsrMatrix& a, Index every) {
  Dense d = to_dense(a);
  for (std::size_t i = 0; i < d.size(); i += std::size_t(every)) d[i][i] = 0;
  return from_dense(d);
}

std::vector<NamedMatrix> split_matrices() {
  std::vector<NamedMatrix> all;
  all.push_back({"random", random_matrix({.rows = 300, .per_row = 6, .symmetric_pattern = false, .seed = 31})});
  all.push_back({"grid", grid(17, 13)});
  all.push_back({"a missing diagonal in every third row", without_diagonal(grid(9, 8), 3)});
  all.push_back({"no diagonal at all", without_diagonal(grid(9, 8), 1)});
  Dense uneven(120, std::vector<double>(120, 0.0));
  std::mt19937_64 engine(32);
  for (std::size_t i = 0; i < uneven.size(); ++i)
    for (std::size_t k = 0; k < i * i % 97; ++k) uneven[i][engine() % 120] = 1 + double(engine() % 100) / 64;
  all.push_back({"rows of very different lengths", from_dense(uneven)});
  Dense arrow(70, std::vector<double>(70, 0.0));
  for (std::size_t i = 0; i < 70; ++i) arrow[i][i] = arrow[i][30] = arrow[30][i] = 1.5 + double(i);
  all.push_back({"a dense row and column", from_dense(arrow)});
  Dense lower(50, std::vector<double>(50, 0.0));
  for (std::size_t i = 0; i < 50; ++i) lower[i][i] = lower[i][i / 2] = -double(i) - 1;
  all.push_back({"an empty strict upper triangle", from_dense(lower)});
  all.push_back({"its transpose", sparse::transpose(from_dense(lower))});
  Dense diagonal(33, std::vector<double>(33, 0.0));
  for (std::size_t i = 0; i < 33; ++i) diagonal[i][i] = double(i) + 0.5;
  all.push_back({"a diagonal", from_dense(diagonal)});
  all.push_back({"one row", from_dense({{-2.5}})});
  CsrMatrix empty;
  empty.offsets.push_back(0);
  all.push_back({"no rows", empty});
  return all;
}

/// The caller's entries, read back from the storage; padding must be zero and read a column that exists.
Dense read_back(const SplitOn<exec::Host>& s) {
  const auto v = s.matrix.view();
  const auto& p = v.pattern;
  const auto n = std::size_t(p.rows);
  Dense d(n, std::vector<double>(n, 0.0));
  const auto& rows = s.order.rows;
  for (std::size_t i = 0; i < n; ++i) d[std::size_t(rows[i])][std::size_t(rows[i])] = v.diagonal[i];
  for (const bool is_lower : {true, false}) {
    const auto& part = is_lower ? p.lower : p.upper;
    const double* value = is_lower ? v.lower : v.upper;
    for (Index slice = 0; slice < p.slices; ++slice)
      for (Offset k = part.offset[slice]; k < part.offset[slice + 1]; ++k) {
        const Index stride = p.height > 0 ? p.height : p.slice_row[slice + 1] - p.slice_row[slice];
        const Index place = p.slice_row[slice] + (k - part.offset[slice]) % stride;
        const Index entry = (k - part.offset[slice]) / stride, column = part.column[k];
        EXPECT_TRUE(column >= 0 && column < p.rows);
        const bool beside = p.height == 0 && (is_lower ? column >= place : column <= place);  // of a node's square
        if (beside || place >= p.slice_row[slice + 1] || (part.length && entry >= part.length[place])) {
          EXPECT_EQ(value[k], 0) << "padding";
          EXPECT_TRUE(is_lower ? column < p.slice_row[slice + 1] : column >= p.slice_row[slice]);
          continue;
        }
        EXPECT_TRUE(is_lower ? column < place : column > place);
        double& there = d[std::size_t(rows[std::size_t(place)])][std::size_t(rows[std::size_t(column)])];
        EXPECT_EQ(there, 0) << "an entry is stored twice";
        there = value[k];
      }
  }
  return d;
}

TEST(SplitPattern, HoldsEveryEntryOnceInSlicesWithinGroups) {
  for (const NamedMatrix& c : split_matrices())
    for (int height : {1, 4, 8, 0})
      for (bool ranked : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, height {}, ranked {}", c.name, height, ranked));
        const SplitOn<exec::Host> s(exec::Host(2), c.a, random_row_order(c.a.rows, 41, ranked), height);
        EXPECT_EQ(read_back(s), to_dense(c.a));
        if (height > 0) {
          EXPECT_EQ(s.pattern->height(), height);
        }
        const auto& rows = s.pattern->slice_rows();
        EXPECT_EQ(rows.front(), 0);
        EXPECT_EQ(rows.back(), c.a.rows);
        for (std::size_t k = 1; k < rows.size(); ++k) {
          EXPECT_GT(rows[k], rows[k - 1]);
          EXPECT_LE(rows[k] - rows[k - 1], s.pattern->height());
        }
        const auto& groups = s.pattern->group_slices();
        ASSERT_EQ(groups.size(), s.order.group.size());
        for (std::size_t g = 0; g < groups.size(); ++g)
          EXPECT_EQ(rows[std::size_t(groups[g])], s.order.group[g]) << "a slice crosses group " << g;
      }
}

/// Matrices whose rows come as nodes: of one size, of several, of more than a slice takes, with single rows between.
std::vector<NamedMatrix> node_matrices() {
  std::vector<NamedMatrix> all;
  all.push_back({"nodes of three", with_nodes(grid(9, 7), [](Index) { return 3; })});
  all.push_back({"nodes of one to eight", with_nodes(random_matrix({.rows = 120, .per_row = 5, .seed = 61}),
                                                     [](Index i) { return 1 + i * i % 8; })});
  all.push_back(
      {"nodes of eleven", with_nodes(random_matrix({.rows = 40, .per_row = 3, .symmetric_pattern = false, .seed = 62}),
                                     [](Index) { return 11; })});
  all.push_back({"velocities at all points, pressure at some",
                 with_nodes(grid(12, 11), [](Index i) { return i % 4 == 0 ? 3 : 2; })});
  all.push_back({"a full matrix", with_nodes(from_dense({{2.0}}), [](Index) { return 29; })});
  all.push_back({"nodes without neighbours",
                 with_nodes(random_matrix({.rows = 50, .per_row = 0}), [](Index i) { return 2 + i % 3; })});
  // A single row that only its neighbours see, one that sees the first neighbour alone, an empty one, and the last.
  Dense lone(8, std::vector<double>(8, 0.0));
  lone[2] = {1, 3, 0, 2, 0, 0, 0, 4}, lone[3][1] = 5, lone[5] = {6, 0, 0, 7, 0, 0, 8, 0},
  lone[7] = {0, 0, 9, 0, 0, 0, 0, 0};
  lone[0][0] = lone[0][5] = lone[1][1] = lone[6][6] = lone[6][2] = 3;
  all.push_back({"single rows without a diagonal",
                 with_nodes(from_dense(lone), [](Index i) { return i == 0 || i == 1 || i == 6 ? 5 : 1; })});
  return all;
}

TEST(SplitPattern, NodesHoldEveryEntryOnceAndEachColumnForAllTheirRows) {
  for (const NamedMatrix& c : node_matrices())
    for (const char* ordering : {"natural", "rcm"})
      for (int threads : {1, 2}) {
        SCOPED_TRACE(fmt::format("{}, {}, {} threads", c.name, ordering, threads));
        SplitOn<exec::Host> s(exec::Host(threads), c.a, ordering);
        ASSERT_EQ(s.pattern->height(), 0) << "no nodes were found";
        EXPECT_EQ(read_back(s), to_dense(c.a));
        CsrMatrix negative = c.a;
        for (double& v : negative.values) v = -2 * v;
        s.fill(negative);
        EXPECT_EQ(read_back(s), to_dense(negative)) << "new values over the old ones";
        EXPECT_EQ(to_dense(sparse::to_csr(s.host, s.matrix, s.order, {})), to_dense(negative));

        int windows = 0;
        const auto p = s.pattern->view();
        for (Index slice = 0; slice < p.slices; ++slice)
          EXPECT_EQ(p.slice_row[slice + 1], s.order.node[std::size_t(slice) + 1]);
        for (const auto* part : {&p.lower, &p.upper})
          for (Index slice = 0; slice < p.slices; ++slice) {
            const Index lanes = p.slice_row[slice + 1] - p.slice_row[slice];
            // A step, or a column of one that is a window, has the columns of all rows; those of the node itself have
            // none.
            std::vector<Index> columns;
            for (Offset k = part->offset[slice]; k < part->offset[slice + 1]; k += lanes) {
              for (Index lane = 1; lane < lanes; ++lane) ASSERT_EQ(part->column[k + lane], part->column[k]);
              columns.push_back(part->column[k]);
            }
            if (lanes > 1) {
              const auto own = columns.begin() + (part == &p.lower ? std::ptrdiff_t(columns.size()) - (lanes - 1) : 0);
              columns.erase(own, own + lanes - 1);
              std::vector<Index> found(columns.size(), -1);
              for (Offset k = part->step[2 * slice]; k < part->step[2 * slice + 2]; ++k) {
                const sparse::NodeStep& step = part->node_step[k];
                ASSERT_EQ(step.at % lanes, 0);
                const bool window = k < part->step[2 * slice + 1];
                windows += window;
                for (Index i = 0; i < (window ? sparse::window_columns(lanes) : 1); ++i)
                  found.at(std::size_t(step.at / lanes + i)) = step.column + i;
              }
              EXPECT_EQ(found, columns);
            }
            for (Index lane = 0; lane < lanes; ++lane) {
              const auto e = p.entries(*part, slice, lane);
              const Index place = p.slice_row[slice] + lane;
              Index count = 0;
              for (Offset k = e.begin; k < e.end; k += e.stride, ++count)
                ASSERT_TRUE(part == &p.lower ? part->column[k] < place : part->column[k] > place);
              EXPECT_EQ(count, e.count());
            }
          }
        if (std::string_view(c.name) == "nodes of three") {
          EXPECT_GT(windows, 0);
        }
      }
}

TEST(SplitPattern, EntriesStandInTheOrderOfElimination) {
  const CsrMatrix a = random_matrix({.rows = 90, .per_row = 9, .seed = 42});
  for (bool ranked : {false, true})
    for (int height : {1, 8}) {
      const SplitOn<exec::Host> s(exec::Host(1), a, random_row_order(90, 43, ranked), height);
      const auto p = s.pattern->view();
      const auto rank = [&](Index place) {
        const Index row = s.order.rows[std::size_t(place)];
        return ranked ? s.order.rank[std::size_t(row)] : row;
      };
      for (const auto* part : {&p.lower, &p.upper})
        for (Index slice = 0; slice < p.slices; ++slice)
          for (Offset k = part->offset[slice]; k + p.height < part->offset[slice + 1]; ++k) {
            const Index entry = (k - part->offset[slice]) / p.height;
            const Index place = p.slice_row[slice] + (k - part->offset[slice]) % p.height;
            if (place >= p.slice_row[slice + 1] || (part->length && entry + 1 >= part->length[place])) continue;
            EXPECT_LT(rank(part->column[k]), rank(part->column[k + p.height])) << "place " << place;
          }
    }
}

TEST(SplitPattern, ChoosesTheTallestSlicesThatPadLittle) {
  const exec::Host host(1);
  const auto chosen = [&](const CsrMatrix& a) {
    return SplitOn<exec::Host>(host, a, schedule::by_windows(a, {})).pattern->height();
  };
  EXPECT_EQ(chosen(grid(64, 64)), 8);
  const auto order = [](Index n) {  // natural, one group
    return sparse::RowOrder{natural_order(n), natural_order(n), {0, n}, {}, {}};
  };
  // Every fourth row has eleven entries below the diagonal, others one: slices of 4 and 8 would triple the entries.
  Dense d(400, std::vector<double>(400, 0.0));
  for (std::size_t i = 0; i < 400; ++i) {
    d[i][i] = 4;
    for (std::size_t k = 1; k <= std::min<std::size_t>(i, i % 4 == 0 ? 11 : 1); ++k) d[i][i - k] = -1;
  }
  EXPECT_EQ(SplitOn<exec::Host>(host, from_dense(d), order(400)).pattern->height(), 1);
  // Runs of four equal rows, long and short in turn: slices of 4 pad nothing, of 8 nearly double.
  for (std::size_t i = 0; i < 400; ++i)
    for (std::size_t k = 1; k <= 12; ++k)
      if (i >= k) d[i][i - k] = k <= (i / 4 % 2 == 0 ? 11u : 1u) ? -1 : 0;
  EXPECT_EQ(SplitOn<exec::Host>(host, from_dense(d), order(400)).pattern->height(), 4);
}

/// Steps of both triangles that are noted as runs, of all. What is noted must be so, and stay within what the slice
/// reads; what is not noted must not be so, of slices without padding.
std::pair<Offset, Offset> checked_runs(const SplitOn<exec::Host>& s) {
  const sparse::PatternView p = s.pattern->view();
  std::pair<Offset, Offset> runs{0, 0};
  for (const sparse::PartPattern* part : {&p.lower, &p.upper}) {
    for (Index slice = 0; slice < p.slices; ++slice) {
      const Index first_row = p.slice_row[slice], lanes = p.slice_row[slice + 1] - first_row;
      const Offset begin = part->offset[slice], end = part->offset[slice + 1];
      const auto padding = [&](Offset k) {
        const Index lane = (k - begin) % p.height;
        return lane >= lanes || (k - begin) / p.height >= part->length[first_row + lane];
      };
      Index least = p.rows, most = -1;
      for (Offset k = begin; k < end; ++k)
        if (!padding(k)) {
          least = std::min(least, part->column[k]);
          most = std::max(most, part->column[k]);
        }
      for (Offset k = begin; k < end; k += p.height) {
        bool follow = true, padded = false;
        for (Offset q = 0; q < p.height; ++q) {
          follow &= part->column[k + q] == part->column[k] + q;
          padded |= padding(k + q);
          EXPECT_TRUE(least <= part->column[k + q] && part->column[k + q] <= most);
        }
        ++runs.second;
        if (!part->run) continue;
        const Index first = part->run[k / p.height];
        runs.first += first >= 0;
        if (first >= 0) {
          EXPECT_TRUE(follow);
          EXPECT_EQ(first, part->column[k]);
        } else if (!padded) {
          EXPECT_FALSE(follow);
        }
      }
    }
  }
  return runs;
}

TEST(SplitPattern, NotesWhereTheColumnsOfASlicesRowsFollowOneAnother) {
  const CsrMatrix regular = grid(60, 45), random = random_matrix({.rows = 900, .per_row = 5, .seed = 51});
  for (int height : {4, 8}) {
    // Level after level of a grid is a diagonal of it, and each neighbour of it another.
    const auto [runs, of] = checked_runs(SplitOn<exec::Host>(exec::Host(2), regular, "natural", height));
    EXPECT_GT(runs, of / 2) << "height " << height;
    const SplitOn<exec::Host> mixed(exec::Host(2), random, "natural", height);
    EXPECT_EQ(checked_runs(mixed).first, 0) << "height " << height;
    EXPECT_EQ(mixed.pattern->view().lower.run, nullptr) << "few runs are not worth a look at each";
  }
  EXPECT_EQ(SplitOn<exec::Host>(exec::Host(1), regular, "natural", 1).pattern->view().lower.run, nullptr);
}

TEST(SplitPattern, ARowLongerThanALengthCanSayIsKeptUnpadded) {
  const Index n = 70000;  // one dense row: its length does not fit 16 bits
  CsrMatrix a;
  a.rows = a.cols = n;
  a.offsets.push_back(0);
  for (Index j = 0; j < n; ++j) a.columns.push_back(j);
  a.offsets.push_back(n);
  for (Index i = 1; i < n; ++i) {
    a.columns.push_back(i);
    a.offsets.push_back(Offset(a.columns.size()));
  }
  a.values.assign(a.columns.size(), 1.0);
  const exec::Host host(2);
  const SplitOn<exec::Host> s(host, a, schedule::by_windows(a, {}));
  EXPECT_EQ(s.pattern->height(), 1);
  const auto x = s.in(std::vector<double>(std::size_t(n), 1.0)), y = host.allocate<double>(std::size_t(n));
  sparse::multiply(host, s.matrix.view(), x.data(), y.data());
  std::vector<double> expected(std::size_t(n), 1.0);
  expected[0] = n;
  EXPECT_EQ(s.out(y), expected);
  EXPECT_THROW(SplitOn<exec::Host>(host, a, schedule::by_windows(a, {}), 8), Error);
}

template <class Space>
class SplitTest : public ::testing::Test {};
TYPED_TEST_SUITE(SplitTest, Spaces);

TYPED_TEST(SplitTest, ProductsAreThoseOfCsr) {
  for (const NamedMatrix& c : split_matrices()) {
    const auto n = std::size_t(c.a.rows);
    const std::vector<double> x = random_values(n, 51), b = random_values(n, 52);
    std::vector<double> product(n), left(n), size(n);
    sparse::multiply(exec::Host(1), c.a, x.data(), product.data());
    sparse::residual(exec::Host(1), c.a, x.data(), b.data(), left.data());
    for (std::size_t i = 0; i < n; ++i)
      for (Offset k = c.a.offsets[i]; k < c.a.offsets[i + 1]; ++k) size[i] += std::abs(c.a.values[std::size_t(k)]);
    for (int height : {1, 4, 8, 0})
      for (int threads : {1, 3}) {
        SCOPED_TRACE(fmt::format("{}, height {}, {} threads", c.name, height, threads));
        const auto space = make_space<TypeParam>(threads);
        const SplitOn<TypeParam> s(space, c.a, random_row_order(c.a.rows, 53, height == 4), height);
        const sparse::SplitOperator<TypeParam, double> A(space, s.matrix);
        EXPECT_EQ(A.rows(), c.a.rows);
        const auto xs = s.in(x), bs = s.in(b), ys = s.in(b), rs = s.in(x);
        A.apply(xs.data(), ys.data());
        A.residual(bs.data(), xs.data(), rs.data());
        A.residual(bs.data(), xs.data(), bs.data());
        const std::vector<double> y = s.out(ys), r = s.out(rs);
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_NEAR(y[i], product[i], 1e-14 * (size[i] + 1)) << "row " << i;
          ASSERT_NEAR(r[i], left[i], 1e-14 * (size[i] + 1)) << "row " << i;
        }
        EXPECT_EQ(bits(s.out(bs)), bits(r)) << "in place";
      }
  }
}

TYPED_TEST(SplitTest, ProductsOfNodesAreThoseOfCsrAndTheSameBitsForAnyTeam) {
  std::vector<NamedMatrix> all = node_matrices();
  all.push_back({"more than one thread's", with_nodes(grid(50, 30), [](Index i) { return 2 + i % 3; })});
  for (const NamedMatrix& c : all) {
    const auto n = std::size_t(c.a.rows);
    const std::vector<double> x = random_values(n, 63), b = random_values(n, 64);
    std::vector<double> product(n), left(n);
    sparse::multiply(exec::Host(1), c.a, x.data(), product.data());
    sparse::residual(exec::Host(1), c.a, x.data(), b.data(), left.data());
    for (bool sweeps : {true, false}) {
      std::vector<double> first;
      for (int threads : {1, 2, 4}) {
        SCOPED_TRACE(fmt::format("{}, {} threads, {}", c.name, threads, sweeps));
        const auto space = make_space<TypeParam>(threads);
        const SplitOn<TypeParam> s(
            space, c.a,
            sweeps ? SplitOn<TypeParam>::levels_of(space, c.a, "natural") : schedule::for_products(c.a, {}));
        ASSERT_EQ(s.pattern->height(), 0);
        const sparse::SplitOperator<TypeParam, double> A(space, s.matrix);
        const auto xs = s.in(x), bs = s.in(b), ys = s.in(b), rs = s.in(x);
        A.apply(xs.data(), ys.data());
        A.residual(bs.data(), xs.data(), rs.data());
        EXPECT_LT(difference(s.out(ys), product), 1e-14);
        EXPECT_LT(difference(s.out(rs), left), 1e-14);
        if (first.empty()) first = s.out(ys);
        EXPECT_EQ(bits(s.out(ys)), bits(first));
      }
    }
  }
}

TYPED_TEST(SplitTest, ProductsAreTheSameBitsForAnyTeam) {
  // More than 4096 rows: the threads share the slices. A dense row makes the shares uneven.
  CsrMatrix a = random_matrix({.rows = 6000, .per_row = 5, .symmetric_pattern = false, .seed = 54});
  const std::vector<double> x = random_values(6000, 55), b = random_values(6000, 56);
  for (int height : {1, 8}) {
    std::vector<double> y1, r1;
    for (int threads : {1, 2, 3, 4}) {
      const auto space = make_space<TypeParam>(threads);
      const SplitOn<TypeParam> s(space, a, random_row_order(6000, 57, false), height);
      const sparse::SplitOperator<TypeParam, double> A(space, s.matrix);
      const auto xs = s.in(x), bs = s.in(b), ys = s.in(b), rs = s.in(b);
      A.apply(xs.data(), ys.data());
      A.residual(bs.data(), xs.data(), rs.data());
      if (threads == 1) {
        y1 = s.out(ys);
        r1 = s.out(rs);
        EXPECT_LT(difference(r1,
                             [&] {
                               std::vector<double> r(6000);
                               sparse::residual(exec::Host(1), a, x.data(), b.data(), r.data());
                               return r;
                             }()),
                  1e-14);
      }
      EXPECT_EQ(bits(s.out(ys)), bits(y1)) << threads << " threads, height " << height;
      EXPECT_EQ(bits(s.out(rs)), bits(r1)) << threads << " threads, height " << height;
    }
  }
}

TEST(FillValues, NewValuesReplaceTheOldOnes) {
  CsrMatrix a = grid(12, 11);
  SplitOn<exec::Host> s(exec::Host(2), a, "rcm", 8);
  EXPECT_EQ(read_back(s), to_dense(a));
  for (double& v : a.values) v = -3 * v;
  s.fill(a);
  EXPECT_EQ(read_back(s), to_dense(a));
}

TEST(FillValues, NamesTheCallersFirstRowThatHoldsNoNumber) {
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                     -std::numeric_limits<double>::infinity()})
    for (int threads : {1, 3}) {
      CsrMatrix a = random_matrix({.rows = 5000, .per_row = 3, .seed = 58});
      const auto order = random_row_order(5000, 59, true);
      a.values[std::size_t(a.offsets[4321])] = bad;
      a.values[std::size_t(a.offsets[1235]) - 1] = bad;  // the last entry of row 1234, 0-based
      try {
        const SplitOn<exec::Host> s(exec::Host(threads), a, order);
        ADD_FAILURE() << "accepted " << bad;
      } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "row 1235 of the matrix holds NaN or infinity");
      }
    }
}

}  // namespace
}  // namespace krilu::test
