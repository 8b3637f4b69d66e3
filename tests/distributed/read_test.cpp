// SPDX-License-Identifier: Apache-2.0
// Each rank's rows of a file or a generated system are those of the whole, bit for bit, for every kind of file; what is
// refused is refused on all ranks; and rows of a lattice of billions are made without the others.
#include "distributed/read.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "base/random.hpp"
#include "distributed/rows.hpp"
#include "io/generate_rows.hpp"
#include "support/refusal.hpp"
#if defined(KRILU_HAS_ZLIB)
#include <zlib.h>
#endif

namespace krilu::distributed {
namespace {

using namespace krilu::test;

void expect_rows(const RowsMatrix& got, const CsrMatrix& whole, const Starts& starts, int rank) {
  const RowsMatrix expected = rows_of(whole, starts, rank);
  ASSERT_EQ(got.all, whole.rows);
  ASSERT_EQ(got.first, expected.first);
  ASSERT_EQ(got.count, expected.count);
  ASSERT_EQ(got.offsets, expected.offsets);
  ASSERT_EQ(got.columns, expected.columns);
  ASSERT_EQ(got.values.size(), expected.values.size());
  for (std::size_t k = 0; k < got.values.size(); ++k)
    ASSERT_EQ(std::memcmp(&got.values[k], &expected.values[k], sizeof(double)), 0) << got.values[k];
}

/// Entries in random sequence, some of them twice or three times, comments between.
std::string matrix_text(const std::string& kind, Index n, int entries, std::uint64_t seed) {
  const bool symmetric = kind.find("symmetric") != std::string::npos, skew = kind.find("skew") != std::string::npos;
  const bool pattern = kind.find("pattern") != std::string::npos;
  std::string lines;
  int count = 0;
  for (int k = 0; count < entries; ++k) {
    auto i = Index(random_bits(seed + std::uint64_t(3 * k)) % std::uint64_t(n));
    auto j = Index(random_bits(seed + std::uint64_t(3 * k) + 1) % std::uint64_t(n));
    if (symmetric && i < j) std::swap(i, j);
    // Some pairs are stored above the diagonal: that is taken at its word, as long as it is so throughout.
    if (symmetric && (i * 7 + j * 5) % 3 == 0) std::swap(i, j);
    if (skew && i == j) continue;
    const int times = k % 10 == 0 ? 1 + k / 10 % 3 : 1;
    for (int t = 0; t < times && count < entries; ++t, ++count) {
      const double v = unit_random(seed + std::uint64_t(1000 * k + t)) - 0.5;
      lines += pattern ? fmt::format("{} {}\n", i + 1, j + 1) : fmt::format(" {}\t{}  {:.17g}\r\n", i + 1, j + 1, v);
      if (count % 50 == 7) lines += "% a comment\n\n";
    }
  }
  return fmt::format("%%MatrixMarket matrix coordinate {}\n% of random entries\n{} {} {}\n{}", kind, n, n, entries,
                     lines);
}

/// What read on so many ranks must be: the whole, cut; and the facts those of the whole.
void expect_parts(const std::string& text) {
  const ReadMatrix whole = parse_matrix_market(text, "some/name.mtx");
  for (const int ranks : {1, 2, 3, 5})
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} ranks, {} threads", ranks, threads));
      run_ranks(ranks, [&](auto c) {
        const ReadRows part = parse_rows(*c, text, "some/name.mtx", threads);
        expect_rows(part.rows, whole.matrix, even_starts(whole.matrix.rows, ranks), c->rank());
        EXPECT_EQ(part.facts.name, whole.facts.name);
        EXPECT_EQ(part.facts.declared, whole.facts.declared);
        EXPECT_EQ(part.facts.stored, whole.facts.stored);
        EXPECT_EQ(part.facts.duplicates, whole.facts.duplicates);
        EXPECT_EQ(part.nonzeros, whole.matrix.nnz());
      });
    }
}

