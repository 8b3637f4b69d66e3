// SPDX-License-Identifier: Apache-2.0
// require_valid: what it accepts, each refusal word for word, and that the first fault is named for any number of
// threads. Mesh::bytes against a count by hand.
#include "krilu/mesh.hpp"

#include <functional>
#include <limits>

#include "krilu/error.hpp"
#include "mesh_checks.hpp"

namespace krilu::test {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string sentence(const Mesh& mesh) {
  try {
    require_valid(mesh);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

/// What is said of a box of 2 x 2 x 1 cells, four internal faces and sixteen of the boundary, after one change.
std::string after(const std::function<void(Mesh&)>& change) {
  Mesh m = generate_mesh("mesh:box:2x2x1");
  change(m);
  return sentence(m);
}

void drop_geometry(Mesh& m) {
  m.centre.clear();
  m.volume.clear();
  m.face_centre.clear();
  m.area.clear();
  m.boundary_centre.clear();
  m.boundary_area.clear();
}

TEST(RequireValid, AcceptsMeshesWithAndWithoutGeometryAndEmptyOnes) {
  EXPECT_EQ(after([](Mesh&) {}), "accepted");
  EXPECT_EQ(after(drop_geometry), "accepted");
  EXPECT_EQ(after([](Mesh& m) { m.patches.clear(); }), "accepted");
  EXPECT_EQ(after([](Mesh& m) { std::swap(m.owner[2], m.neighbour[2]); }), "accepted") << "either may be the owner";
  EXPECT_EQ(sentence(Mesh{}), "accepted");
  Mesh alone;
  alone.cells = 1;
  EXPECT_EQ(sentence(alone), "accepted");
}

TEST(RequireValid, RefusesArraysWhoseLengthsDoNotBelongTogether) {
  EXPECT_EQ(after([](Mesh& m) { m.cells = -1; }), "the mesh has -1 cells: there cannot be fewer than 0");
  EXPECT_EQ(after([](Mesh& m) { m.neighbour.pop_back(); }),
            "the mesh has 4 owners and 3 neighbours: each internal face has one of both");
  const auto geometry = [](const std::string& given, const std::string& due) {
    return "the mesh has " + given + " for " + due + ": the six arrays of geometry are all given or all empty";
  };
  EXPECT_EQ(after([](Mesh& m) { m.centre.pop_back(); }), geometry("3 entries in centre", "4 cells"));
  EXPECT_EQ(after([](Mesh& m) { m.volume.clear(); }), geometry("0 entries in volume", "4 cells"));
  EXPECT_EQ(after([](Mesh& m) { m.face_centre.clear(); }), geometry("0 entries in face_centre", "4 internal faces"));
  EXPECT_EQ(after([](Mesh& m) { m.area.pop_back(); }), geometry("3 entries in area", "4 internal faces"));
  EXPECT_EQ(after([](Mesh& m) { m.boundary_centre.pop_back(); }),
            geometry("15 entries in boundary_centre", "16 boundary faces"));
  EXPECT_EQ(after([](Mesh& m) { m.boundary_area.clear(); }),
            geometry("0 entries in boundary_area", "16 boundary faces"));
  EXPECT_EQ(after([](Mesh& m) {
              const Buffer<Vector3> area = m.area;
              drop_geometry(m);
              m.area = area;
            }),
            geometry("0 entries in centre", "4 cells"));
  EXPECT_EQ(after([](Mesh& m) { m.cells = 5; }), geometry("4 entries in centre", "5 cells"));
}

TEST(RequireValid, RefusesPatchesOutsideTheBoundary) {
  EXPECT_EQ(after([](Mesh& m) { m.patches[1].first = 15; }),
            "patch 'xmax' begins at boundary face 15 and has 2: the mesh has 16 boundary faces");
  EXPECT_EQ(after([](Mesh& m) { m.patches[0].first = -1; }),
            "patch 'xmin' begins at boundary face -1 and has 2: the mesh has 16 boundary faces");
  EXPECT_EQ(after([](Mesh& m) { m.patches[5].faces = -4; }),
            "patch 'zmax' begins at boundary face 12 and has -4: the mesh has 16 boundary faces");
  EXPECT_EQ(after([](Mesh& m) { m.patches[5].first = m.patches[5].faces = 2147483647; }),
            "patch 'zmax' begins at boundary face 2147483647 and has 2147483647: the mesh has 16 boundary faces");
}

TEST(RequireValid, RefusesFacesOfNoCellOrOfOneTwice) {
  EXPECT_EQ(after([](Mesh& m) { m.owner[1] = -1; }),
            "internal face 1: its owner is cell -1, but cells are numbered 0 to 3");
  EXPECT_EQ(after([](Mesh& m) { m.neighbour[3] = 4; }),
            "internal face 3: its neighbour is cell 4, but cells are numbered 0 to 3");
  EXPECT_EQ(after([](Mesh& m) { m.neighbour[2] = m.owner[2]; }),
            "internal face 2: cell 1 is both its owner and its neighbour");
  EXPECT_EQ(after([](Mesh& m) { m.boundary[15] = 4; }),
            "boundary face 15: its owner is cell 4, but cells are numbered 0 to 3");
  EXPECT_EQ(after([](Mesh& m) {
              drop_geometry(m);
              m.owner[0] = 2147483647;
            }),
            "internal face 0: its owner is cell 2147483647, but cells are numbered 0 to 3");
}

TEST(RequireValid, RefusesGeometryThatIsNotFiniteAndVolumesThatAreNotPositive) {
  EXPECT_EQ(after([](Mesh& m) { m.area[2].y = nan; }), "internal face 2: its area is (0 nan 0), which is not finite");
  EXPECT_EQ(after([](Mesh& m) { m.face_centre[0].z = infinite; }),
            "internal face 0: its centre is (0.5 0.25 inf), which is not finite");
  EXPECT_EQ(after([](Mesh& m) { m.boundary_area[3].x = -infinite; }),
            "boundary face 3: its area is (-inf 0 0), which is not finite");
  EXPECT_EQ(after([](Mesh& m) { m.boundary_centre[0].x = nan; }),
            "boundary face 0: its centre is (nan 0.25 0.25), which is not finite");
  EXPECT_EQ(after([](Mesh& m) { m.centre[3].x = nan; }), "cell 3: its centre is (nan 0.75 0.25), which is not finite");
  EXPECT_EQ(after([](Mesh& m) { m.volume[1] = 0; }), "cell 1: its volume is 0, which must be finite and above 0");
  EXPECT_EQ(after([](Mesh& m) { m.volume[1] = -2; }), "cell 1: its volume is -2, which must be finite and above 0");
  EXPECT_EQ(after([](Mesh& m) { m.volume[1] = nan; }), "cell 1: its volume is nan, which must be finite and above 0");
  EXPECT_EQ(after([](Mesh& m) { m.volume[1] = infinite; }),
            "cell 1: its volume is inf, which must be finite and above 0");
}

TEST(RequireValid, LooksAtTheGeometryOfFacesOnlyWhereAskedTo) {
  Mesh m = generate_mesh("mesh:box:2x2x1");
  m.area[2].y = m.face_centre[0].z = m.boundary_area[3].x = m.boundary_centre[0].x = nan;
  EXPECT_THROW(require_valid(m), Error);
  EXPECT_NO_THROW(require_valid(m, false));
  for (const auto& spoil : {+[](Mesh& w) { w.centre[3].x = nan; }, +[](Mesh& w) { w.volume[1] = 0; },
                            +[](Mesh& w) { w.owner[1] = -1; }, +[](Mesh& w) { w.boundary[15] = 4; }}) {
    Mesh wrong = m;
    spoil(wrong);
    EXPECT_THROW(require_valid(wrong, false), Error);
  }
}

TEST(RequireValid, NamesTheFirstFaultForAnyNumberOfThreads) {
  Mesh m = generate_mesh("mesh:box:30x30x30");
  for (std::size_t f : {9000, 30000, 70000}) m.owner[f] = -7;
  for (int threads : {1, 3, 8}) {
    const Threads set(threads);
    EXPECT_EQ(sentence(m), "internal face 9000: its owner is cell -7, but cells are numbered 0 to 26999");
  }
}

TEST(Mesh, BytesAreThoseOfItsArraysAndPatches) {
  const Mesh m = generate_mesh("mesh:box:2x1x1");
  // One internal face and ten of the boundary; patches have names and types of 4 and 5 letters.
  EXPECT_EQ(m.bytes(), 1 * (2 * 4 + 2 * 24) + 2 * (24 + 8) + 10 * (4 + 2 * 24) + 6 * (sizeof(Patch) + 4 + 5));
  EXPECT_EQ(Mesh{}.bytes(), 0u);
}

}  // namespace
}  // namespace krilu::test
