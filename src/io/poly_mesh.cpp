// SPDX-License-Identifier: Apache-2.0
// Reading of polyMesh folders; see poly_mesh.hpp. One file after another, in the order in which they depend on each
// other, so that the text of one is in memory at a time (of owner and neighbour both).
// Cost: a million hexahedra, 170 MB of ASCII, are read in 0.2 s on one core (0.7 s where they are packed by gzip), and
// their geometry takes as long again. At most 250 bytes a cell beside the text, of which the mesh keeps 200.
#include "io/poly_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "io/foam_file.hpp"
#include "io/matrix_market.hpp"
#include "io/scan.hpp"
#include "io/text_file.hpp"
#include "krilu/error.hpp"

namespace krilu::io {

namespace {

namespace fs = std::filesystem;

/// A cell that is closed has that many faces.
constexpr std::int64_t least_faces = 4;

constexpr std::array names{"points", "faces", "owner", "neighbour", "boundary"};

/// folder/name or folder/name.gz, or nothing where there is neither.
std::string find_file(const fs::path& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    const fs::path path = folder / (name + ending);
    std::error_code ignored;
    if (fs::exists(path, ignored) && !fs::is_directory(path, ignored)) return path.string();
  }
  return {};
}

/// Of a case, its constant/ and a polyMesh folder: the one that holds the mesh.
fs::path find_folder(const std::string& path) {
  const fs::path given(path);
  std::error_code ignored;
  if (!fs::exists(given, ignored))
    throw Error(fmt::format("could not read {}: there is no such folder; name a case or its polyMesh folder", path));
  if (!fs::is_directory(given, ignored))
    throw Error(
        fmt::format("could not read {}: it is a file; name the case or the polyMesh folder that holds the mesh", path));
  const std::array folders{given, given / "polyMesh", given / "constant" / "polyMesh"};
  const auto holds = [](const fs::path& folder, const char* name) { return !find_file(folder, name).empty(); };
  for (const fs::path& folder : folders)
    if (holds(folder, "faces")) return folder;
  for (const fs::path& folder : folders)
    if (std::any_of(names.begin(), names.end(), [&](const char* name) { return holds(folder, name); })) return folder;
  throw Error(
      fmt::format("{} holds no OpenFOAM mesh: there are no files points, faces, owner, neighbour and boundary in "
                  "{}, {} or {}; make the mesh first, or name another folder",
                  path, folders[0].string(), folders[1].string(), folders[2].string()));
}

/// A file of the folder, unpacked, behind its header.
struct OpenFile {
  OpenFile(const fs::path& folder, const std::string& name, int threads)
      : path(required(folder, name)), text(path), file(text.text(), path, threads) {}

  static std::string required(const fs::path& folder, const std::string& name) {
    std::string path = find_file(folder, name);
    if (path.empty())
      throw Error(
          fmt::format("{} holds no file {} or {}.gz, so the mesh is not whole; name the folder of all five: "
                      "points, faces, owner, neighbour, boundary",
                      folder.string(), name, name));
    return path;
  }

