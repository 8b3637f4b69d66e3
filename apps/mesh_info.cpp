// SPDX-License-Identifier: Apache-2.0
#include "mesh_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "io/report.hpp"
#include "krilu/face_loops.hpp"
#include "krilu/version.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

struct Shape {
  Index fewest = 0, most = 0;  // faces of a cell, boundary included
  double least_volume = 0, most_volume = 0, total_volume = 0;
  double worst_angle = 0;  // degrees between a face's normal and the line between its cells' centres
};

Shape shape_of(const Mesh& mesh) {
  Shape s;
  std::vector<Index> faces(std::size_t(mesh.cells), 0);
  for (const auto* cells : {&mesh.owner, &mesh.neighbour, &mesh.boundary})
    for (const Index c : *cells) ++faces[std::size_t(c)];
  if (!faces.empty()) {
    const auto [least, most] = std::minmax_element(faces.begin(), faces.end());
    s.fewest = *least;
    s.most = *most;
  }
  if (mesh.volume.empty()) return s;
  const auto [least, most] = std::minmax_element(mesh.volume.begin(), mesh.volume.end());
  s.least_volume = *least;
  s.most_volume = *most;
  for (const double v : mesh.volume) s.total_volume += v;
  double least_cosine = 1;
  for (std::size_t f = 0; f < mesh.owner.size(); ++f) {
    const Vector3 d = mesh.centre[std::size_t(mesh.neighbour[f])] - mesh.centre[std::size_t(mesh.owner[f])];
    const double lengths = std::sqrt(dot(d, d) * dot(mesh.area[f], mesh.area[f]));
    if (lengths > 0) least_cosine = std::min(least_cosine, dot(d, mesh.area[f]) / lengths);
  }
  s.worst_angle = std::acos(std::clamp(least_cosine, -1.0, 1.0)) * 180 / 3.14159265358979323846;
  return s;
}

}  // namespace

bool names_mesh(const std::string& text) {
  std::error_code ignored;
  return is_mesh_generator(text) || is_su2_mesh(text) || std::filesystem::is_directory(text, ignored);
}

int mesh_info(const std::string& text, const std::string& json, int threads) {
  std::optional<StepLine> step;
  step.emplace("reading " + text, true);
  const Mesh mesh = read_mesh(text);
  step.emplace("measuring loops over faces", true);
  const Shape s = shape_of(mesh);
  FaceLoopOptions options;
  options.threads = threads;
  const FaceLoops loops(mesh, options);
  const FaceLoopReport& r = loops.report();
  step.reset();

  nlohmann::ordered_json j;
  j["krilu"] = version;
  j["name"] = text;
  j["cells"] = mesh.cells;
  j["faces"] = {{"internal", mesh.faces()}, {"boundary", mesh.boundary.size()}};
  j["faces_of_a_cell"] = {{"least", s.fewest}, {"most", s.most}};
  for (const Patch& p : mesh.patches) j["patches"].push_back({{"name", p.name}, {"type", p.type}, {"faces", p.faces}});
  if (!mesh.volume.empty()) {
    j["volume"] = {{"total", s.total_volume}, {"least", s.least_volume}, {"most", s.most_volume}};
    j["worst_angle"] = s.worst_angle;
  }
  j["bytes"] = mesh.bytes();
  j["loops"] = {{"strategy", r.strategy},         {"renumber", r.renumber}, {"threads", loops.threads()},
                {"cut_fraction", r.cut_fraction}, {"bytes", r.bytes},       {"seconds", r.seconds}};
  for (const auto& m : r.measured)
    j["loops"]["measured"].push_back({{"strategy", m.strategy}, {"milliseconds", m.milliseconds}});
  for (const auto& m : r.finalists)
    j["loops"]["finalists"].push_back({{"strategy", m.strategy}, {"milliseconds", m.milliseconds}});

  if (json != "-") {
    fmt::print("{}  {}\n\n", bold(fmt::format("krilu {}", version)), text);
    print_row("cells", fmt::format("{}, with {} to {} faces", io::thousands(mesh.cells), s.fewest, s.most));
    print_row("faces", fmt::format("{} internal, {} on the boundary", io::thousands(mesh.faces()),
                                   io::thousands(Index(mesh.boundary.size()))));
    std::string patches;
    for (const Patch& p : mesh.patches)
      patches += fmt::format("{}{} ({}, {})", patches.empty() ? "" : ", ", p.name, p.type, io::thousands(p.faces));
    if (!patches.empty()) print_row("patches", patches);
    if (!mesh.volume.empty()) {
      print_row("volume", fmt::format("{:.4g} m3 in all, {:.3g} to {:.3g} a cell", s.total_volume, s.least_volume,
                                      s.most_volume));
      print_row("orthogonality", fmt::format("faces up to {:.1f} degrees off", s.worst_angle));
    }
    print_row("memory", io::megabytes(mesh.bytes()));
    std::string measured;
    const auto list = [&](const std::string& where, const std::vector<FaceLoopReport::Candidate>& candidates) {
      for (const auto& m : candidates)
        measured += fmt::format("{}{} {:.3f} ms", &m == &candidates.front() ? where : ", ", m.strategy, m.milliseconds);
    };
    list(" (a product on a piece: ", r.measured);
    list("; on the whole mesh: ", r.finalists);
    print_row("face loops", fmt::format("{}, blocks by {}, on {} thread{}{}; set up in {:.3f} s", r.strategy,
                                        r.renumber, loops.threads(), loops.threads() == 1 ? "" : "s",
                                        measured.empty() ? measured : measured + ")", r.seconds));
  }
  if (!json.empty()) io::write_json(json, j);
  return 0;
}

}  // namespace krilu::app
