// SPDX-License-Identifier: Apache-2.0
// Levels found on a GPU against the host's, by both algorithms and in natural and random order; and what plans promise:
// each row stands in one place, slices cross neither tiles nor levels nor colours and are as few as that allows, rows
// of a slice of one kind, lists and offsets in the sequence of the levels.
#include <bit>
#include <set>

#include "schedule/levels.hpp"
#include "support/blocks.hpp"
#include "support/sliced_matrix.cuh"

namespace krilu::test {
namespace {

using exec::Cuda;
using schedule::Order;

void expect_levels(const Cuda& ex, const CsrMatrix& a, const Order& order) {
  const sparse::DeviceCsr there = sparse::upload(ex, a, false);
  const Order rank = schedule::inverse(order);
  const exec::Array<Index> order_there = to_device(ex, order), rank_there = to_device(ex, rank);
  const bool natural = order.empty();
  const std::vector<Index> expected = schedule::levels_sync_free(
      exec::Host(1), {a, schedule::Triangle::lower, natural ? nullptr : &order, natural ? nullptr : &rank});
  for (int run = 0; run < 3; ++run) {
    ASSERT_EQ(to_host(ex, schedule::levels_sync_free(ex, there, order_there.data(), rank_there.data())), expected);
    ASSERT_EQ(to_host(ex, schedule::levels_by_rounds(ex, there, order_there.data(), rank_there.data())), expected);
  }
}

void expect_levels(const Cuda& ex, const GpuCase& c, std::uint64_t seed) {
  SCOPED_TRACE(c.name);
  expect_levels(ex, c.a, {});
  SCOPED_TRACE("random order of seed " + std::to_string(seed));
  expect_levels(ex, c.a, shuffled_order(c.a.rows, seed));
}

TEST(LevelsSmall, AreTheHosts) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : small_cases()) expect_levels(ex, c, 501);
  expect_levels(ex, from_rows({}), {});
}

TEST(Levels, AreTheHosts) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : large_cases()) expect_levels(ex, c, 502);
  expect_levels(ex, {"300,000 independent rows", diagonal(300000)}, 503);
}

// --- plans ---------------------------------------------------------------------------------------------------------

Index groups_of(Index count, Index size) { return (count + size - 1) / size; }

/// The places are a permutation, and slices of 1 to 32 rows cover them. Slice of each place.
std::vector<Index> expect_layout(const SlicedOn& s, Index n) {
  const sparse::Layout& layout = *s.plan->layout;
  std::vector<Index> sorted = s.row;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, natural_order(n)) << "not a permutation";
  if (layout.row.size() > 0) {
    EXPECT_EQ(to_host(s.space, layout.place), schedule::inverse(s.row));
  }
  const std::vector<Index> slice_row = to_host(s.space, layout.slice_row);
  EXPECT_EQ(Index(slice_row.size()), layout.slices + 1);
  EXPECT_EQ(slice_row.front(), 0);
  EXPECT_EQ(slice_row.back(), n);
  std::vector<Index> slice(static_cast<std::size_t>(n));
  for (Index k = 0; k < layout.slices; ++k) {
    const Index first = slice_row[std::size_t(k)], last = slice_row[std::size_t(k) + 1];
    EXPECT_TRUE(first < last && last - first <= 32) << "slice " << k << " has " << last - first << " rows";
    for (Index p = first; p < last && p < n; ++p) slice[std::size_t(p)] = k;
  }
  return slice;
}

/// Entries of the longer triangle of each of the caller's rows, in this order.
std::vector<Index> longer_triangles(const CsrMatrix& a, const std::vector<Index>& rank) {
  std::vector<Index> longest(std::size_t(a.rows));
  for (std::size_t i = 0; i < longest.size(); ++i) {
    Index before = 0, after = 0;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const Index other = rank[std::size_t(a.columns[std::size_t(k)])];
      before += other < rank[i];
      after += other > rank[i];
    }
    longest[i] = std::max(before, after);
  }
  return longest;
}

