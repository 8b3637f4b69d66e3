// SPDX-License-Identifier: Apache-2.0
// Files of grids: Plot3D read back by a reader of its own, CGNS by the CGNS library, both bit for bit; that a CGNS
// file's boundary conditions and joints cover the zone's edge once and join nodes that coincide; and what is refused.
#include "grid/write.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#if defined(KRILU_HAS_CGNS)
#include <cgnslib.h>
#endif

#include "grid/grids.hpp"
#include "krilu/error.hpp"

namespace {

using krilu::Grid;
using krilu::Index;
using krilu::Point;
using krilu::test::ellipse_grid;
using krilu::test::parabola_grid;

namespace fs = std::filesystem;

/// A folder of its own for each test.
class GridFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "krilu-grid-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.insert(entry.path().filename().string());
    return found;
  }

  fs::path folder_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void expect_refused(const std::function<void()>& action, const std::vector<std::string>& words) {
  try {
    action();
    ADD_FAILURE() << "nothing was refused";
  } catch (const krilu::Error& e) {
    for (const std::string& word : words) EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
  }
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

TEST_F(GridFiles, GridsMadeByHandHaveCellsOfPositiveArea) {
  for (const Grid& g : {ellipse_grid(33, 9), parabola_grid(41, 9, 10)})
    for (Index j = 0; j + 1 < g.nj; ++j)
      for (Index i = 0; i + 1 < g.ni; ++i) {
        const Point a = g.at(i, j), b = g.at(i + 1, j), c = g.at(i + 1, j + 1), d = g.at(i, j + 1);
        EXPECT_GT((c.x - a.x) * (d.y - b.y) - (d.x - b.x) * (c.y - a.y), 0) << i << " " << j;
      }
}

TEST_F(GridFiles, Plot3dReadsBackBitForBit) {
  for (Grid g : {ellipse_grid(33, 9), parabola_grid(42, 7, 10)}) {
    g.at(3, 4) = {1.0 / 3, -1e-300};
    g.at(4, 4) = {std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min()};
    krilu::write_plot3d(g, path("g.xyz"));
    const std::string text = text_of(path("g.xyz"));
    std::istringstream words(text);
    std::string word;
    std::vector<std::string> all;
    while (words >> word) all.push_back(word);
    ASSERT_EQ(all.size(), 2 + 2 * g.node.size());
    EXPECT_EQ(all[0], std::to_string(g.ni));
    EXPECT_EQ(all[1], std::to_string(g.nj));
    const auto number = [&](std::size_t k) {
      char* end = nullptr;
      const double value = std::strtod(all[k].c_str(), &end);
      EXPECT_EQ(*end, '\0') << all[k];
      return value;
    };
    for (Index j = 0; j < g.nj; ++j)  // i fastest; all x before all y
      for (Index i = 0; i < g.ni; ++i) {
        const std::size_t k = std::size_t(j * g.ni + i);
        EXPECT_PRED2(same_bits, number(2 + k), g.at(i, j).x);
        EXPECT_PRED2(same_bits, number(2 + g.node.size() + k), g.at(i, j).y);
      }
    std::istringstream lines(text);
    std::size_t longest = 0;
    for (std::string line; std::getline(lines, line);) {
      longest = std::max(longest, line.size());
      EXPECT_FALSE(line.empty());
    }
    EXPECT_LE(longest, 4 * 25u);
    EXPECT_EQ(text.back(), '\n');
    EXPECT_EQ(names(), std::set<std::string>{"g.xyz"});
  }
}

TEST_F(GridFiles, TheEndingNamesTheFormat) {
  const Grid g = ellipse_grid(9, 5);
  krilu::write_plot3d(g, path("a.xyz"));
  for (const char* name : {"b.xyz", "b.p3d", "b.fmt"}) {
    krilu::grid::require_writable(path(name));
    krilu::grid::write_by_ending(g, path(name));
    EXPECT_EQ(text_of(path(name)), text_of(path("a.xyz")));
  }
  for (const char* name : {"a.vtk", "a", "cgns", "a.xyz.gz", ""}) {
    expect_refused([&] { krilu::grid::require_writable(name); }, {".cgns", ".xyz", name});
    expect_refused([&] { krilu::grid::write_by_ending(g, name); }, {".cgns", ".xyz", name});
  }
}

TEST_F(GridFiles, PlacesThatCannotBeWrittenToAreRefused) {
  fs::create_directory(path("folder.xyz"));
  expect_refused([&] { krilu::grid::require_writable(path("folder.xyz")); }, {"folder.xyz", "is a folder"});
  expect_refused([&] { krilu::grid::require_writable(path("nowhere/a.xyz")); }, {"nowhere/a.xyz", "no folder"});
  const Grid g = ellipse_grid(9, 5);
  expect_refused([&] { krilu::write_plot3d(g, path("nowhere/a.xyz")); }, {"nowhere/a.xyz", "No such file"});
  expect_refused([&] { krilu::write_plot3d(g, path("folder.xyz")); }, {"folder.xyz", "directory"});
}

TEST_F(GridFiles, WhatIsNoGridIsRefusedAndNothingIsLeftBehind) {
  std::ofstream(path("g.xyz")) << "before";
  std::ofstream(path("g.cgns")) << "before";
  const auto refused = [&](const Grid& g, const std::vector<std::string>& words) {
    expect_refused([&] { krilu::write_plot3d(g, path("g.xyz")); }, words);
#if defined(KRILU_HAS_CGNS)
    expect_refused([&] { krilu::write_cgns(g, path("g.cgns")); }, words);
#endif
  };
  const Grid good = ellipse_grid(9, 5);
  Grid g = good;
  g.node.pop_back();
  refused(g, {"44 nodes", "9 x 5 are 45"});
  g = good;
  g.nj = 1;
  refused(g, {"9 x 1 nodes", "at least 3 x 2"});
  g = good;
  g.at(3, 2).y = std::nan("");
  refused(g, {"node (4, 3)", "not finite"});
  g = good;
  g.at(8, 4).x = std::numeric_limits<double>::infinity();
  refused(g, {"node (9, 5)", "not finite"});
  g = good;
  g.wake = 1;
  refused(g, {"an O grid with 9 nodes", "1 cells"});
  g = parabola_grid(41, 5, 10);
  g.wake = 20;
  refused(g, {"a C grid with 41 nodes", "20 cells"});
  refused(Grid{}, {"0 x 0 nodes"});
  EXPECT_EQ(text_of(path("g.xyz")), "before");
  EXPECT_EQ(text_of(path("g.cgns")), "before");
  EXPECT_EQ(names(), (std::set<std::string>{"g.cgns", "g.xyz"}));
}

#if defined(KRILU_HAS_CGNS)

/// What the library reads of a file that holds one zone.
struct Read {
  struct Boundary {
    std::string name;
    BCType_t type;
    std::array<cgsize_t, 4> range;
  };
  struct Joint {
    std::string name, donor;
    std::array<cgsize_t, 4> range, other;
    std::array<int, 2> transform;
  };
  std::string zone;
  std::array<cgsize_t, 6> size{};
  std::vector<double> x, y;
  std::vector<Boundary> boundaries;
  std::vector<Joint> joints;
};

Read read_cgns(const std::string& path) {
  Read r;
  int file = 0, count = 0, cell = 0, physical = 0;
  char name[33], donor[33];
  const auto good = [](int failed) { ASSERT_EQ(failed, 0) << cg_get_error(); };
  good(cg_open(path.c_str(), CG_MODE_READ, &file));
  good(cg_nbases(file, &count));
  EXPECT_EQ(count, 1);
  good(cg_base_read(file, 1, name, &cell, &physical));
  EXPECT_EQ(cell, 2);
  EXPECT_EQ(physical, 2);
  good(cg_nzones(file, 1, &count));
  EXPECT_EQ(count, 1);
  good(cg_zone_read(file, 1, 1, name, r.size.data()));
  r.zone = name;
  ZoneType_t kind;
  good(cg_zone_type(file, 1, 1, &kind));
  EXPECT_EQ(kind, Structured);
  const std::array<cgsize_t, 2> low = {1, 1}, high = {r.size[0], r.size[1]};
  r.x.resize(std::size_t(high[0] * high[1]));
  r.y.resize(r.x.size());
  DataType_t stored;
  good(cg_coord_info(file, 1, 1, 1, &stored, name));
  EXPECT_EQ(stored, RealDouble);
  good(cg_coord_read(file, 1, 1, "CoordinateX", RealDouble, low.data(), high.data(), r.x.data()));
  good(cg_coord_read(file, 1, 1, "CoordinateY", RealDouble, low.data(), high.data(), r.y.data()));
  good(cg_nbocos(file, 1, 1, &count));
  for (int k = 1; k <= count; ++k) {
    Read::Boundary b;
    PointSetType_t set;
    cgsize_t points, normals;
    DataType_t type;
    int normal[3], sets;
    good(cg_boco_info(file, 1, 1, k, name, &b.type, &set, &points, normal, &normals, &type, &sets));
    EXPECT_EQ(set, PointRange);
    good(cg_boco_read(file, 1, 1, k, b.range.data(), nullptr));
    b.name = name;
    r.boundaries.push_back(b);
  }
  good(cg_n1to1(file, 1, 1, &count));
  for (int k = 1; k <= count; ++k) {
    Read::Joint j;
    good(cg_1to1_read(file, 1, 1, k, name, donor, j.range.data(), j.other.data(), j.transform.data()));
    j.name = name;
    j.donor = donor;
    r.joints.push_back(j);
  }
  good(cg_close(file));
  return r;
}

/// The nodes of a range that is a part of a line, from its first to its last.
std::vector<std::pair<cgsize_t, cgsize_t>> nodes_of(const std::array<cgsize_t, 4>& range) {
  const cgsize_t di = range[2] - range[0], dj = range[3] - range[1], n = std::max(std::abs(di), std::abs(dj));
  std::vector<std::pair<cgsize_t, cgsize_t>> nodes;
  for (cgsize_t k = 0; k <= n; ++k)
    nodes.emplace_back(range[0] + (n ? k * di / n : 0), range[1] + (n ? k * dj / n : 0));
  return nodes;
}

void expect_same_grid(const Grid& g, const Read& r) {
  EXPECT_EQ(r.size, (std::array<cgsize_t, 6>{g.ni, g.nj, g.ni - 1, g.nj - 1, 0, 0}));
  ASSERT_EQ(r.x.size(), g.node.size());
  for (std::size_t k = 0; k < g.node.size(); ++k) {
    EXPECT_PRED2(same_bits, r.x[k], g.node[k].x);
    EXPECT_PRED2(same_bits, r.y[k], g.node[k].y);
  }
}

/// Each edge of a cell on the zone's boundary belongs to one condition or one joint; joints join nodes that coincide,
/// by the standard's transformation, and are mutual.
void expect_closed(const Grid& g, const Read& r) {
  std::map<std::array<cgsize_t, 4>, int> covered;
  const auto cover = [&](const std::array<cgsize_t, 4>& range) {
    const auto nodes = nodes_of(range);
    for (std::size_t k = 0; k + 1 < nodes.size(); ++k) {
      const auto [a, b] = std::minmax(nodes[k], nodes[k + 1]);
      ++covered[{a.first, a.second, b.first, b.second}];
    }
  };
  for (const auto& b : r.boundaries) cover(b.range);
  for (const auto& j : r.joints) cover(j.range);
  EXPECT_EQ(covered.size(), std::size_t(2 * (g.ni - 1) + 2 * (g.nj - 1)));
  for (const auto& [edge, times] : covered) {
    EXPECT_EQ(times, 1) << edge[0] << " " << edge[1];
    EXPECT_TRUE((edge[0] == edge[2] && (edge[0] == 1 || edge[0] == g.ni)) ||
                (edge[1] == edge[3] && (edge[1] == 1 || edge[1] == g.nj)));
  }
  ASSERT_EQ(r.joints.size(), 2u);
  for (const auto& j : r.joints) {
    EXPECT_EQ(j.donor, r.zone);
    // Index2 = T (Index1 - Begin1) + Begin2, T from `transform`: column k is sign of it in row |transform[k]|.
    for (const auto& [i, k] : nodes_of(j.range)) {
      std::array<cgsize_t, 2> other = {j.other[0], j.other[1]};
      const std::array<cgsize_t, 2> from = {i - j.range[0], k - j.range[1]};
      for (std::size_t c = 0; c < 2; ++c)
        other[std::size_t(std::abs(j.transform[c]) - 1)] += (j.transform[c] < 0 ? -1 : 1) * from[c];
      ASSERT_TRUE(other[0] >= 1 && other[0] <= g.ni && other[1] >= 1 && other[1] <= g.nj);
      const Point a = g.at(Index(i - 1), Index(k - 1)), b = g.at(Index(other[0] - 1), Index(other[1] - 1));
      EXPECT_PRED2(same_bits, a.x, b.x);
      EXPECT_PRED2(same_bits, a.y, b.y);
      EXPECT_TRUE(other[0] != i || other[1] != k || g.topology == Grid::Topology::C);
    }
  }
  // One step over a joint outwards, by the transformation, is one step inwards from the other side.
  for (const auto& j : r.joints) {
    const bool along_i = j.range[1] == j.range[3];  // the joint lies on a line j
    const int across = along_i ? 1 : 0;
    const cgsize_t outwards = (along_i ? j.range[1] : j.range[0]) == 1 ? -1 : 1;
    EXPECT_EQ(std::abs(j.transform[std::size_t(across)]) - 1, across);
    const cgsize_t there = outwards * (j.transform[std::size_t(across)] < 0 ? -1 : 1);
    const cgsize_t at = j.other[std::size_t(across)];
    EXPECT_EQ(there, at == 1 ? 1 : -1);
  }
}

TEST_F(GridFiles, CgnsOfAnOGridReadsBack) {
  const Grid g = ellipse_grid(33, 9);
  krilu::grid::require_writable(path("o.cgns"));
  krilu::grid::write_by_ending(g, path("o.cgns"));
  const Read r = read_cgns(path("o.cgns"));
  expect_same_grid(g, r);
  expect_closed(g, r);
  ASSERT_EQ(r.boundaries.size(), 2u);
  std::map<std::string, Read::Boundary> by_name;
  for (const auto& b : r.boundaries) by_name[b.name] = b;
  EXPECT_EQ(by_name["wall"].type, BCWall);
  EXPECT_EQ(by_name["wall"].range, (std::array<cgsize_t, 4>{1, 1, 33, 1}));
  EXPECT_EQ(by_name["farfield"].type, BCFarfield);
  EXPECT_EQ(by_name["farfield"].range, (std::array<cgsize_t, 4>{1, 9, 33, 9}));
  EXPECT_EQ(names(), std::set<std::string>{"o.cgns"});
}

TEST_F(GridFiles, CgnsOfACGridReadsBack) {
  for (const Index wake : {1, 10, 19}) {
    const Grid g = parabola_grid(41, 9, wake);
    krilu::write_cgns(g, path("c.cgns"));
    const Read r = read_cgns(path("c.cgns"));
    expect_same_grid(g, r);
    expect_closed(g, r);
    int walls = 0;
    for (const auto& b : r.boundaries) {
      if (b.type != BCWall) {
        EXPECT_EQ(b.type, BCFarfield) << b.name;
        continue;
      }
      ++walls;
      EXPECT_EQ(b.range, (std::array<cgsize_t, 4>{wake + 1, 1, 41 - wake, 1}));
    }
    EXPECT_EQ(walls, 1);
    EXPECT_EQ(r.boundaries.size(), 4u);
  }
}

TEST_F(GridFiles, CgnsReplacesWhatALinkLeadsTo) {
  std::ofstream(path("real.cgns")) << "before";
  fs::create_symlink("real.cgns", path("link.cgns"));
  const Grid g = ellipse_grid(9, 5);
  krilu::write_cgns(g, path("link.cgns"));
  EXPECT_TRUE(fs::is_symlink(path("link.cgns")));
  expect_same_grid(g, read_cgns(path("real.cgns")));
}

TEST_F(GridFiles, CgnsIsRefusedWhereItCannotBeWritten) {
  const Grid g = ellipse_grid(9, 5);
  fs::create_directory(path("folder.cgns"));
  expect_refused([&] { krilu::write_cgns(g, path("folder.cgns")); }, {"folder.cgns", "plain files"});
  expect_refused([&] { krilu::write_cgns(g, path("nowhere/a.cgns")); }, {"nowhere/a.cgns", "No such file"});
  expect_refused([&] { krilu::write_cgns(g, "/dev/full"); }, {"/dev/full", "plain files"});
  EXPECT_EQ(names(), std::set<std::string>{"folder.cgns"});
}

#else

TEST_F(GridFiles, WithoutTheLibraryCgnsIsRefusedWithItsRemedy) {
  const auto sentence = {"a.cgns", "without CGNS", "libcgns-dev", "Plot3D"};
  expect_refused([&] { krilu::write_cgns(ellipse_grid(9, 5), path("a.cgns")); }, {sentence.begin(), sentence.end()});
  expect_refused([&] { krilu::grid::require_writable(path("a.cgns")); }, {sentence.begin(), sentence.end()});
  EXPECT_TRUE(names().empty());
}

#endif

}  // namespace
