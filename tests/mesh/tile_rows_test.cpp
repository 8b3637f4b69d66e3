// SPDX-License-Identifier: Apache-2.0
#include "mesh/tile_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace krilu::mesh {

TEST(DealtFaces, ComeBackTileByTileInTheirSequence) {
  constexpr Index faces = 20000, tiles = 7;  // the last tile gets none, and the others several chunks
  DealtFaces dealt(faces, tiles);
  std::vector<std::vector<Index>> want(tiles);
  std::mt19937 random(1);
  for (Index f = 0; f < faces; ++f) {
    const Index tile = Index(random() % (tiles - 1));
    dealt.deal(tile, TileFace({f, 2 * f, 3 * f}, 0));
    want[std::size_t(tile)].push_back(f);
  }
  for (Index t = 0; t < tiles; ++t) {
    std::vector<Index> got;
    dealt.for_each(t, [&](const TileFace& f) {
      got.push_back(f.face);
      EXPECT_EQ(f.owner, 2 * f.face);
      EXPECT_EQ(f.neighbour, 3 * f.face);
    });
    EXPECT_EQ(got, want[std::size_t(t)]) << t;
    EXPECT_EQ(dealt.dealt_to(t), Index(got.size())) << t;
  }
}

TEST(TileRows, AreSortedWhateverTheirLength) {
  constexpr Index first = 100, cells = 40;
  std::mt19937 random(2);
  for (Index length = 0; length < 9; ++length) {
    std::vector<DealtFaces> dealt;
    for (int piece = 0; piece < 2; ++piece) dealt.emplace_back(cells * length, 1);
    std::vector<std::vector<FaceCells>> want(cells);
    Index face = 0;
    for (Index c = 0; c < cells - 10; ++c)
      for (Index k = 0; k < length; ++k, ++face) {
        FaceCells f{face, first + c, first + c + 1 + Index(random() % 9)};
        if (random() % 2) std::swap(f.owner, f.neighbour);
        want[std::size_t(c)].push_back(f);
        dealt[random() % 2].deal(0, TileFace(f, first));
      }
    TileRows rows;
    rows.fill(dealt, 0, cells);
    rows.sort(0, cells);
    EXPECT_EQ(rows.count(0, cells), face);
    for (Index c = 0; c < cells; ++c) {
      std::vector<FaceCells>& row = want[std::size_t(c)];
      std::sort(row.begin(), row.end(), [](const FaceCells& x, const FaceCells& y) {
        return x.higher() != y.higher() ? x.higher() < y.higher() : x.face < y.face;
      });
      ASSERT_EQ(rows.of(c).size(), row.size());
      for (std::size_t k = 0; k < row.size(); ++k) {
        const FaceCells f = rows.of(c)[k].of(first + c);
        EXPECT_EQ(f.face, row[k].face) << c;
        EXPECT_EQ(f.owner, row[k].owner) << c;
        EXPECT_EQ(f.neighbour, row[k].neighbour) << c;
      }
    }
  }
}

}  // namespace krilu::mesh
