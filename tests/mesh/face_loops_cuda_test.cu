// SPDX-License-Identifier: Apache-2.0
// Loops over faces on a GPU, against plain loops over the mesh on the host: the meshes, fields and checks are those of
// face_loops_test.cpp. And what only a GPU has: loops recorded into the body of a repeat_until, with the second stream
// of strategy diagonal; memory between kernels that is taken while recording; tiles too large for it. Suite
// FaceLoopsSmall is what compute-sanitizer gets through.
#include "exec/cuda.cuh"
#include "face_meshes.hpp"
#include "krilu/face_loops.cuh"
#include "support/gpu.cuh"

namespace krilu::test {

using exec::Cuda;

/// Values of boundary faces on the GPU.
struct CudaValues {
  const Cuda* space;
  template <class T>
  exec::Array<T> operator()(const std::vector<T>& values) const {
    if (values.empty()) return space->allocate<T>(0);
    return space->brought(values);
  }
};

/// x after so many steps x <- the whole part of A x + grad x, modulo 64, which makes every sum exact.
struct Stepped {
  std::vector<double> x;
  int steps = 0;
  long waited = 0;  // times that the host did, for all steps
};

Stepped stepped(const Cuda& space, const CudaFaceLoops& loops, const Fields& d, int times) {
  auto diagonal = loops.cell_field(d.diagonal), x = loops.cell_field(d.x), volume = loops.cell_field(d.volume);
  auto upper = loops.face_field(d.upper), weight = loops.face_field(d.weight);
  auto area = loops.face_field(d.area);
  auto y = loops.cell_field<double>();
  auto grad = loops.cell_field<Vector3>();
  const auto state = space.allocate<int>(2);
  const auto stop = state.scalar(0), count = state.scalar(1);
  const auto xv = x.view(), yv = y.view();
  const auto gv = grad.view();
  space.once(KRILU_FN() {
    count() = 0;
    stop() = times == 0;
  });
  Stepped result;
  const long before = space.synchronisations();
  space.repeat_until(stop, [&] {
    multiply_symmetric(loops, diagonal.view(), upper.view(), x.view(), y.view());
    gauss_gradient(loops, x.view(), weight.view(), area.view(), volume.view(), grad.view());
    loops.for_each_cell(KRILU_FN(Index c) { xv[c] = fmod(trunc(yv[c] + gv[c].x - gv[c].y + gv[c].z), 64.0); });
    space.once(KRILU_FN() { stop() = ++count() == times; });
  });
  result.waited = space.synchronisations() - before;
  std::vector<int> out(2);
  space.copy_out(out.data(), state, 2);
  result.steps = out[1];
  result.x = loops.cell_values(x);
  return result;
}

std::vector<double> stepped_plainly(const Mesh& m, Fields d, int times) {
  for (int k = 0; k < times; ++k) {
    const Results r = plain(m, d);
    for (std::size_t c = 0; c < d.x.size(); ++c)
      d.x[c] = std::fmod(std::trunc(r.symmetric[c] + r.gradient[c].x - r.gradient[c].y + r.gradient[c].z), 64.0);
  }
  return d.x;
}

/// More of a cell than tiles stage.
struct LargeState {
  double x;
  Vector3 gradient, centre;
};

/// Sums over faces of fields that the loops' own order fills: states of 56 bytes, which tiles do not stage.
std::vector<double> sums_of_large_states(const CudaFaceLoops& loops, const Fields& d) {
  auto x = loops.cell_field(d.x);
  auto gradient = loops.cell_field(d.gradient), centre = loops.cell_field(d.centre);
  auto out = loops.cell_field(std::vector<double>(d.x.size(), 1e300));
  const auto xv = x.view(), to = out.view();
  const auto gv = gradient.view(), cv = centre.view();
  loops.sum_over_faces<LargeState, double>(
      KRILU_FN(Index c) {
        return LargeState{xv[c], gv[c], cv[c]};
      },
      KRILU_FN(Face, const LargeState& o, const LargeState& n) {
        return Both<double>{n.x + dot(n.gradient, o.centre), o.x - dot(o.gradient, n.centre)};
      },
      KRILU_FN(Index c, const LargeState& own, double sum) { to[c] = own.x + own.centre.y + sum; });
  return loops.cell_values(out);
}

std::vector<double> sums_of_large_states(const Mesh& m, const Fields& d) {
  std::vector<double> out(d.x.size());
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = d.x[c] + d.centre[c].y;
  for (std::size_t f = 0; f < m.owner.size(); ++f) {
    const auto o = std::size_t(m.owner[f]), n = std::size_t(m.neighbour[f]);
    out[o] += d.x[n] + dot(d.gradient[n], d.centre[o]);
    out[n] += d.x[o] - dot(d.gradient[o], d.centre[n]);
  }
  return out;
}

/// Sums of 160 bytes a cell, more than shared memory has room for: all values added up.
struct Large {
  double v[20];
  KRILU_INLINE Large& operator+=(const Large& o) {
    for (int k = 0; k < 20; ++k) v[k] += o.v[k];
    return *this;
  }
};

std::vector<double> sums_of_large_sums(const CudaFaceLoops& loops, const Fields& d) {
  auto x = loops.cell_field(d.x), out = loops.cell_field<double>();
  const auto xv = x.view(), to = out.view();
  loops.sum_over_faces<double, Large>(
      KRILU_FN(Index c) { return xv[c]; },
      KRILU_FN(Face, double o, double n) {
        Both<Large> both{};
        for (int k = 0; k < 20; ++k) {
          both.owner.v[k] = k * n;
          both.neighbour.v[k] = o - k;
        }
        return both;
      },
      KRILU_FN(Index c, double, const Large& sum) {
        to[c] = 0;
        for (int k = 0; k < 20; ++k) to[c] += sum.v[k];
      });
  return loops.cell_values(out);
}

namespace {

const std::vector<std::string> face_strategies{"slices",  "diagonal", "tiles",  "gather",
                                               "colours", "atomics",  "serial", "auto"};

const std::vector<Case>& small_meshes_there() {
  static const std::vector<Case> cases = cases_of(small_meshes());
  return cases;
}
const std::vector<Case>& large_meshes_there() {
  static const std::vector<Case> cases = cases_of(large_meshes());
  return cases;
}

std::string described(const Case& on, const FaceLoopOptions& o) {
  return on.name + ": strategy " + o.strategy + ", renumber " + o.renumber + ", blocks of " +
         std::to_string(o.block_cells) + ", orders " + std::to_string(o.orders);
}

void expect_right(const Cuda& space, const Case& on, const FaceLoopOptions& options) {
  SCOPED_TRACE(described(on, options));
  const CudaFaceLoops loops(space, on.mesh, options);
  expect_right(loops, on, CudaValues{&space});
  EXPECT_EQ(sums_of_large_states(loops, on.whole), sums_of_large_states(on.mesh, on.whole));
  if (options.strategy != "auto") {
    EXPECT_EQ(loops.report().strategy, options.strategy);
  }
  EXPECT_NO_THROW(loops.synchronise());
}

TEST(FaceLoops, GiveWhatPlainLoopsGiveOnSmallMeshes) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  for (const std::string& strategy : face_strategies)
    for (const Case& on : small_meshes_there())
      for (const char* renumber : {"none", "growth"})
        for (Index block : {7, 40, 0}) {
          // Blocks matter to these two; for the others they are but an order of cells.
          if (block == 0 && (strategy != "tiles" && strategy != "diagonal")) continue;
          if (strategy == "auto" && block == 7) continue;
          expect_right(space, on, {.strategy = strategy, .renumber = renumber, .block_cells = block});
          if (HasFatalFailure()) return;
        }
}

TEST(FaceLoops, GiveWhatPlainLoopsGiveOnLargerMeshes) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  for (const std::string& strategy : face_strategies)
    for (const Case& on : large_meshes_there()) {
      if (strategy == "serial" && on.mesh.faces() > 30000) continue;  // one thread of a GPU is slow
      for (const auto& [renumber, block] :
           {std::pair<const char*, Index>("auto", 0), {"none", 300}, {"growth", 512}, {"rcm", 200}}) {
        if (strategy == "serial" && block != 0) continue;
        expect_right(space, on, {.strategy = strategy, .renumber = renumber, .block_cells = block});
        if (HasFatalFailure()) return;
      }
    }
}

