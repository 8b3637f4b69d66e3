// SPDX-License-Identifier: Apache-2.0
// OpenFOAM's mesh folders: small meshes in every form that OpenFOAM writes, read back bit for bit on one thread and in
// more pieces than they have elements; and a real mesh. What is refused: poly_mesh_refusals_test.cpp.
#include "io/poly_mesh.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#if defined(KRILU_HAS_ZLIB)
#include <zlib.h>
#endif

#include "krilu/mesh.hpp"
#include "poly_mesh_folder.hpp"

namespace {

using namespace krilu::test;
using krilu::Index;
using krilu::Mesh;
using krilu::Vector3;
using krilu::io::read_polyhedra;
using krilu::mesh::Polyhedra;

namespace fs = std::filesystem;

/// A prism over a polygon of 12 corners, whose two ends OpenFOAM writes on lines of their own, beside a cube's worth of
/// other faces: one cell.
Polyhedra long_faces() {
  Polyhedra p;
  p.cells = 1;
  constexpr Index n = 12;
  std::vector<Index> bottom, top;
  for (Index i = 0; i < n; ++i) {
    for (const double z : {0.0, 1.0}) p.points.push_back({std::cos(i * M_PI / 6), std::sin(i * M_PI / 6), z});
    bottom.insert(bottom.begin(), 2 * i);
    top.push_back(2 * i + 1);
  }
  add_face(p, bottom, 0);
  for (Index i = 0; i < n; ++i) {
    const Index next = (i + 1) % n;
    add_face(p, {2 * i, 2 * next, 2 * next + 1, 2 * i + 1}, 0);
  }
  add_face(p, top, 0);
  p.patches = {{"all", "wall", 0, n + 2}};
  return p;
}

TEST_F(PolyMesh, EveryFormGivesTheSameMesh) {
  for (const Polyhedra& p : {box(2, 2, 1), box(3, 4, 5)}) {
    for (const FoamForm& form : all_forms()) {
      SCOPED_TRACE(form.name());
      write(foam_files(p, form));
      expect_read(p);
    }
  }
}

TEST_F(PolyMesh, LongFacesAndNumbersOfAllDigits) {
  for (const FoamForm& form : all_forms()) {
    if (form.scalar == 32) continue;
    SCOPED_TRACE(form.name());
    write(foam_files(long_faces(), form));
    expect_read(long_faces());
    EXPECT_NEAR(krilu::read_poly_mesh(folder().string()).volume[0], 3, 1e-14);
  }
}

TEST_F(PolyMesh, SinglePrecisionIsReadAsItIs) {
  write(foam_files(long_faces(), {true, 32, 32}));
  Polyhedra p = long_faces();
  for (Vector3& v : p.points) {
    for (double* const x : {&v.x, &v.y, &v.z}) {
      volatile float narrow = float(*x);  // GCC 12 leaves the rounding out where it sees both conversions
      *x = narrow;
    }
  }
  expect_read(p);
}

TEST_F(PolyMesh, GeometryOfABox) {
  write(foam_files(box(2, 2, 1), ascii));
  const Mesh m = krilu::read_poly_mesh(folder().string());
  EXPECT_EQ(m.cells, 4);
  EXPECT_EQ(m.faces(), 4);
  ASSERT_EQ(m.boundary.size(), 16u);
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_NEAR(m.volume[c], 1, 1e-15);
    EXPECT_NEAR(m.centre[c].x, 0.5 + double(c % 2), 1e-15);
  }
  EXPECT_NEAR(m.area[1].y, 1, 1e-15);
  EXPECT_NEAR(m.boundary_area[0].x, -1, 1e-15);
  EXPECT_EQ(m.patches[5].name, "top");
}

TEST_F(PolyMesh, ACaseItsConstantOrTheFolderItself) {
  write(foam_files(box(2, 1, 1), ascii));
  for (const fs::path& path : {folder(), folder().parent_path(), folder().parent_path().parent_path()}) {
    EXPECT_EQ(krilu::read_poly_mesh(path.string()).cells, 2) << path;
    EXPECT_EQ(krilu::read_poly_mesh(path.string() + "/").cells, 2) << path;
  }
}

TEST_F(PolyMesh, LinesMayEndAsOnAnySystem) {
  FoamFiles files = foam_files(box(2, 2, 1), ascii);
  for (std::string& text : files) {
    std::string carriage;
    for (const char c : text) carriage += c == '\n' ? std::string("\r\n") : std::string(1, c);
    text = carriage;
  }
  write(files);
  expect_read(box(2, 2, 1));
}

