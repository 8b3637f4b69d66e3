// SPDX-License-Identifier: Apache-2.0
#include "mesh/tile_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "exec/host.hpp"
#include "mesh/tile_places.hpp"

namespace krilu::mesh {

TEST(DealtFaces, ComeBackTileByTileInTheirSequence) {
  constexpr Index faces = 20000, tiles = 7;  // the last tile gets none, and the others several chunks
  DealtFaces dealt(faces, tiles);
  std::vector<std::vector<Index>> want(tiles);
  std::mt19937 random(1);
  for (Index f = 0; f < faces; ++f) {
    const Index tile = Index(random() % (tiles - 1));
    dealt.deal(tile, TileFace(f, 2 * f, 3 * f % 65536, f % 2 == 0));
    want[std::size_t(tile)].push_back(f);
  }
  for (Index t = 0; t < tiles; ++t) {
    std::vector<Index> got;
    dealt.for_each(t, [&](TileFace f) {
      got.push_back(f.face());
      EXPECT_EQ(f.lower(), 2 * f.face());
      EXPECT_EQ(f.step(), 3 * f.face() % 65536);
      EXPECT_EQ(f.turned(), f.face() % 2 == 0);
    });
    EXPECT_EQ(got, want[std::size_t(t)]) << t;
    EXPECT_EQ(dealt.dealt_to(t), Index(got.size())) << t;
  }
}

// The largest numbers that a word has room for.
TEST(TileFaces, HoldWhatATileAndAMeshMayHave) {
  constexpr Index face = std::numeric_limits<Index>::max(), first = 1000;
  for (const bool turned : {false, true}) {
    const FaceCells far = TileFace(face, 0, 65535, turned).of(first), near = TileFace(face, 65534, 1, turned).of(first);
    EXPECT_EQ(far.face, face);
    EXPECT_EQ(far.lower(), first);
    EXPECT_EQ(far.higher(), first + 65535);
    EXPECT_EQ(near.face, face);
    EXPECT_EQ(near.owner, first + (turned ? 65535 : 65534));
    EXPECT_EQ(near.neighbour, first + (turned ? 65534 : 65535));
  }
}

// A part of a tile, which has further cells on either side.
TEST(TileRows, AreSortedWhateverTheirLength) {
  constexpr Index first = 100, begin = 20, end = 60;  // of the tile, and of the part of it
  std::mt19937 random(2);
  for (Index length = 0; length < 9; ++length) {
    std::vector<DealtFaces> dealt;
    for (int piece = 0; piece < 2; ++piece) dealt.emplace_back((end - begin) * length, 1);
    std::vector<std::vector<FaceCells>> want(end);
    Index face = 0;
    for (Index c = begin; c < end - 10; ++c)
      for (Index k = 0; k < length; ++k, ++face) {
        const Index step = 1 + Index(random() % 29);
        const bool turned = random() % 2;
        want[std::size_t(c)].push_back({face, first + c + turned * step, first + c + !turned * step});
        dealt[random() % 2].deal(0, TileFace(face, c, step, turned));
      }
    TileRows rows;
    rows.fill(dealt, 0, begin, end);
    rows.sort(begin, end);
    EXPECT_EQ(rows.first(), begin);
    EXPECT_EQ(rows.last(), end);
    EXPECT_EQ(Index(rows.of(begin, end).size()), face);
    for (Index c = begin; c < end; ++c) {
      std::vector<FaceCells>& row = want[std::size_t(c)];
      std::sort(row.begin(), row.end(), [](const FaceCells& x, const FaceCells& y) {
        return x.higher() != y.higher() ? x.higher() < y.higher() : x.face < y.face;
      });
      ASSERT_EQ(rows.of(c).size(), row.size());
      for (std::size_t k = 0; k < row.size(); ++k) {
        const FaceCells f = rows.of(c)[k].of(first);
        EXPECT_EQ(f.face, row[k].face) << c;
        EXPECT_EQ(f.owner, row[k].owner) << c;
        EXPECT_EQ(f.neighbour, row[k].neighbour) << c;
      }
    }
  }
}

TEST(TilePlaces, AreThoseOfTheOrder) {
  const exec::Host host(2);
  // Tiles of uneven sizes, one of them empty, and one of more than one part.
  const std::vector<Index> first{0, 3, 3, 20, 40000, 40001};
  std::vector<Index> order(40001);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  const TilePlaces places(host, order, first);
  const TilePlaces::View view = places.view();
  EXPECT_EQ(places.parts_of_a_tile(), 4);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Index cell = order[k];
    const TilePlaces::Word word = view[cell];
    const auto tile = Index(std::upper_bound(first.begin(), first.end(), Index(k)) - first.begin()) - 1;
    ASSERT_EQ(view.place(word), Index(k));
    ASSERT_EQ(view.tile(word), tile);
    ASSERT_EQ(view.within(word), Index(k) - first[std::size_t(tile)]);
    ASSERT_EQ(view.part(word), 4 * tile + view.within(word) / TilePlaces::most_in_a_part());
    if (k > 0) {
      ASSERT_LT(view[order[k - 1]], word);
    }
  }
  const std::vector<Index> one_without_cells{0, 0};
  const TilePlaces none(host, {}, {}), empty(host, {}, one_without_cells);
  EXPECT_EQ(none.parts_of_a_tile(), 1);
  EXPECT_EQ(empty.parts_of_a_tile(), 1);
}

}  // namespace krilu::mesh
