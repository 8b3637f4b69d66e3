// SPDX-License-Identifier: Apache-2.0
// Stencils against the columns that they stand for: every entry of every lane, in its sequence, once; few on lattices,
// and none where slices differ.
#include "support/sliced_matrix.cuh"

namespace krilu::test {
namespace {

using exec::Cuda;
using sparse::StencilWord;

template <class T>
std::vector<T> there(const T* from, std::size_t n) {
  std::vector<T> out(n);
  EXPECT_EQ(cudaMemcpy(out.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
  return out;
}

/// What one triangle's stencils say is what its columns say.
void expect_columns(const sparse::SlicedTriangle& t, Index slices, Index rows, Offset entries, Offset words) {
  ASSERT_TRUE(t.stencil);
  const auto slice = there(t.slice, std::size_t(slices));
  const auto short_slice = there(t.stencil.slice, std::size_t(slices));
  const auto column = there(t.column, std::size_t(entries));
  const auto length = there(t.length, std::size_t(rows));
  const auto word = there(t.stencil.word, std::size_t(words));
  const auto places = std::size_t(t.stencil.neighbours);
  const auto neighbour = there(t.stencil.neighbour, std::size_t(slices) * places);
  for (std::size_t s = 0; s < slice.size(); ++s) {
    const sparse::Slice& of = slice[s];
    const sparse::StencilSlice& in_short = short_slice[s];
    ASSERT_EQ(in_short.row, of.row);
    ASSERT_EQ(in_short.entry, of.entry);
    ASSERT_EQ(in_short.rows(), of.rows());
    ASSERT_EQ(in_short.inner(), of.inner);
    ASSERT_EQ(neighbour[s * places], of.row);
    // The slice's entries, lane by lane: the k-th of all lanes that have so many stand side by side.
    std::vector<std::vector<Offset>> entry_of(32);
    Offset at = of.entry;
    for (int k = 0; k < of.width(); ++k)
      for (int lane = 0; lane < of.rows(); ++lane)
        if (k < length[std::size_t(of.row + lane)]) entry_of[std::size_t(lane)].push_back(at++);
    for (int lane = 0; lane < 32; ++lane) {
      std::vector<Offset> entries_said;
      for (int step = 0; step < in_short.others() + in_short.within(); ++step) {
        const std::int32_t w = word[(std::size_t(in_short.word) + std::size_t(step)) * 32 + std::size_t(lane)];
        if (w == 0) continue;
        const Offset entry = of.entry + StencilWord::entry(w);
        entries_said.push_back(entry);
        ASSERT_LT(entry, entries);
        const std::size_t number = std::uint32_t(w) >> 16 & 31;
        ASSERT_LT(number, places);
        const Index c = column[std::size_t(entry)], said = neighbour[s * places + number] + StencilWord::row(w);
        ASSERT_EQ(said, c < 0 ? of.row + ~c : c) << "slice " << s << ", lane " << lane << ", step " << step;
        ASSERT_EQ(c < 0, step >= in_short.others());
        ASSERT_EQ(c < 0, number == 0);
      }
      ASSERT_EQ(entries_said, entry_of[std::size_t(lane)]) << "slice " << s << ", lane " << lane;
    }
  }
}

void expect_stencils(const Cuda& ex, const char* name) {
  SCOPED_TRACE(name);
  const SlicedOn s(ex, generate(name), Rows::in_blocks);
  const auto p = s.pattern->view();
  const auto words = Offset(s.pattern->stencil_words());
  ASSERT_GT(words, 0);
  EXPECT_LE(2 * words, s.pattern->lower_entries() + s.pattern->upper_entries());
  expect_columns(p.lower, p.slices, p.rows, s.pattern->lower_entries(), words);
  expect_columns(p.upper, p.slices, p.rows, s.pattern->upper_entries(), words);
}

TEST(StencilsSmall, SayWhatColumnsSay) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const char* name : {"gen:poisson2d:100x70", "gen:convdiff2d:161x90", "gen:poisson3d:33x30x29"})
    expect_stencils(ex, name);
}

TEST(Stencils, SayWhatColumnsSay) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  for (const char* name :
       {"gen:convdiff3d:148x148x58", "gen:poisson3d27:65x61x63", "gen:convdiff2d:1001x999", "gen:convdiff3d:65x63x61"})
    expect_stencils(ex, name);
}

TEST(StencilsSmall, AreNotMadeWhereSlicesDifferNorWithoutBlocks) {
  KRILU_REQUIRE_GPU();
  const Cuda ex;
  const SlicedOn random(ex, random_matrix({.rows = 3000, .per_row = 6, .seed = 451}), Rows::in_blocks);
  const auto p = random.pattern->view();
  const sparse::Stencils of_random(ex, p.rows, p.slices, random.plan->layout->slice_row.data(), p.lower, p.upper,
                                   random.pattern->lower_entries() + random.pattern->upper_entries());
  EXPECT_EQ(of_random.words(), 0);
  EXPECT_FALSE(of_random.lower());
  EXPECT_FALSE(of_random.upper());
  const auto none = [&](const CsrMatrix& a, Rows rows) {
    const SlicedOn s(ex, a, rows);
    EXPECT_FALSE(s.pattern->view().lower.stencil) << to_string(rows);
    EXPECT_FALSE(s.pattern->view().upper.stencil) << to_string(rows);
    EXPECT_EQ(s.pattern->stencil_words(), 0) << to_string(rows);
  };
  none(diagonal(100), Rows::in_blocks);
  none(from_rows({}), Rows::in_blocks);
  none(generate("gen:poisson2d:100x70"), Rows::by_level);
  none(generate("gen:poisson2d:100x70"), Rows::as_given);
}

}  // namespace
}  // namespace krilu::test