TEST_F(PolyMesh, CommentsAnywhere) {
  FoamFiles files = foam_files(box(2, 2, 1), ascii);
  files[points] = with(files[points], "(2 1 0)\n", "/* (9 9 9)\n(8 8 8) */ (2 // two\n1 /**/ 0)// (7 7 7) (6 6 6)\n");
  files[faces] = with(files[faces], "\n(\n", "// 4(1 2 3 4)\n( /* 3( */ ");
  files[owner] = with(files[owner], "20\n(\n0\n0\n", "20 // )\n(0/* 5\n6 */\n0 // 7\n");
  files[boundary] = with(files[boundary], "left", "/* { */ left // {\n");
  write(files);
  expect_read(box(2, 2, 1));
}

TEST_F(PolyMesh, ListsWithoutCountOrOnOneLine) {
  for (const FoamForm& form : {ascii, FoamForm{false, 32, 64, true}}) {
    FoamFiles files = foam_files(box(2, 2, 1), form);
    files[points] = with(files[points], "18\n(", "(");
    files[faces] =
        form.compact ? with(with(files[faces], "21\n(", "("), "80\n(", "(") : with(files[faces], "20\n(", "(");
    files[owner] = with(files[owner], "20\n(", "nonuniform List<label> (");
    files[neighbour] = with(files[neighbour], "4\n(\n1\n2\n3\n3\n)", "List<label> 4(1 2 3 3)");
    files[boundary] = with(files[boundary], "6\n(", "(");
    write(files);
    expect_read(box(2, 2, 1));
  }
  FoamFiles files = foam_files(box(2, 2, 1), ascii);
  files[faces] = with(files[faces], "4(1 4 13 10)", " ( 1 4 13\n10 ) ");
  write(files);
  expect_read(box(2, 2, 1));
}

TEST_F(PolyMesh, UniformAndEmptyLists) {
  FoamFiles files = foam_files(box(1, 1, 1), ascii);
  files[owner] = foam_header(ascii, "labelList", "owner") + "6{0}\n";
  for (const char* empty : {"0", "0()", "0\n(\n)\n", "()", "0{0}", "6{-1}"}) {
    files[neighbour] = foam_header(ascii, "labelList", "neighbour") + empty;
    write(files);
    expect_read(box(1, 1, 1));
  }
}

TEST_F(PolyMesh, NeighboursPaddedForTheBoundary) {
  const Polyhedra p = box(2, 2, 1);
  Polyhedra padded = p;
  padded.neighbour.resize(20, -1);
  for (const FoamForm& form : all_forms()) {
    FoamFiles files = foam_files(p, form);
    files[neighbour] = foam_files(padded, form)[neighbour];
    write(files);
    expect_read(p);
  }
}

TEST_F(PolyMesh, HeadersOfOlderVersions) {
  FoamFiles files = foam_files(box(2, 2, 1), binary);
  for (std::string& text : files) text = with(text, "    arch        \"LSB;label=32;scalar=64\";\n", "");
  files[boundary] = with(files[boundary], "version     2.0;", "version 2.0; meta { a { b c; } d \"}\"; } root \"\";");
  write(files);
  expect_read(box(2, 2, 1));
}

TEST_F(PolyMesh, PatchesOfAllKinds) {
  Polyhedra p = box(2, 2, 1);
  FoamFiles files = foam_files(p, ascii);
  const std::size_t body = files[boundary].find("6\n(");
  files[boundary].resize(body);
  files[boundary] +=
      "5\n(\n"
      "top { inGroups List<word> 1(walls); type wall; nFaces 4; startFace 16; }\n"
      "\"odd name\" { type \"cyclic\"; startFace 4; nFaces 8; transform rotational; axis (0 0 1); sub { nFaces 99; } "
      "}\n"
      "nothing(at)all { type processor; nFaces 0; startFace 3; comment \"a ; { \\\" in it\"; }\n"
      "frontAndBack { physicalType empty; type empty; nFaces 3; startFace 12; }\n"
      "bottom { type patch; nFaces 1; startFace 15; }\n)\n";
  write(files);
  p.patches = {{"top", "wall", 12, 4},
               {"odd name", "cyclic", 0, 8},
               {"nothing(at)all", "processor", 0, 0},
               {"frontAndBack", "empty", 8, 3},
               {"bottom", "patch", 11, 1}};
  expect_read(p);
}