TEST(ReadRows, CoordinatesOfEveryKindAreThoseOfTheWhole) {
  for (const std::string kind :
       {"real general", "real symmetric", "real skew-symmetric", "pattern general", "pattern symmetric"})
    for (const auto& [n, entries] : {std::pair{1, 0}, {2, 1}, {7, 20}, {60, 700}, {1000, 300}, {300, 6000}}) {
      if (n == 1 && kind.find("skew") != std::string::npos) continue;
      SCOPED_TRACE(fmt::format("{}, {} rows, {} entries", kind, n, entries));
      expect_parts(matrix_text(kind, n, entries, 471 + std::uint64_t(n)));
    }
  expect_parts("%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 1 5\n3 1 -2\n2 3 7\n");
  expect_parts("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 5.5\n3 1 -2");  // no end of the last line
  expect_parts("%%MatrixMarket matrix coordinate real general\n0 0 0\n");
}

TEST(ReadRows, ArraysAreCut) {
  expect_parts("%%MatrixMarket matrix array real general\n3 3\n1\n0\n3\n4\n5\n6\n0\n8\n9\n");
  expect_parts("%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n");
}

TEST(ReadRows, FilesPlainAndCompressed) {
  const TemporaryFolder folder;
  const std::string text = matrix_text("real symmetric", 200, 2000, 481), plain = folder.file("a.mtx");
  std::ofstream(plain) << text;
  std::vector<std::string> paths{plain};
#if defined(KRILU_HAS_ZLIB)
  paths.push_back(folder.file("a.mtx.gz"));
  gzFile file = gzopen(paths.back().c_str(), "wb");
  gzwrite(file, text.data(), unsigned(text.size()));
  gzclose(file);
#endif
  for (const std::string& path : paths) {
    const ReadMatrix whole = read_matrix_market(path);
    run_ranks(3, [&](auto c) {
      const ReadRows part = read_rows(*c, path);
      expect_rows(part.rows, whole.matrix, even_starts(whole.matrix.rows, 3), c->rank());
      EXPECT_EQ(part.facts.name, "a");
    });
  }
  expect_words(refusal([&] { run_ranks(2, [&](auto c) { read_rows(*c, folder.file("none.mtx")); }); }), {"none.mtx"});
}

/// The sentence of all ranks.
std::string refused(const std::string& text, int ranks = 3) {
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](auto c) { said[std::size_t(c->rank())] = refusal([&] { parse_rows(*c, text, "a.mtx"); }); });
  for (const std::string& s : said) EXPECT_EQ(s, said[0]);
  return said[0];
}

TEST(ReadRows, WhatIsWrongIsRefusedOnAllRanksWithTheSentenceOfTheReader) {
  const std::string head = "%%MatrixMarket matrix coordinate real general\n6 6 3\n";
  for (const std::string& text : {
           std::string("nothing"),
           std::string("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n"),
           head + "1 1 1\n7 1 1\n6 6 1\n",
           head + "1 1 1\n6 1 x\n6 6 1\n",
           head + "1 1 1\n6 1\n6 6 1\n",
           head + "1 1 1\n6 1 nan\n6 6 1\n",
           head + "1 1 1\n3 1 2 2\n6 6 1\n",
           head + "1 1 1\n3x 1 2\n6 6 1\n",
           head + "1 1 1\n3 1x 2\n6 6 1\n",
           head + "1 1 1\n6 1 1\n",
           head + "1 1 1\n6 1 1\n1 1 1\n2 2 2\n",
           head + "1 1 1\n3 2 1.7e308\n3 2 1.7e308\n",
           std::string("%%MatrixMarket matrix coordinate real symmetric\n6 6 3\n1 1 1\n4 2 5\n2 4 5\n"),
           std::string("%%MatrixMarket matrix coordinate real skew-symmetric\n6 6 3\n2 1 1\n4 2 5\n4 4 5\n"),
       }) {
    const std::string one = refusal([&] { parse_matrix_market(text, "a.mtx"); });
    EXPECT_EQ(refused(text, 1), one);
    const std::string three = refused(text);
    EXPECT_NE(three.find(one), std::string::npos) << three << "\ninstead of\n" << one;
    expect_words(three, {"rank ", " of 3: "});
  }
  expect_words(refused("%%MatrixMarket matrix coordinate real general\n6 5 1\n1 1 1\n"), {"6 by 5", "square"});
}

TEST(ReadRows, RanksThatReadDifferentFilesAreRefused) {
  run_ranks(2, [](auto c) {
    const std::string text = matrix_text("real general", c->rank() ? 10 : 11, 20, 491);
    expect_words(refusal([&] { parse_rows(*c, text, "a.mtx"); }), {"number of rows", "11 on rank 0", "10 on rank 1"});
  });
}