/// Offsets of the runs of equal values in a list that ascends from 0 without gaps.
std::vector<Index> runs(const std::vector<Index>& values) {
  std::vector<Index> first;
  for (std::size_t k = 0; k < values.size(); ++k)
    if (k == 0 || values[k] != values[k - 1]) {
      EXPECT_EQ(values[k], Index(first.size())) << "place " << k << " of a list that should ascend";
      first.push_back(Index(k));
    }
  first.push_back(Index(values.size()));
  return first;
}

void expect_level_plan(const Cuda& ex, const GpuCase& c, Rows rows, Index tile_rows, std::uint64_t seed) {
  SCOPED_TRACE(c.name + ", rows " + to_string(rows) + ", tiles of " + std::to_string(tile_rows) + ", seed " +
               std::to_string(seed));
  const Index n = c.a.rows;
  const SlicedOn s(ex, c.a, rows, seed, tile_rows);
  const schedule::Plan& plan = *s.plan;
  EXPECT_FALSE(plan.layout->blocks);
  if (tile_rows > 0) {
    EXPECT_EQ(plan.tile_rows, tile_rows);
  } else {
    EXPECT_TRUE(std::has_single_bit(unsigned(plan.tile_rows))) << plan.tile_rows;
    EXPECT_TRUE(plan.tile_rows == 512 || (plan.tile_rows <= n / 16 && plan.tile_rows <= 16 * plan.levels()))
        << plan.tile_rows;
    EXPECT_LE(std::size_t(plan.tile_rows) * sizeof(double), ex.shared_memory());
  }
  EXPECT_EQ(plan.tiles, groups_of(n, plan.tile_rows));
  const std::vector<Index> slice = expect_layout(s, n);
  const std::vector<Index> rank = s.order.empty() ? natural_order(n) : schedule::inverse(s.order);
  const std::vector<Index> longest = longer_triangles(c.a, rank);
  const CsrMatrix graph = sparse::adjacency(c.a);
  const std::vector<Index> level = schedule::levels_sync_free(
      exec::Host(1),
      {graph, schedule::Triangle::lower, s.order.empty() ? nullptr : &s.order, s.order.empty() ? nullptr : &rank});
  // Rows by tile, level and lanes; within these in the sequence of the order.
  const auto key = [&](Index row) {
    const auto i = std::size_t(row);
    return std::tuple{rank[i] / plan.tile_rows, level[i], sparse::lanes_log2_of(longest[i])};
  };
  const auto slices = std::size_t(plan.layout->slices);
  std::vector<Index> slice_level(slices), slice_tile(slices);
  std::map<std::tuple<Index, Index, int>, Index> count;
  for (std::size_t p = 0; p < std::size_t(n); ++p) {
    const Index i = s.row[p];
    ++count[key(i)];
    slice_level[std::size_t(slice[p])] = level[std::size_t(i)];
    slice_tile[std::size_t(slice[p])] = std::get<0>(key(i));
    if (p == 0) continue;
    const Index before = s.row[p - 1];
    ASSERT_TRUE(key(before) < key(i) || (key(before) == key(i) && rank[std::size_t(before)] < rank[std::size_t(i)]))
        << "place " << p;
    if (slice[p] == slice[p - 1]) {
      ASSERT_EQ(key(before), key(i)) << "slice " << slice[p];
    }
  }
  Index fewest = 0;
  for (const auto& [k, rows_of_a_kind] : count) fewest += groups_of(rows_of_a_kind, 32 >> std::get<2>(k));
  EXPECT_EQ(plan.layout->slices, fewest);

  const std::vector<Index> list = to_host(ex, plan.list);
  std::vector<Index> sorted = list;
  std::sort(sorted.begin(), sorted.end());
  ASSERT_EQ(sorted, natural_order(plan.layout->slices)) << "a list of slices, each once";
  std::vector<Index> levels_listed;
  for (Index k : list) levels_listed.push_back(slice_level[std::size_t(k)]);
  EXPECT_EQ(plan.level, runs(levels_listed));
  EXPECT_EQ(to_host(ex, plan.level_there), plan.level);
  EXPECT_EQ(to_host(ex, plan.tile), runs(slice_tile));
}