TEST_F(PolyMesh, LargeEnoughForPiecesOfTheirOwn) {
  const Polyhedra p = box(40, 41, 42);
  for (const FoamForm& form : {ascii, FoamForm{false, 32, 64, true}}) {
    write(foam_files(p, form));
    EXPECT_GT(fs::file_size(file(faces)), std::size_t(4) << 20);
    expect_read(p);
    expect_same(read_polyhedra(folder().string()), p);
  }
  FoamFiles files = foam_files(p, ascii);
  files[points] = with(files[points], "(21 13 7)\n", "(21 13 7) // here\n");
  files[owner] = with(files[owner], "\n(\n0\n", "\n( // here\n0\n");
  write(files);
  expect_read(p);
}

#if defined(KRILU_HAS_ZLIB)
TEST_F(PolyMesh, Gzip) {
  for (const FoamForm& form : all_forms()) {
    const FoamFiles files = foam_files(box(2, 2, 1), form);
    for (int k = 0; k < 5; ++k) {
      fs::remove(file(k));
      const gzFile z = gzopen((file(k) + ".gz").c_str(), "wb");
      ASSERT_NE(z, nullptr);
      const std::string& text = files[std::size_t(k)];
      EXPECT_EQ(gzwrite(z, text.data(), unsigned(text.size())), int(text.size()));
      gzclose(z);
    }
    expect_read(box(2, 2, 1));
  }
  const std::string gz = file(points) + ".gz";
  fs::resize_file(gz, fs::file_size(gz) / 2);
  EXPECT_NE(message().find(gz + ": the gzip data ends too early"), std::string::npos) << message();
}
#endif

// --- a real mesh ----------------------------------------------------------------------------------------------------

/// OpenFOAM's airFoil2D: hexahedra in one layer of 0.05 m, `empty` patches before and behind.
TEST_F(PolyMesh, AirFoil2D) {
  KRILU_REQUIRE_MATRIX(archive, "meshes/openfoam_airFoil2D_polyMesh.tar.gz");
  const std::string command = "tar -xzf '" + archive.string() + "' -C '" + temporary_.path().string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::string path = (temporary_.path() / "openfoam_airFoil2D_polyMesh").string();
  const Mesh m = krilu::read_poly_mesh(path);
  EXPECT_EQ(m.cells, 10720);
  EXPECT_EQ(m.faces(), 21254);
  EXPECT_EQ(m.boundary.size(), 43066u - 21254u);
  ASSERT_EQ(m.patches.size(), 4u);
  EXPECT_EQ(m.patches[2].name, "walls");
  EXPECT_EQ(m.patches[2].type, "wall");
  EXPECT_EQ(m.patches[2].first, 21548 - 21254);
  EXPECT_EQ(m.patches[2].faces, 78);
  EXPECT_EQ(m.patches[3].type, "empty");
  EXPECT_EQ(m.patches[3].faces, 2 * 10720);

  // Half the area of the two empty sides, times the thickness, is the volume; and so is Gauss's integral of z.
  double total = 0, sides = 0, gauss = 0;
  for (const double v : m.volume) total += v;
  Vector3 outward{0, 0, 0};
  for (const Vector3& a : m.boundary_area) outward += a;
  for (std::size_t f = std::size_t(m.patches[3].first); f < m.boundary.size(); ++f) {
    sides += std::abs(m.boundary_area[f].z);
    gauss += m.boundary_area[f].z * m.boundary_centre[f].z;
  }
  EXPECT_NEAR(0.5 * sides * 0.05 / total, 1, 1e-12);
  EXPECT_NEAR(gauss / total, 1, 1e-12);
  EXPECT_LE(std::sqrt(krilu::dot(outward, outward)), 1e-9 * sides);
  std::vector<Vector3> sum(std::size_t(m.cells), Vector3{0, 0, 0});
  for (std::size_t f = 0; f < m.owner.size(); ++f) {
    EXPECT_LT(m.owner[f], m.neighbour[f]);
    sum[std::size_t(m.owner[f])] += m.area[f];
    sum[std::size_t(m.neighbour[f])] += -m.area[f];
  }
  for (std::size_t f = 0; f < m.boundary.size(); ++f) sum[std::size_t(m.boundary[f])] += m.boundary_area[f];
  for (std::size_t c = 0; c < sum.size(); ++c) {
    const double size = std::pow(m.volume[c], 2.0 / 3);
    EXPECT_LE(std::sqrt(krilu::dot(sum[c], sum[c])), 1e-10 * size) << "cell " << c;
    EXPECT_NEAR(m.centre[c].z, 0.025, 1e-12);
  }

  Polyhedra one, three;
  ASSERT_NO_THROW(one = read_polyhedra(path, 1));
  ASSERT_NO_THROW(three = read_polyhedra(path, 3));
  expect_same(one, three);
  // What OpenFOAM would write in binary is the same mesh.
  write(foam_files(one, {true, 32, 64, true}));
  expect_read(one);
}

}  // namespace