TEST(GenerateRows, AreThoseOfTheWholeSystem) {
  for (const std::string text :
       {"gen:poisson2d:13x7", "gen:poisson3d:5x6x7", "gen:poisson3d27:4x5x6", "gen:aniso3d:6x5x4",
        "gen:convdiff2d:20x31:5", "gen:convdiff3d:9x8x7:3", "gen:convdiff3d27:5x5x5", "gen:poisson2d:1x1",
        "gen:poisson3d:2x1x1", "gen:femflow2d:12x9"}) {
    const CsrMatrix whole = generate(text);
    for (const int ranks : {1, 2, 3, 5}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", text, ranks));
      run_ranks(ranks, [&](auto c) {
        const ReadRows part = read_rows(*c, text);
        expect_rows(part.rows, whole, even_starts(whole.rows, ranks), c->rank());
        EXPECT_EQ(part.nonzeros, whole.nnz());
        EXPECT_EQ(part.facts.stored, whole.nnz());
      });
    }
  }
}

TEST(GenerateRows, OfALatticeOfBillionsAreMadeWithoutTheOthers) {
  const std::string text = "gen:convdiff3d:3000x2000x1500:9";
  EXPECT_EQ(io::generated_rows(text), 9'000'000'000);
  const std::int64_t first = 8'999'990'000;
  const RowsMatrix r = io::generate_rows(text, first, 10'000);
  // The last rows of the lattice: no neighbours above, and those in the planes below 6,000,000 rows before.
  const double weight[] = {1.3, 1, 1.1, 0.9, 1, 0.7};
  for (Index i = 0; i < r.count; ++i) {
    const std::int64_t row = first + i;
    const double w = 0.8 + 0.4 * unit_random(9 + std::uint64_t(row));
    std::map<std::int64_t, double> expected{{row - 6'000'000, -weight[0] * w}, {row - 3000, -weight[1] * w}};
    if (row % 3000 > 0) expected[row - 1] = -weight[2] * w;
    if (row % 3000 < 2999) expected[row + 1] = -weight[3] * w;
    if (row + 3000 < 9'000'000'000) expected[row + 3000] = -weight[4] * w;
    double diagonal = 0.05;
    for (const auto& [j, v] : expected) diagonal -= v;
    expected[row] = diagonal;
    ASSERT_EQ(std::size_t(r.offsets[std::size_t(i) + 1] - r.offsets[std::size_t(i)]), expected.size());
    auto k = std::size_t(r.offsets[std::size_t(i)]);
    for (const auto& [j, v] : expected) {
      ASSERT_EQ(r.columns[k], j);
      ASSERT_NEAR(r.values[k++], v, 1e-14);
    }
  }
}

TEST(GenerateRows, WhatCannotBeMadeIsRefused) {
  EXPECT_EQ(io::generated_rows("gen:femflow2d:12x9"), std::nullopt);
  expect_words(refusal([] { io::generate_rows("gen:femflow2d:12x9", 0, 1); }), {"stencils"});
  expect_words(refusal([] { io::generated_rows("gen:nothing:3x3"); }), {"unknown generator"});
  expect_words(refusal([] { io::generated_rows("gen:poisson3d:2000000000x2000000000x2000000000"); }), {"2^60 rows"});
  expect_words(refusal([] { generate("gen:poisson3d:2000x2000x2000"); }), {"2^31 rows"});
  expect_words(refusal([] { io::generate_rows("gen:poisson2d:3x3", 5, 5); }), {"rows 6 to 10", "9 rows"});
  run_ranks(2,
            [](auto c) { expect_words(refusal([&] { read_rows(*c, "gen:poisson2d:99999x99999"); }), {"more ranks"}); });
}

TEST(EvenStarts, DifferByOneRowAtMost) {
  EXPECT_EQ(even_starts(7, 3), (std::vector<std::int64_t>{0, 3, 5, 7}));
  EXPECT_EQ(even_starts(2, 3), (std::vector<std::int64_t>{0, 1, 2, 2}));
  EXPECT_EQ(even_starts(0, 2), (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(even_starts(9'000'000'001, 2), (std::vector<std::int64_t>{0, 4'500'000'001, 9'000'000'001}));
}

}  // namespace
}  // namespace krilu::distributed
