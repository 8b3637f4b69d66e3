// SPDX-License-Identifier: Apache-2.0
// A folder with an OpenFOAM mesh, which tests write, read back and spoil.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "io/poly_mesh.hpp"
#include "krilu/error.hpp"
#include "mesh/mesh_checks.hpp"
#include "support/poly_mesh.hpp"
#include "support/support.hpp"
#include "support/texts.hpp"

namespace krilu::test {

inline constexpr int points = 0, faces = 1, owner = 2, neighbour = 3, boundary = 4;
inline const FoamForm ascii, binary{true};

inline std::vector<FoamForm> all_forms() {
  std::vector<FoamForm> out{{false, 32, 64, false}, {false, 32, 64, true}};
  for (const int label : {32, 64})
    for (const int scalar : {32, 64})
      for (const bool compact : {true, false}) out.push_back({true, label, scalar, compact});
  return out;
}

inline void expect_same(const mesh::Polyhedra& a, const mesh::Polyhedra& b) {
  EXPECT_EQ(a.cells, b.cells);
  EXPECT_TRUE(same_bits(a.points, b.points));
  EXPECT_TRUE(same_bits(a.offsets, b.offsets) && same_bits(a.corners, b.corners));
  EXPECT_TRUE(same_bits(a.owner, b.owner) && same_bits(a.neighbour, b.neighbour));
  ASSERT_EQ(a.patches.size(), b.patches.size());
  for (std::size_t k = 0; k < a.patches.size(); ++k) {
    EXPECT_EQ(a.patches[k].name, b.patches[k].name);
    EXPECT_EQ(a.patches[k].type, b.patches[k].type);
    EXPECT_EQ(a.patches[k].first, b.patches[k].first) << a.patches[k].name;
    EXPECT_EQ(a.patches[k].faces, b.patches[k].faces) << a.patches[k].name;
  }
}

class PolyMesh : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder()); }

  std::filesystem::path folder() const { return temporary_.path() / "case" / "constant" / "polyMesh"; }
  std::string file(int which) const { return (folder() / foam_names[std::size_t(which)]).string(); }

  void write(int which, const std::string& text) const { std::ofstream(file(which), std::ios::binary) << text; }
  void write(const FoamFiles& files) const {
    for (int k = 0; k < 5; ++k) write(k, files[std::size_t(k)]);
  }

  std::string message(int threads = 1) const {
    try {
      mesh::to_mesh(exec::Host(threads), io::read_polyhedra(folder().string(), threads));
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
  /// The box of 2 x 2 x 1 with one file changed is refused with "FILE<place>: " and these words.
  void expect_refused(int which, const FoamForm& form, const std::function<std::string(std::string)>& change,
                      const std::string& place, const std::vector<std::string>& words) const {
    FoamFiles files = foam_files(box(2, 2, 1), form);
    files[std::size_t(which)] = change(files[std::size_t(which)]);
    write(files);
    for (const int threads : team_sizes) {
      const std::string text = message(threads);
      EXPECT_EQ(text.find(file(which) + place + ": "), 0u) << place << "\n" << text;
      for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
  void expect_refused(int which, const std::string& from, const std::string& to, int line,
                      const std::vector<std::string>& words) const {
    expect_refused(
        which, ascii, [&](const std::string& text) { return with(text, from, to); }, ":" + std::to_string(line), words);
  }
  void expect_read(const mesh::Polyhedra& expected) const {
    for (const int threads : team_sizes) {
      SCOPED_TRACE("threads " + std::to_string(threads));
      mesh::Polyhedra read;
      ASSERT_NO_THROW(read = io::read_polyhedra(folder().string(), threads)) << message(threads);
      expect_same(read, expected);
    }
  }

  TemporaryFolder temporary_;
};

// Lines of an ASCII file: the count, and behind a bracket the first element.
inline constexpr int count_line = 15, first_line = 17;

}  // namespace krilu::test
