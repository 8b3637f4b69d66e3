// SPDX-License-Identifier: Apache-2.0
// OpenFOAM's mesh folders that are refused: every sentence with its file and line or byte; files cut short anywhere and
// with bytes changed at random.
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "krilu/mesh.hpp"
#include "poly_mesh_folder.hpp"

namespace {

using namespace krilu::test;
using krilu::Vector3;
using krilu::mesh::Polyhedra;

namespace fs = std::filesystem;

TEST_F(PolyMesh, RefusesFoldersWithoutAMesh) {
  const auto expect = [&](const fs::path& path, const std::vector<std::string>& words) {
    std::string text = "no error";
    try {
      krilu::read_poly_mesh(path.string());
    } catch (const krilu::Error& e) {
      text = e.what();
    }
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  };
  const fs::path root = temporary_.path() / "case";
  expect(root, {root.string() + " holds no OpenFOAM mesh", root.string() + "/polyMesh", folder().string()});
  expect(root / "none", {"could not read " + (root / "none").string(), "no such folder"});
  write(foam_files(box(2, 2, 1), ascii));
  expect(file(faces), {"could not read " + file(faces), "it is a file"});
  for (int k = 0; k < 5; ++k) {
    fs::rename(file(k), file(k) + "_");
    expect(root, {folder().string() + " holds no file " + foam_names[std::size_t(k)] + " or "});
    fs::rename(file(k) + "_", file(k));
  }
  EXPECT_EQ(message(), "no error");
}

TEST_F(PolyMesh, RefusesHeaders) {
  const auto refused = [&](const std::string& from, const std::string& to, int line,
                           const std::vector<std::string>& words) {
    for (const int which : {points, faces, owner, neighbour, boundary}) expect_refused(which, from, to, line, words);
  };
  refused("FoamFile", "FoamTile", 4, {"'FoamTile' stands where", "FoamFile { ... }"});
  refused("FoamFile\n{", "FoamFile\n", 6, {"'version' stands where the '{'"});
  refused("format      ascii", "format      xml", 7, {"the format 'xml' is neither ascii nor binary"});
  refused("    object ", "    arch \"MSB;label=32;scalar=64\"; object ", 11, {"the arch 'MSB;", "foamFormatConvert"});
  refused("    object ", "    arch \"LSB;label=16;scalar=64\"; object ", 11, {"32 or 64 bits"});
  refused("    object ", "    arch \"LSB;label=32;scalar=128\"; object ", 11, {"32 or 64 bits"});
  refused("\"constant/polyMesh\"", "\"constant/polyMesh", 10, {"a quotation mark opens here"});
  expect_refused(faces, "faceList", "labelList", 8, {"'labelList' where faceList or faceCompactList"});
  expect_refused(points, "vectorField", "decomposedBlockData", 4, {"collated", "uncollated"});
  for (const int which : {points, faces, owner, neighbour, boundary})
    expect_refused(which, ascii, [](const std::string&) { return ""; }, ":1", {"the end of the file stands where"});
}

TEST_F(PolyMesh, RefusesPoints) {
  expect_refused(points, "(2 1 0)", "(2 nan 0)", first_line + 5, {"'nan' stands where a finite number"});
  expect_refused(points, "(2 1 0)", "(2 1 inf)", first_line + 5, {"'inf)' stands where a finite number"});
  expect_refused(points, "(2 1 0)", "(2 1e999 0)", first_line + 5, {"'1e999' stands where"});
  expect_refused(points, "(2 1 0)", "(2 one 0)", first_line + 5, {"'one' stands where a finite number"});
  expect_refused(points, "(2 1 0)", "(2 1)", first_line + 5, {"')' stands where a finite number"});
  expect_refused(points, "(2 1 0)", "(2 1 0 0)", first_line + 5, {"'0)' stands where the ')' of a point"});
  expect_refused(points, "(2 1 0)", "2 1 0", first_line + 5, {"'2' stands where a point, (x y z),"});
  expect_refused(points, "18\n(", "19\n(", first_line + 18, {"ends after 18 entries", "says that it has 19"});
  expect_refused(points, "18\n(", "17\n(", first_line + 18, {"ends after 18 entries", "says that it has 17"});
  // A piece that starts inside of the comment would find the point that is missing.
  expect_refused(points, "18\n(\n", "19\n(\n// (9 9 9) (8 8 8)\n", first_line + 19,
                 {"ends after 18 entries", "says that it has 19"});
  expect_refused(points, "18\n(", "1800000000\n(", count_line, {"says 1800000000 entries", "cut short"});
  expect_refused(points, "18\n(", "99999999999999999999\n(", count_line, {"one mesh may have 2147483647"});
  expect_refused(points, "18\n(", "-18\n(", count_line, {"'-18' stands where the number"});
  expect_refused(points, "18\n(", "many\n(", count_line, {"'many' stands where a list"});
  expect_refused(points, "18\n(", "18\n{", count_line, {"all its entries are the same"});
  expect_refused(points, "18\n(", "18\n", first_line, {"'0' stands where a point"});
  expect_refused(points, "(2 2 1)\n)", "(2 2 1)\n) 5", first_line + 18, {"'5' stands where the end of the file"});
  expect_refused(points, ascii, [](const std::string& text) { return text.substr(0, text.find("(2 1 0)")); },
                 ":" + std::to_string(count_line), {"18 entries, which take 126 bytes at least, and only 41 follow"});
  expect_refused(points, ascii, [](const std::string& text) { return text.substr(0, text.find("(1 2 1)")); },
                 ":" + std::to_string(first_line + 16), {"ends within a list, after 16 entries of 18", "cut short"});
}

TEST_F(PolyMesh, RefusesFaces) {
  // The first face is 4(1 4 13 10).
  expect_refused(faces, "4(1 4 13 10)", "4(1 4 18 10)", first_line, {"face 0 has the corner 18", "18 points"});
  expect_refused(faces, "4(1 4 13 10)", "4(1 -1 13 10)", first_line, {"face 0 has the corner -1"});
  expect_refused(faces, "4(1 4 13 10)", "2(1 4)", first_line, {"'2(1' stands where a number of corners, at least 3"});
  expect_refused(faces, "4(1 4 13 10)", "(1 4)", first_line, {"'(1' stands where a face of at least 3 corners"});
  expect_refused(faces, "4(1 4 13 10)", "5(1 4 13 10)", first_line, {"'5(1'", "as many corners as it says"});
  expect_refused(faces, "4(1 4 13 10)", "4(1 4 a 10)", first_line, {"'a' stands where a whole number"});
  expect_refused(faces, "4(1 4 13 10)", "4(1 4 13.5 10)", first_line, {"'13.5' stands where a whole number"});
  expect_refused(faces, "4(1 4 13 10)", "4(1 4 3000000000 10)", first_line, {"'3000000000' stands where a whole"});
  expect_refused(faces, "4(1 4 13 10)", "4 1 4 13 10", first_line, {"'1' stands where the '(' of a face"});
  expect_refused(faces, "4(13 14 17 16)", "4(13 14 17 18)", first_line + 19, {"face 19 has the corner 18"});
  expect_refused(faces, "4(13 14 17 16)", "4(13 14 17", first_line + 19, {"'4(13' stands where a face of as many"});
  expect_refused(faces, "4(13 14 17 16)\n)", "4(13 14 17", first_line + 22, {"end of the file stands where the ')'"});
  expect_refused(faces, "4(13 14 17 16)\n", "", first_line + 19, {"ends after 19 entries", "says that it has 20"});
  expect_refused(faces, "20\n(", "2000000\n(", count_line, {"says 2000000 entries, which take 16000000 bytes"});
  expect_refused(faces, ascii, [](const std::string& text) { return text.substr(0, text.find("20\n(")) + "0()"; },
                 ":" + std::to_string(count_line), {"no faces"});
  // A face on lines of its own is named by its first.
  expect_refused(faces, "4(12 13 16 15)", "4(12\n13 16 18)", first_line + 18, {"face 18 has the corner 18"});
}

TEST_F(PolyMesh, RefusesCompactFaces) {
  const FoamForm compact{false, 32, 64, true};
  const auto refused = [&](const std::string& from, const std::string& to, int line,
                           const std::vector<std::string>& words) {
    expect_refused(
        faces, compact, [&](const std::string& text) { return with(text, from, to); }, ":" + std::to_string(line),
        words);
  };
  const int second = first_line + 21 + 2;  // the count of the second list
  refused("21\n(\n0\n", "21\n(\n1\n", first_line, {"face 0 start at 1, which must be 0"});
  refused("\n8\n12\n", "\n8\n10\n", first_line + 3, {"face 2 has its corners from 8 to before 10; three at least"});
  refused("\n8\n12\n", "\n8\n-1\n", first_line + 3, {"face 2 has its corners from 8 to before -1"});
  refused("\n76\n80\n)", "\n76\n79\n)", second, {"79 corners by the first list, and 80"});
  refused("80\n(\n1\n", "80\n(\n18\n", second + 2, {"the corner 18, and there are 18 points"});
  refused("80\n(\n1\n", "80{\n1\n", second, {"all its entries are the same"});
}

TEST_F(PolyMesh, RefusesOwners) {
  const auto refused = [&](const std::string& from, const std::string& to, int line,
                           const std::vector<std::string>& words) { expect_refused(owner, from, to, line, words); };
  const std::string start = "(\n0\n0\n1\n2\n0\n2\n";
  refused(start, "(\n0\n0\n1\n2\n0\n-1\n", first_line + 5, {"face 5 has the owner -1; cells count from 0"});
  refused(start, "(\n0\n0\n1\n2\n0\n6\n", first_line + 5,
          {"face 5 has the owner 6", "20 faces, of which 4", "6 cells"});
  refused(start, "(\n0\n0\n1\n2\n0\n2147483647\n", first_line + 5, {"face 5 has the owner 2147483647"});
  refused(start, "(\n0\n0\n1\n2\n0\n2147483648\n", first_line + 5, {"'2147483648' stands where a whole number"});
  refused(start, "(\n0\n0\n1\n2\n0\n2x\n", first_line + 5, {"'2x' stands where a whole number"});
  refused(start, "(\n0\n0\n1\n2\n0\n(2)\n", first_line + 5, {"'(2)' stands where a whole number"});
  refused("20\n" + start, "19\n(\n0\n1\n2\n0\n2\n", count_line, {"19 owners, and 20 faces"});
  refused("20\n" + start, "19\n" + start, first_line + 20, {"ends after 20 entries and says that it has 19"});
  refused("20\n" + start, "20000000\n" + start, count_line, {"says 20000000 entries", "cut short"});
  for (const char* uniform : {"2000000000{0}", "21{0}"})
    expect_refused(owner, ascii, [&](const std::string& text) { return text.substr(0, text.find("20\n(")) + uniform; },
                   ":" + std::to_string(count_line), {"entries, and 20 belong here at most"});
  expect_refused(owner, ascii, [&](const std::string& text) { return text.substr(0, text.find("20\n(")) + "20{6}"; },
                 ":" + std::to_string(count_line), {"face 0 has the owner 6"});
}

TEST_F(PolyMesh, RefusesNeighbours) {
  const auto refused = [&](const std::string& to, int line, const std::vector<std::string>& words) {
    expect_refused(neighbour, "4\n(\n1\n2\n3\n3\n)", to, line, words);
  };
  refused("4\n(\n1\n2\n1\n3\n)", first_line + 2, {"face 2 has the neighbour 1, which must be above its owner, 1"});
  refused("4\n(\n1\n2\n0\n3\n)", first_line + 2, {"face 2 has the neighbour 0, which must be above its owner, 1"});
  refused("4\n(\n1\n2\n6\n3\n)", first_line + 2, {"face 2 has the neighbour 6", "6 cells at most"});
  refused("4\n(\n1\n2\n-2\n3\n)", first_line + 2, {"'-2' stands where a whole number from -1"});
  refused("4\n(\n1\n2\n3\n-1\n)", first_line + 3, {"face 3 has no neighbour (-1)", "4 of 20"});
  refused("4\n(\n1\n2\n-1\n3\n)", first_line + 3, {"face 3 has a neighbour, and face 2 before it has none"});
  refused("21{1}", count_line, {"21 entries, and 20 belong"});
  refused("(1 2 3 3 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1)", count_line, {"21 neighbours, and 20 faces"});
}

TEST_F(PolyMesh, RefusesPatches) {
  const auto refused = [&](const std::string& from, const std::string& to, int line,
                           const std::vector<std::string>& words) { expect_refused(boundary, from, to, line, words); };
  const std::string entry = "startFace       ";
  refused(entry + "6;", entry + "7;", 23, {"'right' starts at face 7 where 6 belongs: faces 6 to 6 are in none"});
  refused(entry + "6;", entry + "5;", 23,
          {"'right' starts at face 5 where 6 belongs: faces 5 to 5 are in two patches"});
  refused(entry + "4;", entry + "3;", 17, {"'left' starts at face 3, and faces before 4 are internal"});
  refused("          4;\n        " + entry + "16;", "          5;\n        " + entry + "16;", 47,
          {"'top' ends with face 20, and the last face of the mesh is 19"});
  refused("          4;\n        " + entry + "16;", "          3;\n        " + entry + "16;", 53,
          {"faces 19 to 19 are at the boundary and in no patch"});
  refused(entry + "6;", entry + "six;", 27, {"startFace 'six' of the patch 'right' is not a number"});
  refused(entry + "6;", entry + "-6;", 27, {"startFace '-6'"});
  refused(entry + "6;", entry + "99999999999;", 27, {"startFace '99999999999'"});
  refused(entry + "6;", "", 23, {"the patch 'right' has no entry startFace"});
  refused(entry + "6;", entry + "6", 27, {"the entry 'startFace' does not end with ';'"});
  refused("6\n(", "7\n(", count_line, {"says 7 patches and has 6"});
  refused("6\n(", "six\n(", count_line, {"'six' stands where the number of patches"});
  refused("6\n(", "6\n", first_line, {"'left' stands where the '(' of the patches"});
  refused("left\n    {", "left\n    ", 19, {"'type' stands where the '{' of the patch 'left'"});
  refused("top\n    {", "{", 47, {"'{' stands where the name of a patch"});
  refused("top\n    {", "top { sub { ", 52, {"')' stands where an entry or the '}'"});
}

TEST_F(PolyMesh, RefusesBinaryFilesByTheByte) {
  const std::vector<FoamForm> forms = all_forms();
  for (const FoamForm& form : forms) {
    if (!form.binary) continue;
    SCOPED_TRACE(form.name());
    const auto start = [](const std::string& text) { return text.find('(', text.find("* //\n")) + 1; };
    const auto byte = [](std::size_t at) { return ", byte " + std::to_string(at); };
    const FoamFiles good = foam_files(box(2, 2, 1), form);
    const auto scalar = std::size_t(form.scalar / 8), label = std::size_t(form.label / 8);
    const auto put = [](int which, std::size_t at, const std::string& bytes) {
      return [which, at, bytes](std::string text) { return text.replace(at, bytes.size(), bytes); };
    };
    const auto number = [&](std::int64_t v) {
      std::string raw;
      if (form.label == 32)
        krilu::test::append_raw(raw, std::int32_t(v));
      else
        krilu::test::append_raw(raw, v);
      return raw;
    };

    std::string nan;
    if (form.scalar == 32)
      krilu::test::append_raw(nan, std::numeric_limits<float>::quiet_NaN());
    else
      krilu::test::append_raw(nan, std::numeric_limits<double>::infinity());
    std::size_t at = start(good[points]) + 7 * 3 * scalar;
    expect_refused(points, form, put(points, at + scalar, nan), byte(at), {"point 7 is (1 ", "not finite"});
    const auto cut = [](std::size_t bytes) {
      return [bytes](const std::string& text) { return text.substr(0, bytes); };
    };
    expect_refused(points, form, cut(at), byte(start(good[points]) - 4),
                   {"18 entries, which take " + std::to_string(18 * 3 * scalar) + " bytes", "cut short"});
    const std::size_t close = start(good[points]) + 18 * 3 * scalar;
    expect_refused(points, form, put(points, close, "x"), byte(close), {"no ')' stands behind 18 entries"});
    expect_refused(points, form, cut(close), byte(close), {"no ')' stands behind 18 entries"});

    at = start(good[owner]) + 5 * label;
    expect_refused(owner, form, put(owner, at, number(6)), byte(at), {"face 5 has the owner 6"});
    expect_refused(owner, form, put(owner, at, number(-7)), byte(at), {"-7 stands where a whole number"});
    if (form.label == 64)
      expect_refused(owner, form, put(owner, at, number(std::int64_t(1) << 31)), byte(at), {"2147483648 stands where"});
    at = start(good[neighbour]) + 2 * label;
    expect_refused(neighbour, form, put(neighbour, at, number(1)), byte(at), {"face 2 has the neighbour 1"});

    at = start(good[faces]);
    if (form.compact) {
      expect_refused(faces, form, put(faces, at + 3 * label, number(10)), byte(at + 3 * label),
                     {"face 2 has its corners from 8 to before 10"});
      at += 21 * label + 7;
      expect_refused(faces, form, put(faces, at + 6 * label, number(18)), byte(at + 6 * label), {"the corner 18"});
    } else {
      at = good[faces].find('(', at) + 1;
      expect_refused(faces, form, put(faces, at + 2 * label, number(18)), byte(at + 2 * label),
                     {"face 0 has the corner 18"});
    }
    // arch of another machine: the count no longer fits.
    FoamFiles files = good;
    files[owner] =
        with(files[owner], "label=" + std::to_string(form.label), form.label == 32 ? "label=64" : "label=32");
    write(files);
    EXPECT_EQ(message().find(file(owner) + ", byte "), 0u) << message();
  }
  expect_refused(points, binary, [](const std::string& text) { return with(text, "18\n(", "4000000000\n("); },
                 ", byte " + std::to_string(foam_files(box(2, 2, 1), binary)[points].find("18\n(")),
                 {"4000000000 entries"});
}

TEST_F(PolyMesh, RefusesCellsWithTheirNumber) {
  const auto expect = [&](const std::string& words) {
    try {
      krilu::read_poly_mesh(folder().string());
      ADD_FAILURE() << words;
    } catch (const krilu::Error& e) {
      EXPECT_EQ(std::string(e.what()).find(folder().string() + ": " + words), 0u) << e.what();
    }
  };
  FoamFiles files = foam_files(box(2, 2, 1), ascii);
  files[owner] = with(files[owner], "(\n0\n0\n1\n2\n0\n2\n", "(\n0\n0\n1\n2\n0\n5\n");
  write(files);
  expect("cell 4 has no faces");
  Polyhedra p = box(2, 2, 1);
  for (Vector3& v : p.points) v.z = -v.z;
  write(foam_files(p, ascii));
  expect("cell 0 has the volume -1 m^3");
}

/// Whatever is cut off, the mesh is read whole or refused in a sentence.
TEST_F(PolyMesh, FilesCutShortAnywhere) {
  const Polyhedra p = box(1, 2, 1);
  for (const FoamForm& form : {ascii, binary, FoamForm{true, 64, 32, true}}) {
    const FoamFiles files = foam_files(p, form);
    write(files);
    for (int k = 0; k < 5; ++k) {
      const std::string& text = files[std::size_t(k)];
      const std::size_t footer = text.rfind("// ***");
      const std::size_t header = text.find("// *");
      for (std::size_t bytes = 0; bytes < text.size(); bytes += bytes < header ? 11 : 1) {
        write(k, text.substr(0, bytes));
        const std::string said = message();
        if (said == "no error") {
          EXPECT_GE(bytes + 6, footer) << foam_names[std::size_t(k)] << " " << bytes;
        } else {
          EXPECT_LE(bytes, footer + 2) << said;
          EXPECT_EQ(said.find(file(k)), 0u) << said;
          EXPECT_EQ(said.find('\n'), std::string::npos) << said;
        }
      }
      write(k, text);
    }
  }
}

TEST_F(PolyMesh, BytesChangedAtRandom) {
  const Polyhedra p = box(2, 2, 2);
  std::mt19937_64 engine(3);
  int refused = 0;
  for (const FoamForm& form : all_forms()) {
    const FoamFiles files = foam_files(p, form);
    write(files);
    for (int run = 0; run < 100; ++run) {
      const auto k = int(engine() % 5);
      std::string text = files[std::size_t(k)];
      const std::string some = "0123456789(){};-./*\n\" e";
      for (std::uint64_t n = 1 + engine() % 3; n > 0; --n)
        text[engine() % text.size()] = engine() % 2 ? some[engine() % some.size()] : char(engine());
      write(k, text);
      const std::string said = message();
      refused += said != "no error";
      EXPECT_EQ(said, message(3));
      write(k, files[std::size_t(k)]);
    }
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