void expect_level_plans(const Cuda& ex, const GpuCase& c, std::uint64_t seed) {
  for (Rows rows : {Rows::by_level, Rows::by_level_of_a_random_order})
    for (Index tile_rows : {0, 64, 1000}) expect_level_plan(ex, c, rows, tile_rows, seed);
}

TEST(PlansSmall, ByLevel) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : small_cases()) expect_level_plans(ex, c, 511);
  expect_level_plan(ex, {"no rows", from_rows({})}, Rows::by_level, 0, 0);
}

TEST(Plans, TilesAreAsLargeAsOrdersAreDeep) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const auto tile_rows = [&](const char* system) {
    return SlicedOn(ex, generate(system), Rows::by_level, 1, 0).plan->tile_rows;
  };
  if (ex.shared_memory() < 80000) GTEST_SKIP() << "this GPU has too little shared memory";
  EXPECT_EQ(tile_rows("gen:convdiff2d:2000x100"), 8192) << "2,099 levels, a sixteenth of the rows";
  EXPECT_EQ(tile_rows("gen:convdiff3d:60x60x60"), 2048) << "178 levels of 16 rows";
  EXPECT_EQ(tile_rows("gen:convdiff3d:20x20x20"), 512);
}

TEST(Plans, ByLevel) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : large_cases()) expect_level_plans(ex, c, 512);
}

void expect_given_plan(const Cuda& ex, const GpuCase& c) {
  SCOPED_TRACE(c.name);
  const SlicedOn s(ex, c.a, Rows::as_given);
  const std::vector<Index> slice = expect_layout(s, c.a.rows);
  const std::vector<Index> longest = longer_triangles(c.a, natural_order(c.a.rows));
  const bool has_long = std::any_of(longest.begin(), longest.end(), [](Index l) { return l > 32; });
  EXPECT_EQ(s.plan->layout->row.size(), has_long ? longest.size() : 0) << "rows move where lengths differ only";
  std::map<int, Index> count;
  for (Index i : s.row) ++count[sparse::lanes_log2_of(longest[std::size_t(i)])];
  Index fewest = 0;
  for (auto [lanes, rows] : count) fewest += groups_of(rows, 32 >> lanes);
  EXPECT_EQ(s.plan->layout->slices, fewest);
  for (std::size_t p = 1; p < slice.size(); ++p) {
    const auto key = [&](Index i) { return std::pair{sparse::lanes_log2_of(longest[std::size_t(i)]), i}; };
    ASSERT_LT(key(s.row[p - 1]), key(s.row[p])) << "place " << p;
  }
}

TEST(PlansSmall, AsGiven) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : small_cases()) expect_given_plan(ex, c);
  expect_given_plan(ex, {"no rows", from_rows({})});
}

TEST(Plans, AsGiven) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : large_cases()) expect_given_plan(ex, c);
}

// --- blocks --------------------------------------------------------------------------------------------------------

/// The size class of a block: up to 1, 2, 4, .. 32 rows.
int class_of(std::size_t rows) {
  int c = 0;
  while ((std::size_t(1) << c) < rows) ++c;
  return c;
}

