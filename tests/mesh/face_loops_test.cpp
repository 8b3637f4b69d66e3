// SPDX-License-Identifier: Apache-2.0
// Loops over faces on the host, against plain loops over the mesh: every strategy with every renumbering, tiles of a
// few cells, one to three threads, on meshes that are awkward in some way. Whole numbers must come out equal, real ones
// up to rounding; each face is met once, with its own cells; results are the same bits from run to run and for any
// number of threads; what is reported is what was done; and what is refused, with its sentence.
#include "krilu/face_loops.hpp"

#include <array>
#include <cstring>
#include <map>

#include "face_meshes.hpp"
#include "mesh/face_chooser.hpp"

namespace krilu::test {
namespace {

const std::vector<std::string> strategies{"slices",  "diagonal", "tiles",  "gather",
                                          "colours", "atomics",  "serial", "auto"};
const std::vector<std::string> renumberings{"auto", "none", "bisection", "growth", "rcm", "metis"};

/// Values of boundary faces, as loops of the host read them.
struct HostValues {
  template <class T>
  HostField<T> operator()(const std::vector<T>& values) const {
    HostField<T> field(values.size());
    std::copy(values.begin(), values.end(), field.data());
    return field;
  }
};

const std::vector<Case>& small_cases() {
  static const std::vector<Case> cases = cases_of(small_meshes());
  return cases;
}
const std::vector<Case>& large_cases() {
  static const std::vector<Case> cases = cases_of(large_meshes());
  return cases;
}

std::string described(const Case& on, const FaceLoopOptions& o) {
  return on.name + ": strategy " + o.strategy + ", renumber " + o.renumber + ", blocks of " +
         std::to_string(o.block_cells) + ", orders " + std::to_string(o.orders) + ", threads " +
         std::to_string(o.threads);
}

void expect_right(const Case& on, const FaceLoopOptions& options) {
  SCOPED_TRACE(described(on, options));
  const FaceLoops loops(on.mesh, options);
  expect_right(loops, on, HostValues{});
}

class FaceLoopsBy : public ::testing::TestWithParam<std::string> {};

TEST_P(FaceLoopsBy, GiveWhatPlainLoopsGiveOnSmallMeshes) {
  for (const Case& on : small_cases())
    for (const std::string& renumber : renumberings) {
      if (renumber == "bisection" && !on.mesh.has_geometry()) continue;
      for (Index block : {1, 7, 40})
        for (int threads : {1, 2, 3}) {
          // Three threads are of use where there are tiles for them.
          if (threads == 3 && block != 7) continue;
          expect_right(on, {.strategy = GetParam(), .renumber = renumber, .block_cells = block, .threads = threads});
          if (HasFatalFailure()) return;
        }
    }
}

// All strategies in one test, where the mesh and what is due take as long as the loops.
TEST(FaceLoopsByAll, GiveWhatPlainLoopsGiveOnLargerMeshes) {
  for (const Case& on : large_cases())
    for (const std::string& strategy : strategies)
      for (const auto& [renumber, block, threads] :
           {std::tuple("auto", 0, 2), {"none", 300, 3}, {"none", 20000, 2}, {"growth", 700, 3}, {"rcm", 5000, 1}}) {
        expect_right(on, {.strategy = strategy, .renumber = renumber, .block_cells = block, .threads = threads});
        if (testing::Test::HasFatalFailure()) return;
      }
}

// As many cells in one tile as 16 bits count.
TEST(FaceLoopsByAll, GiveWhatPlainLoopsGiveInTheLargestTile) {
  const Case on({"as many cells as 16 bits count", generate_mesh("mesh:box:64x32x32:random")});
  for (const std::string& strategy : strategies)
    for (const char* renumber : {"none", "rcm"})
      expect_right(on, {.strategy = strategy, .renumber = renumber, .block_cells = 65536, .threads = 2});
}

// Faces and cells beyond the reach of 16 bits, in slices; tiles are asked to have more cells than that.
TEST(FaceLoopsByAll, GiveWhatPlainLoopsGiveWhereCellsStandFarApart) {
  const Case on({"boxes at random", generate_mesh("mesh:box:50x45x40:random")});
  for (const std::string& strategy : strategies)
    for (const char* renumber : {"none", "rcm"})  // in the latter's order some owners stand behind their neighbours
      for (Index block : {90000, 2000})
        expect_right(on, {.strategy = strategy, .renumber = renumber, .block_cells = block, .threads = 2});
}

// All but atomics, whose order of additions is open.
TEST(FaceLoopsByAll, HaveTheSameBitsOnEveryRunAndForAnyNumberOfThreads) {
  for (const auto* cases : {&small_cases(), &large_cases()})
    for (const Case& on : *cases)
      for (const std::string& strategy : strategies)
        for (const char* renumber : {"auto", "none"}) {
          if (strategy == "atomics") continue;
          FaceLoopOptions options{
              .strategy = strategy, .renumber = renumber, .block_cells = on.mesh.cells > 1000 ? 200 : 16};
          Results first;
          for (int threads : {1, 2, 3}) {
            options.threads = threads;
            SCOPED_TRACE(described(on, options));
            const FaceLoops loops(on.mesh, options);
            // What auto takes is a matter of time.
            if (loops.report().strategy == "atomics") continue;
            if (threads == 1 || strategy == "auto") first = by_loops(loops, on.real, HostValues{});
            for (int run = 0; run < 3; ++run) ASSERT_TRUE(same_bits(by_loops(loops, on.real, HostValues{}), first));
          }
        }
}

/// A constant's gradient and the divergence of a constant velocity are nothing: cells are closed, and no face may be
/// missing or turned round.
TEST_P(FaceLoopsBy, ConstantFieldsHaveNeitherGradientNorDivergence) {
  const Mesh m = generate_mesh("mesh:tetrahedra:9x8x7:shuffled");
  const Vector3 velocity{0.3, -1.2, 0.7};
  const auto through = [&](const auto& areas) {
    std::vector<double> flux;
    for (const Vector3& a : areas) flux.push_back(dot(a, velocity));
    return flux;
  };
  for (const char* renumber : {"auto", "none"}) {
    const FaceLoops loops(m, {.strategy = GetParam(), .renumber = renumber, .block_cells = 100, .threads = 2});
    const HostValues there;
    auto x = loops.cell_field(std::vector<double>(std::size_t(m.cells), 3.0)), volume = loops.cell_field(m.volume);
    auto weight = loops.face_field(std::vector<double>(m.owner.size(), 0.25));
    auto area = loops.face_field(m.area);
    auto flux = loops.face_field(through(m.area));
    auto at_boundary = there(std::vector<double>(m.boundary.size(), 3.0));
    auto boundary_area = there(std::vector<Vector3>(m.boundary_area.begin(), m.boundary_area.end()));
    auto boundary_flux = there(through(m.boundary_area));
    auto gradient = loops.cell_field<Vector3>();
    auto divergence = loops.cell_field<double>();
    gauss_gradient(loops, x.view(), weight.view(), area.view(), volume.view(), gradient.view());
    integrate(loops, flux.view(), volume.view(), divergence.view());
    add_boundary_gradient(loops, at_boundary.view(), boundary_area.view(), volume.view(), gradient.view());
    add_boundary_flux(loops, boundary_flux.view(), volume.view(), divergence.view());
    const auto g = loops.cell_values(gradient);
    const auto div = loops.cell_values(divergence);
    for (std::size_t c = 0; c < div.size(); ++c) {
      // Areas over volume: what a cell's terms are large as.
      const double size = std::pow(m.volume[c], -1.0 / 3);
      ASSERT_LE(std::sqrt(dot(g[c], g[c])), 1e-13 * 30 * size) << "cell " << c;
      ASSERT_LE(std::abs(div[c]), 1e-13 * 30 * size) << "cell " << c;
    }
  }
}

TEST_P(FaceLoopsBy, FieldsOfAnotherLengthAreRefused) {
  const Mesh m = generate_mesh("mesh:box:4x3x2");  // 24 cells, 46 faces
  const FaceLoops loops(m, {.strategy = GetParam(), .block_cells = 5, .threads = 1});
  const std::vector<double> cells(24), faces(46);
  EXPECT_EQ(refusal([&] { loops.cell_field(faces); }), "a field of 46 values was given where the mesh has 24");
  EXPECT_EQ(refusal([&] { loops.face_field(cells); }), "a field of 24 values was given where the mesh has 46");
  auto of_cells = loops.cell_field<double>(), of_faces = loops.face_field<double>();
  EXPECT_EQ(of_cells.size(), 24u);
  EXPECT_EQ(of_faces.size(), 46u);
  EXPECT_EQ(refusal([&] { loops.cell_values(of_faces); }), "a field of 46 values was given where the mesh has 24");
  EXPECT_EQ(refusal([&] { loops.face_values(of_cells); }), "a field of 24 values was given where the mesh has 46");
}

INSTANTIATE_TEST_SUITE_P(, FaceLoopsBy, ::testing::ValuesIn(strategies), [](const auto& p) { return p.param; });

TEST(FaceLoops, DiagonalsAreAsAskedFor) {
  for (const Case& on : small_cases())
    for (int orders : {0, 1, 3, 100})
      for (Index block : {3, 25}) {
        const FaceLoopOptions options{
            .strategy = "diagonal", .renumber = "none", .block_cells = block, .orders = orders, .threads = 2};
        expect_right(on, options);
        if (HasFatalFailure()) return;
        const FaceLoops loops(on.mesh, options);
        const FaceLoopReport& r = loops.report();
        SCOPED_TRACE(described(on, options));
        ASSERT_FALSE(r.orders.empty());
        EXPECT_EQ(r.orders.front(), 0);
        EXPECT_TRUE(std::is_sorted(r.orders.begin(), r.orders.end()));
        EXPECT_LE(r.orders.back(), orders);
        if (orders == 0) {
          EXPECT_NEAR(r.remainder_fraction, r.cut_fraction, 1e-12);
        }
      }
}

TEST(FaceLoops, OrdersOfCellsAndFacesAreOrders) {
  const auto sorted = [](std::span<const Index> order) {
    std::vector<Index> all(order.begin(), order.end());
    std::sort(all.begin(), all.end());
    return all;
  };
  for (const Case& on : small_cases())
    for (const std::string& strategy : strategies) {
      const FaceLoops loops(on.mesh, {.strategy = strategy, .block_cells = 9, .threads = 2});
      EXPECT_EQ(sorted(loops.cell_order()), natural_order(on.mesh.cells)) << on.name << ", " << strategy;
      EXPECT_EQ(sorted(loops.face_order()), natural_order(on.mesh.faces())) << on.name << ", " << strategy;
      if (strategy != "serial") continue;
      EXPECT_TRUE(std::is_sorted(loops.cell_order().begin(), loops.cell_order().end()));
      EXPECT_TRUE(std::is_sorted(loops.face_order().begin(), loops.face_order().end()));
    }
}

/// What auto takes where trials say this of each strategy on the piece and on the whole mesh.
FaceLoopReport chosen(bool final_on_whole_mesh, Index piece, std::map<std::string, std::array<double, 2>> seconds) {
  const Mesh m = generate_mesh("mesh:box:20x20x20:random");
  constexpr FaceStrategy candidates[] = {FaceStrategy::tiles, FaceStrategy::diagonal, FaceStrategy::gather,
                                         FaceStrategy::colours};
  const auto seconds_of = [&](mesh::PlanData& plan) {
    return seconds.at(plan.report.strategy)[plan.view.cells == m.cells ? 1 : 0];
  };
  return mesh::choose_plan(exec::Host(1), m, {.block_cells = 500}, {}, candidates,
                           {piece, final_on_whole_mesh, seconds_of})
      .report;
}

TEST(FaceLoops, WhatIsFastOnAPieceHasToBeOnTheWholeMesh) {
  const std::map<std::string, std::array<double, 2>> flattered{
      {"tiles", {5, 50}}, {"diagonal", {4, 45}}, {"gather", {7, 70}}, {"colours", {2, 90}}};
  FaceLoopReport r = chosen(true, 2000, flattered);
  EXPECT_EQ(r.strategy, "diagonal");
  EXPECT_EQ(r.measured.size(), 4u);
  ASSERT_EQ(r.finalists.size(), 2u);
  EXPECT_EQ(r.finalists[0].strategy, "colours");
  EXPECT_EQ(r.finalists[0].milliseconds, 90000);
  EXPECT_EQ(r.finalists[1].strategy, "diagonal");
  auto truly = flattered;
  truly["colours"] = {2, 30};
  r = chosen(true, 2000, truly);
  EXPECT_EQ(r.strategy, "colours");
  EXPECT_EQ(r.finalists.size(), 2u);
  // A piece that is all of the mesh, tiles that were the fastest, or a space whose pieces tell enough: no second look.
  auto in_tiles = flattered;
  in_tiles["tiles"] = {1, 50};
  r = chosen(true, 2000, in_tiles);
  EXPECT_EQ(r.strategy, "tiles");
  EXPECT_TRUE(r.finalists.empty());
  r = chosen(true, 8000, truly);
  EXPECT_EQ(r.strategy, "colours");
  EXPECT_TRUE(r.finalists.empty());
  EXPECT_EQ(chosen(false, 2000, flattered).strategy, "colours");
}

TEST(FaceLoops, WhatIsHardlyFasterOnASmallPieceIsNotTriedOnTheWholeMesh) {
  const std::map<std::string, std::array<double, 2>> hardly{
      {"tiles", {5, 50}}, {"diagonal", {4, 45}}, {"gather", {7, 70}}, {"colours", {3.5, 30}}};
  FaceLoopReport r = chosen(true, 1000, hardly);
  EXPECT_EQ(r.strategy, "diagonal");
  EXPECT_TRUE(r.finalists.empty());
  r = chosen(true, 4000, hardly);  // half of the mesh
  EXPECT_EQ(r.strategy, "colours");
  EXPECT_EQ(r.finalists.size(), 2u);
  EXPECT_EQ(chosen(false, 1000, hardly).strategy, "colours") << "where pieces tell enough";
}

TEST(FaceLoops, SayWhatWasDone) {
  const Mesh m = generate_mesh("mesh:box:20x20x20:random");
  for (const std::string& strategy : strategies) {
    SCOPED_TRACE(strategy);
    const FaceLoops loops(m, {.strategy = strategy, .block_cells = 500, .threads = 2});
    const FaceLoopReport& r = loops.report();
    EXPECT_EQ(loops.threads(), 2);
    EXPECT_EQ(r.renumber, strategy == "serial" ? "none" : "bisection");
    EXPECT_GT(r.seconds, 0);
    EXPECT_LT(r.seconds, 100);
    // Two cells of each face, or something of the kind.
    EXPECT_GE(r.bytes, 2 * m.owner.size());
    EXPECT_LE(r.bytes, 40 * m.owner.size() + 40 * std::size_t(m.cells));
    if (strategy == "auto") {
      ASSERT_GE(r.measured.size(), 4u);
      const auto best = std::min_element(r.measured.begin(), r.measured.end(),
                                         [](const auto& a, const auto& b) { return a.milliseconds < b.milliseconds; });
      EXPECT_EQ(r.strategy, best->strategy);
      EXPECT_GT(best->milliseconds, 0);
      continue;
    }
    EXPECT_EQ(r.strategy, strategy);
    EXPECT_TRUE(r.measured.empty());
    if (strategy != "diagonal") {
      EXPECT_EQ(r.remainder_fraction, 0);
    }
    if (strategy == "tiles" || strategy == "diagonal") {
      EXPECT_GE(r.tiles, 16);
      EXPECT_LE(r.tiles, 32);
      EXPECT_LE(r.most_cells, 500);
      EXPECT_GE(r.most_cells, 250);
      // Boxes of some eight cells a side: a cell of eight has a neighbour beyond.
      EXPECT_GT(r.cut_fraction, 0.05);
      EXPECT_LT(r.cut_fraction, 0.2);
    } else {
      EXPECT_EQ(r.tiles, 0);
      EXPECT_EQ(r.most_cells, 0);
      EXPECT_EQ(r.cut_fraction, 0);
    }
    EXPECT_EQ(r.orders.empty(), strategy != "diagonal");
  }
}

TEST(FaceLoops, NamesOfRenumberingsAreReported) {
  const Mesh with = generate_mesh("mesh:triangles:6x5"), without = star(50, 4);
  for (const std::string& name : renumberings) {
    if (name == "auto") continue;
    const FaceLoops loops(with, {.strategy = "tiles", .renumber = name, .block_cells = 10, .threads = 1});
    EXPECT_EQ(loops.report().renumber, name);
  }
  EXPECT_EQ(FaceLoops(with, {.strategy = "tiles"}).report().renumber, "bisection");
  EXPECT_EQ(FaceLoops(without, {.strategy = "tiles"}).report().renumber, "growth");
}

TEST(FaceLoops, OneBlockCutsNothing) {
  const Mesh m = generate_mesh("mesh:tetrahedra:3x3x3");
  for (const char* strategy : {"tiles", "diagonal"}) {
    const FaceLoops loops(m, {.strategy = strategy, .block_cells = 1000, .threads = 2});
    EXPECT_EQ(loops.report().tiles, 1);
    EXPECT_EQ(loops.report().most_cells, m.cells);
    EXPECT_EQ(loops.report().cut_fraction, 0);
    EXPECT_EQ(loops.report().remainder_fraction, 0);
  }
}

// 7 x 7 cells to a tile, a tile a layer: layers join neighbours only, and a few faces across many layers are the rest.
TEST(FaceLoops, WhatIsTooSparseForBlocksIsTheRest) {
  Mesh m = generate_mesh("mesh:box:7x7x40");
  m = graph(m.cells, [&] {
    std::vector<std::pair<Index, Index>> faces;
    for (std::size_t f = 0; f < m.owner.size(); ++f) faces.emplace_back(m.owner[f], m.neighbour[f]);
    for (Index c = 1; c < 6; ++c) faces.emplace_back(49 * 3 * c, 49 * (39 - 3 * c) + 5);
    return faces;
  }());
  const FaceLoops loops(m, {.strategy = "diagonal", .renumber = "none", .block_cells = 49, .threads = 2});
  EXPECT_EQ(loops.report().orders, (std::vector<int>{0, 1}));
  EXPECT_NEAR(loops.report().remainder_fraction, 5.0 / double(m.owner.size()), 1e-12);
  EXPECT_NEAR(loops.report().cut_fraction, (5.0 + 39 * 49) / double(m.owner.size()), 1e-12);
}

TEST(FaceLoops, StatesOfFacesFromOneSideMayBeLargerThanCachesAre) {
  struct Large {
    Index cell;
    double more[500];
  };
  const Mesh m = generate_mesh("mesh:tetrahedra:8x8x8:random");
  const FaceLoops loops(m, {.strategy = "tiles"});
  auto seen = loops.face_field<Index>();
  loops.for_each_face_from<Large>([](Face f) { return f.owner % 2 == 0; },
                                  [](Index c) {
                                    Large state{};
                                    state.cell = c;
                                    return state;
                                  },
                                  [from = seen.view()](Face f, const Large& state) { from[f.id] = state.cell; });
  std::vector<Index> place(std::size_t(m.cells));
  for (Index k = 0; k < m.cells; ++k) place[std::size_t(loops.cell_order()[std::size_t(k)])] = k;
  const std::vector<Index> got = loops.face_values(seen);
  for (std::size_t f = 0; f < got.size(); ++f) {
    const Index owner = place[std::size_t(m.owner[f])], neighbour = place[std::size_t(m.neighbour[f])];
    ASSERT_EQ(got[f], owner % 2 == 0 ? owner : neighbour) << "face " << f;
  }
}

TEST(FaceLoops, CopiesOutliveTheFirst) {
  const Case on({"tetrahedra", generate_mesh("mesh:tetrahedra:4x4x4")});
  for (const std::string& strategy : strategies) {
    const auto copy = [&] {
      const FaceLoops loops(on.mesh, {.strategy = strategy, .block_cells = 30, .threads = 2});
      return FaceLoops(loops);
    }();
    expect_equal(by_loops(copy, on.whole, HostValues{}), on.whole_due);
  }
}

TEST(FaceLoops, RefuseWhatTheyDoNotKnow) {
  const Mesh m = generate_mesh("mesh:box:4x3x2");
  const auto sentence = [](const Mesh& mesh, const FaceLoopOptions& options) {
    return complaint([&] { FaceLoops(mesh, options); });
  };
  EXPECT_EQ(sentence(m, {}), "");
  EXPECT_EQ(
      sentence(m, {.strategy = "tile"}),
      "unknown face strategy 'tile': did you mean 'tiles'? It is one of slices, diagonal, tiles, gather, colours, "
      "atomics, serial");
  EXPECT_EQ(sentence(m, {.renumber = "bisect"}).substr(0, 50), "unknown renumbering 'bisect': did you mean 'bisect");
  EXPECT_EQ(sentence(m, {.strategy = "serial", .renumber = "zzzzzzzzzzzz"}).substr(0, 8), "unknown ");
  EXPECT_EQ(sentence(m, {.block_cells = -1}),
            "blocks have 1 to 16777216 cells (0: as many as suit the fast memory), not -1");
  EXPECT_EQ(sentence(m, {.block_cells = 16777217}),
            "blocks have 1 to 16777216 cells (0: as many as suit the fast memory), not 16777217");
  EXPECT_EQ(sentence(m, {.block_cells = 16777216}), "");
  EXPECT_EQ(sentence(m, {.orders = -2}), "orders are counted from 0 (-1: those dense enough), not -2");
  EXPECT_EQ(
      sentence(star(20, 2), {.renumber = "bisection"}),
      "the mesh has no geometry, and renumbering by bisection goes by the cells' centres: take growth, rcm or metis");
  EXPECT_EQ(sentence(graph(3, {{0, 1}, {1, 3}}), {}),
            "internal face 1: its neighbour is cell 3, but cells are numbered 0 to 2");
  EXPECT_EQ(sentence(graph(3, {{0, 1}, {2, 2}}), {}), "internal face 1: cell 2 is both its owner and its neighbour");
  EXPECT_EQ(sentence(graph(3, {{0, 1}}, {0, -1}), {}),
            "boundary face 1: its owner is cell -1, but cells are numbered 0 to 2");
  Mesh flat_cell = generate_mesh("mesh:box:2x2x2");
  flat_cell.volume[3] = 0;
  EXPECT_EQ(sentence(flat_cell, {.strategy = "gather"}), "cell 3: its volume is 0, which must be finite and above 0");
}

}  // namespace
}  // namespace krilu::test
