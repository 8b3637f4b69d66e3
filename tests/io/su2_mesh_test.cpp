// SPDX-License-Identifier: Apache-2.0
// SU2 meshes: tiny ones worked out by hand, in the forms that real files have; zones; what is passed over; every
// refusal with its file and line; files cut short anywhere and with bytes changed at random; and real meshes, whose
// outsides close and whose markers cover them.
#include "io/su2_mesh.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "krilu/error.hpp"
#include "krilu/mesh.hpp"
#include "support/refusal.hpp"
#include "support/support.hpp"
#include "support/texts.hpp"

namespace {

using krilu::Index;
using krilu::Mesh;
using krilu::Patch;
using krilu::Vector3;
using krilu::io::parse_su2;
using krilu::test::expect_words;
using krilu::test::refusal;
using krilu::test::with;

Mesh mesh_of(const std::string& text) {
  return krilu::mesh::to_mesh(krilu::exec::Host(1), parse_su2(text, "mesh.su2"));
}

void expect_near(const Vector3& a, const Vector3& b) {
  EXPECT_NEAR(a.x, b.x, 1e-14);
  EXPECT_NEAR(a.y, b.y, 1e-14);
  EXPECT_NEAR(a.z, b.z, 1e-14);
}

void expect_patches(const Mesh& m, const std::vector<Patch>& expected) {
  ASSERT_EQ(m.patches.size(), expected.size());
  for (std::size_t p = 0; p < expected.size(); ++p) {
    EXPECT_EQ(m.patches[p].name, expected[p].name);
    EXPECT_EQ(m.patches[p].type, expected[p].type) << expected[p].name;
    EXPECT_EQ(m.patches[p].first, expected[p].first) << expected[p].name;
    EXPECT_EQ(m.patches[p].faces, expected[p].faces) << expected[p].name;
  }
}

std::vector<Index> list(const krilu::Buffer<Index>& b) { return {b.begin(), b.end()}; }

/// The unit square cut along its diagonal from the origin, the second triangle clockwise.
const std::string two_triangles =
    "% two triangles\n"    // 1
    "NDIME= 2\n"           // 2
    "NELEM= 2\n"           // 3
    "5 0 1 2 0\n"          // 4
    "5 0 3 2 1\n"          // 5
    "NPOIN= 4\n"           // 6
    "0 0 0\n"              // 7
    "1 0 1\n"              // 8
    "1 1 2\n"              // 9
    "0 1 3\n"              // 10
    "NMARK= 2\n"           // 11
    "MARKER_TAG= lower\n"  // 12
    "MARKER_ELEMS= 2\n"    // 13
    "3 0 1\n"              // 14
    "3 1 2\n"              // 15
    "MARKER_TAG= upper\n"  // 16
    "MARKER_ELEMS= 1\n"    // 17
    "3 2 3\n";             // 18

TEST(Su2Mesh, TwoTriangles) {
  const Mesh m = mesh_of(two_triangles);
  ASSERT_EQ(m.cells, 2);
  EXPECT_EQ(list(m.owner), (std::vector<Index>{0}));
  EXPECT_EQ(list(m.neighbour), (std::vector<Index>{1}));
  EXPECT_NEAR(m.volume[0], 0.5, 1e-15);
  EXPECT_NEAR(m.volume[1], 0.5, 1e-15);
  expect_near(m.centre[0], {2.0 / 3, 1.0 / 3, 0.5});
  expect_near(m.centre[1], {1.0 / 3, 2.0 / 3, 0.5});
  expect_near(m.area[0], {-1, 1, 0});
  expect_near(m.face_centre[0], {0.5, 0.5, 0.5});
  expect_patches(m, {{"lower", "patch", 0, 2},
                     {"upper", "patch", 2, 1},
                     {"unmarked", "patch", 3, 1},
                     {"back", "empty", 4, 2},
                     {"front", "empty", 6, 2}});
  EXPECT_EQ(list(m.boundary), (std::vector<Index>{0, 0, 1, 1, 0, 1, 0, 1}));
  expect_near(m.boundary_area[0], {0, -1, 0});
  expect_near(m.boundary_area[1], {1, 0, 0});
  expect_near(m.boundary_area[2], {0, 1, 0});
  expect_near(m.boundary_area[3], {-1, 0, 0});
  expect_near(m.boundary_area[4], {0, 0, -0.5});
  expect_near(m.boundary_area[7], {0, 0, 0.5});
}

/// What real files do: carriage returns, tabs, no blank or several round '=', points first and with a third coordinate,
/// two counts, comments behind fields, no indices, and sections that say nothing of the mesh.
TEST(Su2Mesh, TheSameInOtherForms) {
  const std::string other =
      "\r\nNDIME   =2 % plane\r\nNPOIN=4\t4\r\n0\t0\t9.5\t0\t0\r\n1.0e+00 0. 9.5 1 1\r\n\r\n+1 1 9.5 2 2 % corner\r\n"
      "0.0 1.0E0 9.5 3 3\r\nNELEM= 2\r\n% elements\r\n5\t0\t1\t2\t\r\n  5 0 3 2\r\nNPERIODIC= 1\r\nPERIODIC_INDEX= "
      "0\r\n"
      "0 0 0\r\n0 0 0\r\nNMARK=2\r\nMARKER_TAG=lower \r\nMARKER_ELEMS=2\r\n3\t1\t0\t\r\n3 1 2 "
      "0\r\nMARKER_TAG\t=\tupper\r\n"
      "MARKER_ELEMS= 1\r\n3 3 2\r\nFFD_NBOX= 1\r\nFFD_TAG= BOX\r\n1 2 3 4 5 6\r\nz_m 1978 0.5 0.5";
  const Mesh a = mesh_of(two_triangles), b = mesh_of(other);
  EXPECT_EQ(list(a.owner), list(b.owner));
  EXPECT_EQ(list(a.neighbour), list(b.neighbour));
  EXPECT_EQ(list(a.boundary), list(b.boundary));
  for (std::size_t c = 0; c < 2; ++c) expect_near(b.centre[c], a.centre[c]);
  expect_patches(b, a.patches);
}

TEST(Su2Mesh, QuadrilateralAndTriangle) {
  const Mesh m = mesh_of(
      "NDIME= 2\nNELEM= 2\n9 0 1 2 3 0\n5 1 4 2 1\nNPOIN= 5\n0 0\n2 0\n2 1\n0 1\n5 0\nNMARK= 1\nMARKER_TAG= all\n"
      "MARKER_ELEMS= 5\n3 0 1\n3 1 4\n3 4 2\n3 2 3\n3 3 0\n");
  EXPECT_NEAR(m.volume[0], 2, 1e-15);
  EXPECT_NEAR(m.volume[1], 1.5, 1e-15);
  expect_near(m.centre[0], {1, 0.5, 0.5});
  expect_near(m.centre[1], {3, 1.0 / 3, 0.5});
  ASSERT_EQ(m.faces(), 1);
  expect_near(m.area[0], {1, 0, 0});
  expect_patches(m, {{"all", "patch", 0, 5}, {"back", "empty", 5, 2}, {"front", "empty", 7, 2}});
  EXPECT_EQ(list(m.boundary), (std::vector<Index>{0, 0, 0, 1, 1, 0, 1, 0, 1}));
}

const std::string one_tetrahedron = "NDIME= 3\nNELEM= 1\n10 0 1 2 3 0\nNPOIN= 4\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n";

TEST(Su2Mesh, OneTetrahedronWithoutMarkers) {
  const Mesh m = mesh_of(one_tetrahedron);
  ASSERT_EQ(m.cells, 1);
  EXPECT_NEAR(m.volume[0], 1.0 / 6, 1e-16);
  expect_near(m.centre[0], {0.25, 0.25, 0.25});
  EXPECT_EQ(m.faces(), 0);
  expect_patches(m, {{"unmarked", "patch", 0, 4}});
}

TEST(Su2Mesh, TwoTetrahedraTurnedDifferently) {
  const Mesh m = mesh_of(
      "NDIME= 3\nNELEM= 2\n10 4 1 2 3\n10 0 1 2 3\nNPOIN= 5\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 1 1\nNMARK= 1\n"
      "MARKER_TAG= x\nMARKER_ELEMS= 1\n5 3 2 0\n");
  EXPECT_NEAR(m.volume[0], 1.0 / 3, 1e-15);
  EXPECT_NEAR(m.volume[1], 1.0 / 6, 1e-15);
  ASSERT_EQ(m.faces(), 1);
  EXPECT_EQ(m.owner[0], 0);
  EXPECT_EQ(m.neighbour[0], 1);
  expect_near(m.area[0], {-0.5, -0.5, -0.5});
  expect_near(m.face_centre[0], {1.0 / 3, 1.0 / 3, 1.0 / 3});
  expect_patches(m, {{"x", "patch", 0, 1}, {"unmarked", "patch", 1, 5}});
  EXPECT_EQ(m.boundary[0], 1);
  expect_near(m.boundary_area[0], {-0.5, 0, 0});
}

TEST(Su2Mesh, HexahedronPyramidAndPrism) {
  // The unit cube, a pyramid of height 3 on it, and beside x = 1 a prism with edges of length 1 in y.
  const Mesh m = mesh_of(
      "NDIME= 3\nNELEM= 3\n12 0 1 2 3 4 5 6 7 0\n14 4 5 6 7 8 1\n13 1 9 5 2 10 6 2\nNPOIN= 11\n0 0 0\n1 0 0\n1 1 0\n"
      "0 1 0\n0 0 1\n1 0 1\n1 1 1\n0 1 1\n0.5 0.5 4\n3 0 0\n3 1 0\nNMARK= 2\nMARKER_TAG= bottom\nMARKER_ELEMS= 2\n"
      "9 0 1 2 3\n9 1 9 10 2\nMARKER_TAG= ends\nMARKER_ELEMS= 2\n5 1 9 5\n5 2 10 6\n");
  const std::vector<double> volumes{1, 1, 1};
  for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(m.volume[c], volumes[c], 1e-15);
  EXPECT_EQ(list(m.owner), (std::vector<Index>{0, 0}));
  EXPECT_EQ(list(m.neighbour), (std::vector<Index>{1, 2}));
  expect_near(m.area[0], {0, 0, 1});
  expect_near(m.area[1], {1, 0, 0});
  expect_near(m.centre[1], {0.5, 0.5, 1.75});
  expect_near(m.centre[2], {5.0 / 3, 0.5, 1.0 / 3});
  expect_patches(m, {{"bottom", "patch", 0, 2}, {"ends", "patch", 2, 2}, {"unmarked", "patch", 4, 8}});
  EXPECT_EQ(list(m.boundary), (std::vector<Index>{0, 2, 2, 2, 0, 0, 0, 1, 1, 1, 1, 2}));
  expect_near(m.boundary_area[1], {0, 0, -2});
}

const std::string two_zones = "NDIME= 3\nNZONE= 2\nIZONE= 1\n" + one_tetrahedron +
                              "NMARK= 1\nMARKER_TAG= wall\nMARKER_ELEMS= 1\n5 0 1 2\nIZONE= 2\n" +
                              with(one_tetrahedron, "0 0 1\n", "0 0 3\n") +
                              "NMARK= 1\nMARKER_TAG= wall\nMARKER_ELEMS= 1\n5 0 1 2\n";

TEST(Su2Mesh, ZonesFollowOneAnother) {
  const Mesh m = mesh_of(two_zones);
  ASSERT_EQ(m.cells, 2);
  EXPECT_EQ(m.faces(), 0);
  EXPECT_NEAR(m.volume[0], 1.0 / 6, 1e-15);
  EXPECT_NEAR(m.volume[1], 0.5, 1e-15);
  expect_patches(m, {{"wall", "patch", 0, 2}, {"unmarked", "patch", 2, 6}});
  EXPECT_EQ(list(m.boundary), (std::vector<Index>{0, 1, 0, 0, 0, 1, 1, 1}));
}

void expect_refused(const std::string& text, int line, const std::vector<std::string>& words) {
  const std::string message = refusal([&] { parse_su2(text, "mesh.su2"); });
  EXPECT_EQ(message.find("mesh.su2:" + std::to_string(line) + ": "), 0u) << line << "\n" << message;
  expect_words(message, words);
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(Su2Mesh, RefusesKeywords) {
  const std::string& t = two_triangles;
  expect_refused("", 1, {"the file ends here and has no NELEM"});
  expect_refused("NDIME= 2\n", 2, {"has no NELEM"});
  expect_refused(with(t, "NDIME= 2\n", ""), 2, {"NDIME must stand before NELEM"});
  expect_refused(with(t, "NDIME= 2", "NDIME= 4"), 2, {"NDIME is 4"});
  expect_refused(with(t, "NDIME= 2", "NDIME= 2\nNDIME= 3"), 3, {"NDIME is 3 here and 2 above"});
  expect_refused(with(t, "NELEM= 2", "NELEM= two"), 3, {"NELEM is 'two'", "whole number from 0"});
  expect_refused(with(t, "NELEM= 2", "NELEM= -2"), 3, {"NELEM is '-2'"});
  expect_refused(with(t, "NELEM= 2", "NELEM="), 3, {"NELEM is ''"});
  expect_refused(with(t, "NELEM= 2", "NELEM= 2 2 2"), 3, {"NELEM is '2 2 2'"});
  expect_refused(with(t, "NELEM= 2", "NELEM= 2147483648"), 3, {"krilu counts to 2147483647"});
  expect_refused(with(t, "NELEM= 2", "NELEM= 0"), 3, {"the mesh has no elements"});
  expect_refused(with(t, "NELEM= 2", "NELEM= 1"), 5, {"'5 0 3 2 1' stands where a keyword belongs"});
  expect_refused(with(t, "NELEM= 2", "NELEM= 3"), 6, {"'NPOIN= 4' stands after 2 of the 3 lines that NELEM says"});
  expect_refused(with(t, "NPOIN= 4", "NPOIN= 4\n0 0 0\nNPOIN= 4"), 8, {"'NPOIN= 4' stands after 1 of the 4"});
  expect_refused(t + "NPOIN= 4\n0 0\n0 0\n0 0\n0 0\n", 19, {"NPOIN stands here a second time"});
  expect_refused(t + "NELEM= 1\n5 0 1 2\n", 19, {"NELEM stands here a second time"});
  expect_refused(with(t, "MARKER_ELEMS= 1", "MARKER_ELEMS= 2000000000"), 19, {"ends after 1 of the 2000000000 lines"});
  expect_refused(with(t, "NMARK= 2", "NMARK= 3"), 11, {"NMARK is 3, and 2 markers follow"});
  expect_refused(with(t, "MARKER_TAG= upper\n", ""), 16, {"MARKER_ELEMS stands without a MARKER_TAG"});
  expect_refused(with(t, "MARKER_TAG= upper", "MARKER_TAG="), 16, {"names no marker"});
  expect_refused(t + "MARKER_TAG= more\n", 20, {"the marker 'more' above has no MARKER_ELEMS"});
  expect_refused(with(t, "NPOIN= 4", "MPOIN= 4"), 19, {"the file ends here and has no NPOIN"});
  expect_refused(with(t, "NPOIN= 4", "NPOIN= 0"), 6, {"NPOIN is 0"});
  for (const std::string name : {"front", "back", "unmarked"})
    expect_refused(with(t, "upper", name), 17, {"the marker '" + name + "' has the name of a patch that is added"});
}

TEST(Su2Mesh, RefusesLines) {
  const std::string& t = two_triangles;
  expect_refused(with(t, "5 0 1 2 0", "x 0 1 2 0"), 4, {"'x 0 1 2 0' is no element"});
  expect_refused(with(t, "5 0 1 2 0", "10 0 1 2 3"), 4, {"VTK type 10", "5 (triangle) or 9", "in 2 dimensions"});
  expect_refused(with(t, "5 0 1 2 0", "5 0 1"), 4, {"has 3 nodes", "this one has 2"});
  expect_refused(with(t, "5 0 1 2 0", "5 0 1 -2"), 4, {"whole numbers from 0"});
  expect_refused(with(t, "5 0 1 2 0", "5 0 1 2.5"), 4, {"this one has 2"});
  expect_refused(with(t, "5 0 1 2 0", "5 0 1 1"), 4, {"names node 1 twice"});
  expect_refused(with(t, "5 0 1 2 0", "5 0 1 2 0 0"), 4, {"perhaps an index; this one goes on"});
  expect_refused(with(t, "5 0 3 2 1", "% a comment\n\n5 0 4 2 1"), 7, {"there is no node 4: NPOIN gives nodes 0 to 3"});
  expect_refused(with(t, "1 0 1\n", "1 zero 1\n"), 8, {"'1 zero 1' is no point"});
  expect_refused(with(t, "1 0 1\n", "1\n"), 8, {"'1' is no point: it has 2 coordinates"});
  expect_refused(with(t, "1 0 1\n", "1 nan 1\n"), 8, {"finite"});
  expect_refused(with(t, "1 0 1\n", "1 0 1e999 1 1 1\n"), 8, {"2 coordinates and perhaps an index"});
  expect_refused(with(t, "1 0 1\n", "1 0 one\n"), 8, {"perhaps an index"});
  expect_refused(with(t, "3 0 1\n", "1 0\n"), 14, {"a face of a marker has the VTK type 1", "3 (line)"});
  expect_refused(with(t, "3 0 1\n", "3 0 7\n"), 14, {"there is no node 7"});
  expect_refused(with(t, "3 2 3\n", "3 1 3\n"), 18, {"no cell has a face with these corners"});
  expect_refused(with(t, "3 2 3\n", "3 2 0\n"), 18, {"between elements 0 and 1"});
  expect_refused(with(t, "3 2 3\n", "% again\n3 2 1\n"), 19, {"stands in the marker 'lower' as well"});
  expect_refused(with(t, "1 1 2\n", "2 0 2\n"), 4, {"the element has no area"});
  expect_refused(with(t, "0 1 3\n", "1 0.5 3\n"), 5, {"shares a face with element 0", "overlap"});
  expect_refused(with(one_tetrahedron, "0 0 1\n", "1 1 0\n"), 3, {"the element has no volume"});
}

TEST(Su2Mesh, RefusesZones) {
  const std::string& t = two_zones;
  expect_refused(with(t, "NZONE= 2", "NZONE= 3"), 29, {"ends with zone 2, and NZONE says 3"});
  expect_refused(with(t, "NZONE= 2", "NZONE= 1"), 16, {"zone 2 begins here, and NZONE says 1"});
  expect_refused(with(t, "IZONE= 2", "IZONE= 3"), 16, {"zone 3 stands where zone 2 belongs"});
  expect_refused(with(t, "IZONE= 2\nNDIME= 3", "IZONE= 2\nNDIME= 2"), 17, {"NDIME is 2 here and 3 above"});
  expect_refused(with(t, "0 0 3\n", ""), 24, {"'NMARK= 1' stands after 3 of the 4 lines"});
  // Nodes count from 0 in each zone.
  const std::string second = t.substr(t.find("IZONE= 2"));
  expect_refused(t.substr(0, t.size() - second.size()) + with(second, "5 0 1 2", "5 0 1 4"), 28,
                 {"there is no node 4: NPOIN gives nodes 0 to 3"});
}

/// Whatever bytes a file has, it is read or refused in a sentence.
TEST(Su2Mesh, CutShortAndChanged) {
  std::mt19937_64 engine(11);
  const auto read = [](const std::string& text) {
    try {
      krilu::mesh::to_mesh(krilu::exec::Host(1), parse_su2(text, "mesh.su2"));
    } catch (const krilu::Error& e) {
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    }
  };
  for (const std::string& text : {two_triangles, two_zones}) {
    for (std::size_t n = 0; n < text.size(); ++n) read(text.substr(0, n));
    for (int k = 0; k < 5000; ++k) {
      std::string changed = text;
      for (int bytes = 0; bytes < 1 + k % 3; ++bytes)
        changed[engine() % changed.size()] = "0123456789-.=% \n\re\0N"[engine() % 20];
      read(changed);
    }
  }
}

TEST(Su2Mesh, FilesByName) {
  EXPECT_TRUE(krilu::is_su2_mesh("a/b.su2"));
  EXPECT_TRUE(krilu::is_su2_mesh("b.su2.gz"));
  EXPECT_FALSE(krilu::is_su2_mesh("su2"));
  EXPECT_FALSE(krilu::is_su2_mesh("b.su2.mtx"));
  const krilu::test::TemporaryFolder folder;
  const std::string path = folder.file("square.su2");
  std::ofstream(path, std::ios::binary) << two_triangles;
  EXPECT_EQ(krilu::read_mesh(path).cells, 2);
  EXPECT_EQ(krilu::read_su2_mesh(path).patches.size(), 5u);
  const std::string none = folder.file("none.su2");
  expect_words(refusal([&] { krilu::read_mesh(none); }), {"could not read " + none});
}

struct RealMesh {
  const char* name;
  Index cells, internal;
  std::vector<std::pair<std::string, Index>> markers;
};

/// Counts are those of the files' own texts; internal faces follow from them: half of the sides that are in no marker.
TEST(Su2Mesh, RealMeshes) {
  const std::vector<RealMesh> meshes{
      {"mesh_NACA0012_inv", 10216, (3 * 10216 - 250) / 2, {{"airfoil", 200}, {"farfield", 50}}},
      {"mesh_NACA0012_lam_hybrid_v2", 38017, (3 * 29793 + 4 * 8224 - 393) / 2, {{"airfoil", 257}, {"farfield", 136}}},
      {"mesh_RAE2822_turb", 22842, (3 * 18042 + 4 * 4800 - 232) / 2, {{"AIRFOIL", 192}, {"FARFIELD", 40}}},
      {"mesh_cylinder_lam", 26192, (3 * 26192 - 480) / 2, {{"cylinder", 400}, {"farfield", 80}}},
      {"mesh_brick_tets_ffd",
       59156,
       (4 * 59156 - 7372) / 2,
       {{"x_m", 722}, {"x_p", 722}, {"y_m", 1482}, {"y_p", 1482}, {"z_m", 1482}, {"z_p", 1482}}},
  };
  int read = 0;
  for (const RealMesh& real : meshes) {
    SCOPED_TRACE(real.name);
    const auto path = krilu::test::real_matrix(std::string("meshes/") + real.name + ".su2.gz");
    if (path.empty()) continue;
    ++read;
    const Mesh m = krilu::read_mesh(path.string());
    EXPECT_EQ(m.cells, real.cells);
    EXPECT_EQ(m.faces(), real.internal);
    const bool plane = m.patches.size() == real.markers.size() + 2;
    EXPECT_TRUE(plane || m.patches.size() == real.markers.size());
    for (std::size_t p = 0; p < real.markers.size(); ++p) {
      EXPECT_EQ(m.patches[p].name, real.markers[p].first);
      EXPECT_EQ(m.patches[p].faces, real.markers[p].second);
    }
    Vector3 outside{0, 0, 0};
    double volume = 0;  // by Gauss, from the outside alone
    for (std::size_t b = 0; b < m.boundary.size(); ++b) {
      outside += m.boundary_area[b];
      volume += krilu::dot(m.boundary_area[b], m.boundary_centre[b]) / 3;
    }
    EXPECT_NEAR(std::sqrt(krilu::dot(outside, outside)), 0, 1e-9);
    const double sum = std::accumulate(m.volume.begin(), m.volume.end(), 0.0);
    EXPECT_NEAR(sum, volume, 1e-9 * volume);
  }
  if (read == 0) GTEST_SKIP() << "real meshes meshes/*.su2.gz are not at hand (KRILU_MATRICES)";
}

TEST(Su2Mesh, RealMeshOfTwoZones) {
  KRILU_REQUIRE_MATRIX(path, "meshes/3D_chtPinArray_coarse.su2.gz");
  const Mesh m = krilu::read_mesh(path.string());
  EXPECT_EQ(m.cells, 9063 + 14513);
  ASSERT_EQ(m.patches.size(), 8u + 11u);
  EXPECT_EQ(m.patches[8].name, "solid_bottom_interface");
  for (std::size_t f = 0; f < m.owner.size(); ++f)
    ASSERT_EQ(m.owner[f] < 9063, m.neighbour[f] < 9063) << "face " << f << " joins two zones";
}

}  // namespace