/// `limit`: rows of the largest block. together: how many may share a slice. The blocks are the host's, brought over.
void expect_block_plan(const Cuda& ex, const GpuCase& c, Index limit, Index together) {
  SCOPED_TRACE(c.name + ", blocks of up to " + std::to_string(limit) + ", " + std::to_string(together) + " a slice");
  const HostBlocks b = host_blocks(c.a, limit);
  const exec::Array<Index> block_there = to_device(ex, b.block), colour_there = to_device(ex, b.colour);
  const sparse::DeviceCsr there = sparse::upload(ex, c.a, true);
  const schedule::Plan plan =
      schedule::by_blocks(ex, there, block_there.data(), colour_there.data(), b.colours, together);
  const sparse::Layout& layout = *plan.layout;
  EXPECT_TRUE(layout.blocks);
  const std::vector<Index> row = to_host(ex, layout.row), slice_row = to_host(ex, layout.slice_row);
  EXPECT_EQ(to_host(ex, layout.place), schedule::inverse(row));
  std::vector<Index> sorted = row;
  std::sort(sorted.begin(), sorted.end());
  ASSERT_EQ(sorted, natural_order(c.a.rows));
  ASSERT_EQ(Index(slice_row.size()), layout.slices + 1);
  EXPECT_EQ(slice_row.back(), c.a.rows);

  std::map<Index, std::size_t> size;
  for (Index name : b.block) ++size[name];
  std::map<std::pair<Index, int>, Index> blocks_of;  // of a colour and size class
  for (std::size_t i = 0; i < b.block.size(); ++i)
    if (size.count(b.block[i])) {
      ++blocks_of[{b.colour[i], std::max(class_of(size[b.block[i]]), class_of(std::size_t(32 / together)))}];
      size.erase(b.block[i]);
    }
  Index fewest = 0;
  for (const auto& [kind, blocks] : blocks_of) fewest += groups_of(blocks, 32 >> kind.second);
  EXPECT_EQ(layout.slices, fewest);

  std::vector<Index> slice_of(row.size()), slice_colour;
  std::map<Index, Index> slice_of_block;
  for (Index k = 0; k < layout.slices; ++k) {
    const Index first = slice_row[std::size_t(k)], last = slice_row[std::size_t(k) + 1];
    ASSERT_TRUE(first < last && last - first <= 32) << "slice " << k << " has " << last - first << " rows";
    slice_colour.push_back(b.colour[std::size_t(row[std::size_t(first)])]);
    for (Index p = first; p < last; ++p) {
      const auto i = std::size_t(row[std::size_t(p)]);
      slice_of[i] = k;
      ASSERT_EQ(b.colour[i], slice_colour.back()) << "slice " << k << " has two colours";
      ASSERT_EQ(slice_of_block.emplace(b.block[i], k).first->second, k) << "block " << b.block[i] << " in two slices";
      if (p > first && b.block[i] == b.block[std::size_t(row[std::size_t(p) - 1])]) {
        ASSERT_LT(row[std::size_t(p) - 1], row[std::size_t(p)]) << "natural order within a block";
      }
    }
  }
  EXPECT_EQ(plan.level, runs(slice_colour));
  EXPECT_EQ(to_host(ex, plan.level_there), plan.level);
  for (std::size_t i = 0; i < row.size(); ++i)
    for (Offset k = c.a.offsets[i]; k < c.a.offsets[i + 1]; ++k) {
      const auto j = std::size_t(c.a.columns[std::size_t(k)]);
      if (b.colour[i] == b.colour[j]) {
        ASSERT_EQ(slice_of[i], slice_of[j]) << "rows " << i << " and " << j << " depend on each other";
      }
    }
}

TEST(PlansSmall, InBlocks) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : small_cases())
    for (Index limit : {1, 2, 5, 20, 32})
      for (Index together : {32, 4, 1}) expect_block_plan(ex, c, limit, together);
  expect_block_plan(ex, {"no rows", from_rows({})}, 32, 32);
}

TEST(Plans, InBlocks) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const GpuCase& c : large_cases())
    for (Index limit : {7, 32}) expect_block_plan(ex, c, limit, 32);
}

}  // namespace
}  // namespace krilu::test