TEST(FaceLoops, GiveWhatPlainLoopsGiveWhereCellsStandFarApart) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  const Case on({"boxes at random", generate_mesh("mesh:box:50x45x40:random")});
  for (const char* strategy : {"slices", "diagonal", "tiles", "gather", "colours"})
    expect_right(space, on, {.strategy = strategy, .renumber = "none", .block_cells = 250});
}

TEST(FaceLoops, DiagonalsAreAsAskedFor) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  for (const Case& on : small_meshes_there())
    for (int orders : {0, 1, 100}) {
      expect_right(space, on, {.strategy = "diagonal", .renumber = "none", .block_cells = 20, .orders = orders});
      if (HasFatalFailure()) return;
    }
}

TEST(FaceLoops, HaveTheSameBitsOnEveryRun) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  const CudaValues there{&space};
  for (const Case& on : large_meshes_there())
    for (const char* strategy : {"slices", "diagonal", "tiles", "gather", "colours"}) {
      const FaceLoopOptions options{.strategy = strategy, .block_cells = 500};
      SCOPED_TRACE(described(on, options));
      Results first;
      for (int analysis = 0; analysis < 2; ++analysis) {
        const CudaFaceLoops loops(space, on.mesh, options);
        if (analysis == 0) first = by_loops(loops, on.real, there);
        for (int run = 0; run < 5; ++run) ASSERT_TRUE(same_bits(by_loops(loops, on.real, there), first));
      }
    }
}