  std::string path;
  TextFile text;
  FoamFile file;
};

/// Owners and neighbours, held against the faces and against each other.
void read_cells(const fs::path& folder, int threads, mesh::Polyhedra& p) {
  const std::int64_t faces = p.faces();
  OpenFile owners(folder, "owner", threads);
  p.owner = owners.file.labels(faces);
  if (static_cast<std::int64_t>(p.owner.size()) != faces)
    owners.file.fail_list(fmt::format("there are {} owners, and {} faces; every face has one", p.owner.size(), faces));
  owners.file.require_end();

  OpenFile neighbours(folder, "neighbour", threads);
  p.neighbour = neighbours.file.labels(faces);
  const auto listed = static_cast<std::int64_t>(p.neighbour.size());
  if (listed > faces) neighbours.file.fail_list(fmt::format("there are {} neighbours, and {} faces", listed, faces));
  neighbours.file.require_end();
  // Old meshes list all faces, with -1 at the boundary.
  const auto internal = std::find(p.neighbour.begin(), p.neighbour.end(), -1) - p.neighbour.begin();
  for (std::int64_t f = internal; f < listed; ++f) {
    if (p.neighbour[std::size_t(f)] != -1)
      neighbours.file.fail_at(std::size_t(f), fmt::format("face {} has a neighbour, and face {} before it has none; "
                                                          "internal faces come first",
                                                          f, internal));
  }
  if (internal < listed && listed != faces)
    neighbours.file.fail_at(std::size_t(internal),
                            fmt::format("face {} has no neighbour (-1), which is for lists of all faces; this one has "
                                        "{} of {}",
                                        internal, listed, faces));
  p.neighbour.resize(std::size_t(internal));

  const std::int64_t most = (faces + internal) / least_faces;
  const auto require_cell = [&](const FoamFile& file, const char* what, std::size_t f, Index cell) {
    if (cell < 0) file.fail_at(f, fmt::format("face {} has the {} {}; cells count from 0", f, what, cell));
    if (cell < most) return;
    file.fail_at(f, fmt::format("face {} has the {} {}, but {} faces, of which {} are internal, bound {} cells at most",
                                f, what, cell, faces, internal, most));
  };
  Index last = -1;
  for (std::size_t f = 0; f < p.owner.size(); ++f) {
    const Index owner = p.owner[f];
    require_cell(owners.file, "owner", f, owner);
    last = std::max(last, owner);
  }
  for (std::size_t f = 0; f < p.neighbour.size(); ++f) {
    const Index neighbour = p.neighbour[f];
    if (neighbour <= p.owner[f])
      neighbours.file.fail_at(
          f, fmt::format("face {} has the neighbour {}, which must be above its owner, {}", f, neighbour, p.owner[f]));
    require_cell(neighbours.file, "neighbour", f, neighbour);
    last = std::max(last, neighbour);
  }
  p.cells = last + 1;
}

void read_boundary(const fs::path& folder, int threads, mesh::Polyhedra& p) {
  OpenFile boundary(folder, "boundary", threads);
  const std::vector<FoamPatch> patches = boundary.file.patches();
  const auto first = static_cast<std::int64_t>(p.neighbour.size()), last = static_cast<std::int64_t>(p.owner.size());
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < patches.size(); ++k)
    if (patches[k].faces > 0) order.push_back(k);  // an empty patch may start anywhere
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(patches[a].first, a) < std::pair(patches[b].first, b);
  });
  std::int64_t covered = first;
  for (const std::size_t k : order) {
    const FoamPatch& patch = patches[k];
    if (patch.first < first)
      boundary.file.fail(patch.at, fmt::format("the patch {} starts at face {}, and faces before {} are internal",
                                               io::in_quotes(patch.name), patch.first, first));
    if (patch.first != covered)
      boundary.file.fail(
          patch.at, fmt::format("the patch {} starts at face {} where {} belongs: faces {} to {} are in {}",
                                io::in_quotes(patch.name), patch.first, covered, std::min(patch.first, covered),
                                std::max(patch.first, covered) - 1, patch.first < covered ? "two patches" : "none"));
    covered = patch.first + patch.faces;
    if (covered > last)
      boundary.file.fail(patch.at, fmt::format("the patch {} ends with face {}, and the last face of the mesh is {}",
                                               io::in_quotes(patch.name), covered - 1, last - 1));
  }
  if (covered != last)
    boundary.file.fail_here(fmt::format("faces {} to {} are at the boundary and in no patch", covered, last - 1));
  boundary.file.require_end();
  for (const FoamPatch& patch : patches) {
    const std::int64_t from = patch.faces > 0 ? patch.first - first : 0;
    p.patches.push_back({patch.name, patch.type, static_cast<Index>(from), static_cast<Index>(patch.faces)});
  }
}

mesh::Polyhedra read_folder(const fs::path& folder, int threads) {
  mesh::Polyhedra p;
  {
    OpenFile points(folder, "points", threads);
    p.points = points.file.points();
    points.file.require_end();
  }
  {
    OpenFile faces(folder, "faces", threads);
    FoamFaces read = faces.file.faces(p.points.size());
    p.offsets = std::move(read.offsets);
    p.corners = std::move(read.corners);
    faces.file.require_end();
    if (p.faces() == 0) faces.file.fail_list("the mesh has no faces, and so no cells");
  }
  read_cells(folder, threads, p);
  read_boundary(folder, threads, p);
  return p;
}

}  // namespace

mesh::Polyhedra read_polyhedra(const std::string& path, int threads) {
  return guard_memory(path, [&] { return read_folder(find_folder(path), threads); });
}

}  // namespace krilu::io

namespace krilu {

Mesh read_poly_mesh(const std::string& path) {
  return io::guard_memory(path, [&] {
    mesh::Polyhedra polyhedra = io::read_polyhedra(path);
    try {
      return mesh::to_mesh(exec::Host(), std::move(polyhedra));
    } catch (const Error& e) {
      throw Error(fmt::format("{}: {}", path, e.what()));
    }
  });
}

}  // namespace krilu