TEST(FaceLoops, RunInsideARecordedLoop) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  for (const std::string& strategy : face_strategies)
    for (const Case& on : large_meshes_there()) {
      if (on.name == "star, hub last" || (strategy == "serial" && on.mesh.faces() > 30000)) continue;
      const FaceLoopOptions options{.strategy = strategy, .block_cells = 350};
      SCOPED_TRACE(described(on, options));
      const CudaFaceLoops loops(space, on.mesh, options);
      by_loops(loops, on.whole, CudaValues{&space});  // what loops hold between kernels is there from now on
      for (int times : {0, 1, 7}) {
        const Stepped got = stepped(space, loops, on.whole, times);
        EXPECT_EQ(got.steps, times);
        EXPECT_EQ(got.waited, 0);
        ASSERT_EQ(got.x, stepped_plainly(on.mesh, on.whole, times)) << times << " steps";
      }
    }
}

// The first sum of a kind takes memory between its kernels: here while a graph is being recorded.
TEST(FaceLoops, MayRunInsideARecordedLoopFirst) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  for (const std::string& strategy : face_strategies)
    for (const Case& on : small_meshes_there()) {
      const FaceLoopOptions options{.strategy = strategy, .renumber = "none", .block_cells = 20, .orders = 1};
      SCOPED_TRACE(described(on, options));
      const CudaFaceLoops loops(space, on.mesh, options);
      const Stepped got = stepped(space, loops, on.whole, 3);
      EXPECT_EQ(got.steps, 3);
      ASSERT_EQ(got.x, stepped_plainly(on.mesh, on.whole, 3));
    }
}

// Pairs of tiles on one stream and what is too sparse for them on another, joined before order 0: in a graph too, again
// and again.
TEST(FaceLoops, DiagonalsUseTheirSecondStreamInsideARecordedLoop) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  const Case on({"random pairs", random_pairs(2500, 30000, 8)});
  for (int orders : {-1, 0, 2}) {
    const CudaFaceLoops loops(space, on.mesh,
                              {.strategy = "diagonal", .renumber = "none", .block_cells = 256, .orders = orders});
    EXPECT_EQ(loops.plan().classes > 0, orders != 0);
    EXPECT_EQ(loops.plan().rows > 0, orders >= 0);
    by_loops(loops, on.whole, CudaValues{&space});
    const std::vector<double> due = stepped_plainly(on.mesh, on.whole, 25);
    for (int run = 0; run < 3; ++run) {
      const Stepped got = stepped(space, loops, on.whole, 25);
      EXPECT_EQ(got.steps, 25);
      EXPECT_EQ(got.waited, 0);
      ASSERT_EQ(got.x, due) << "orders " << orders << ", run " << run;
    }
  }
}

TEST(FaceLoops, SeveralShareASpaceAndCopiesOutliveTheFirst) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  const Case on({"tetrahedra", generate_mesh("mesh:tetrahedra:6x6x6:random")});
  for (const std::string& strategy : face_strategies) {
    const CudaFaceLoops other(space, on.mesh, {.strategy = "colours"});
    const auto copy = [&] {
      const CudaFaceLoops loops(space, on.mesh, {.strategy = strategy, .block_cells = 100});
      return CudaFaceLoops(loops);
    }();
    expect_equal(by_loops(copy, on.whole, CudaValues{&space}), on.whole_due);
    expect_equal(by_loops(other, on.whole, CudaValues{&space}), on.whole_due);
  }
}

TEST(FaceLoops, RefuseWhatTheyCannotDo) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  const Mesh m = generate_mesh("mesh:box:4x3x2");  // 24 cells, 46 faces
  EXPECT_EQ(
      refusal([&] { CudaFaceLoops(space, m, {.strategy = "tile"}); }),
      "unknown face strategy 'tile': did you mean 'tiles'? It is one of slices, diagonal, tiles, gather, colours, "
      "atomics, serial");
  EXPECT_EQ(refusal([&] { CudaFaceLoops(space, m, {.block_cells = -1}); }),
            "blocks have 1 to 512 cells (0: as many as suit the fast memory), not -1");
  EXPECT_EQ(refusal([&] { CudaFaceLoops(space, m, {.block_cells = 513}); }),
            "blocks have 1 to 512 cells (0: as many as suit the fast memory), not 513");
  EXPECT_NO_THROW(CudaFaceLoops(space, m, {.strategy = "slices", .block_cells = 513}));
  EXPECT_EQ(refusal([&] {
              CudaFaceLoops(space, graph(3, {{0, 3}}), {});
            }),
            "internal face 0: its neighbour is cell 3, but cells are numbered 0 to 2");
  refusal([&] { CudaFaceLoops(m, {}, 1000); });
  const CudaFaceLoops loops(m);
  const std::vector<double> cells(24), faces(46);
  EXPECT_EQ(refusal([&] { loops.cell_field(faces); }), "a field of 46 values was given where the mesh has 24");
  EXPECT_EQ(refusal([&] { loops.face_field(cells); }), "a field of 24 values was given where the mesh has 46");
  EXPECT_EQ(refusal([&] { loops.cell_values(loops.face_field<double>()); }),
            "a field of 46 values was given where the mesh has 24");
  // And goes on as if nothing had been.
  expect_right(space, Case({"boxes", generate_mesh("mesh:box:4x3x2")}), {.strategy = "tiles", .block_cells = 8});
}

TEST(FaceLoops, SumsMayBeLargerThanSharedMemoryHas) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  const Case on({"boxes", generate_mesh("mesh:box:16x16x16")});
  const auto by = [&](const char* strategy, Index cells_each) {
    return sums_of_large_sums(
        CudaFaceLoops(space, on.mesh, {.strategy = strategy, .renumber = "none", .block_cells = cells_each}), on.whole);
  };
  const std::vector<double> due = by("gather", 0);
  for (const char* strategy : {"tiles", "diagonal", "slices"})
    for (Index cells_each : {512, 50}) EXPECT_EQ(by(strategy, cells_each), due) << strategy << ", " << cells_each;
}

/// A few small meshes, each strategy: compute-sanitizer runs a thousand times slower than the GPU.
TEST(FaceLoopsSmall, GiveWhatPlainLoopsGive) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  std::vector<NamedMesh> meshes;
  meshes.push_back({"tetrahedra", generate_mesh("mesh:tetrahedra:4x3x3:random:7")});
  meshes.push_back({"star", star(300, 150)});
  meshes.push_back({"two faces between two cells, both ways", graph(3, {{0, 1}, {1, 0}, {2, 1}}, {2})});
  for (const Case& on : cases_of(std::move(meshes)))
    for (const char* strategy : {"slices", "diagonal", "tiles", "gather", "colours", "atomics", "serial"})
      expect_right(space, on, {.strategy = strategy, .renumber = "growth", .block_cells = 70, .orders = 1});
}

TEST(FaceLoopsSmall, RunInsideARecordedLoop) {
  KRILU_REQUIRE_GPU();
  const Cuda space;
  const Case on({"random pairs", random_pairs(150, 600, 5)});
  for (const char* strategy : {"slices", "diagonal", "tiles"}) {
    const CudaFaceLoops loops(space, on.mesh,
                              {.strategy = strategy, .renumber = "none", .block_cells = 40, .orders = 1});
    by_loops(loops, on.whole, CudaValues{&space});
    const Stepped got = stepped(space, loops, on.whole, 2);
    EXPECT_EQ(got.steps, 2);
    EXPECT_EQ(got.x, stepped_plainly(on.mesh, on.whole, 2)) << strategy;
  }
}

}  // namespace
}  // namespace krilu::test
