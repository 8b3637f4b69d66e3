// SPDX-License-Identifier: Apache-2.0
// Grids as CGNS files (CFD General Notation System, AIAA R-101A-2005, the Standard Interface Data Structures): one base
// of the plane, one structured zone, its boundary conditions, and the zone joined to itself along the seam of an O grid
// or the cut of a C grid. HDF5 inside where the library has that.
#include "grid/write.hpp"
#include "io/output_file.hpp"
#include "krilu/error.hpp"
#include "krilu/grid.hpp"

#if defined(KRILU_HAS_CGNS)
#include <cgnslib.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <vector>
#endif

namespace krilu {

#if defined(KRILU_HAS_CGNS)

void grid::require_cgns(const std::string&) {}

namespace {

/// A file that the CGNS library writes beside the target, and that gets the target's name when it is whole.
class CgnsFile {
 public:
  CgnsFile(const std::string& path, std::size_t bytes) : path_(path) {
    const io::Destination to = io::destination_of(path);
    target_ = to.target;
    if (to.direct)
      throw Error(
          fmt::format("could not write {}: CGNS is written to plain files only, not to folders, devices or "
                      "pipes",
                      path_));
    // The library does not say why a file cannot be written, and HDF5 may crash later where the room ran out. So room
    // for the file is asked for first. The library then makes a file of that name itself.
    std::FILE* const probe = io::create_beside(target_, written_);
    if (!probe) io::refuse_to_write(path_, errno);
    const int no_room = ::posix_fallocate(fileno(probe), 0, off_t(bytes));
    std::fclose(probe);
    if (no_room) {
      std::remove(written_.c_str());
      io::refuse_to_write(path_, no_room);
    }
    cg_set_file_type(CG_FILE_HDF5);  // where the library has no HDF5 this fails, and its own default stays
    const int failed = cg_open(written_.c_str(), CG_MODE_WRITE, &file_);
    cg_set_file_type(CG_FILE_NONE);
    if (failed) {
      std::remove(written_.c_str());
      fail();
    }
    open_ = true;
  }
  ~CgnsFile() {
    if (open_) cg_close(file_);
    if (!done_) std::remove(written_.c_str());
  }
  CgnsFile(const CgnsFile&) = delete;
  CgnsFile& operator=(const CgnsFile&) = delete;

  int number() const { return file_; }
  /// Takes what a function of the library returned.
  void require(int failed) const {
    if (failed) fail();
  }
  void commit() {
    open_ = false;
    require(cg_close(file_));
    if (std::rename(written_.c_str(), target_.c_str()) != 0) io::refuse_to_write(path_, errno);
    done_ = true;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(
        fmt::format("could not write {}: the CGNS library says: {}; is there room left?", path_, cg_get_error()));
  }

  std::string path_, target_, written_;
  int file_ = 0;
  bool open_ = false, done_ = false;
};

/// Nodes (i, j) from the first to the last, counted from 1.
struct Range {
  cgsize_t i0, j0, i1, j1;
  std::array<cgsize_t, 4> both() const { return {i0, j0, i1, j1}; }
};

struct Zone {
  const CgnsFile& file;
  int base, zone;

  void coordinate(const char* name, const Grid& grid, double Point::*const part) const {
    std::vector<double> values(grid.node.size());
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = grid.node[k].*part;
    int ignored;
    file.require(cg_coord_write(file.number(), base, zone, CGNS_ENUMV(RealDouble), name, values.data(), &ignored));
    file.require(cg_goto(file.number(), base, "Zone_t", zone, "GridCoordinates_t", 1, name, 0, "end"));
    const std::array<double, 5> length = {0, 1, 0, 0, 0};  // exponents of mass, length, time, temperature, angle
    file.require(cg_exponents_write(CGNS_ENUMV(RealDouble), length.data()));
  }
  void boundary(const char* name, CGNS_ENUMT(BCType_t) type, const Range& nodes) const {
    int number;
    const auto range = nodes.both();
    file.require(
        cg_boco_write(file.number(), base, zone, name, type, CGNS_ENUMV(PointRange), 2, range.data(), &number));
  }
  /// `transform` says along which line of the other side each index runs, with its sign.
  void joined(const char* name, const Range& nodes, const Range& others, std::array<int, 2> transform) const {
    int ignored;
    const auto range = nodes.both(), donor = others.both();
    file.require(cg_1to1_write(file.number(), base, zone, name, zone_name, range.data(), donor.data(), transform.data(),
                               &ignored));
  }

  static constexpr const char* zone_name = "grid";
};

}  // namespace

void write_cgns(const Grid& grid, const std::string& path) {
  grid::require_whole(grid, path);
  static std::mutex one_at_a_time;  // the library keeps its files in globals
  const std::lock_guard lock(one_at_a_time);

  constexpr std::size_t room_for_the_rest = std::size_t(1) << 17;
  CgnsFile file(path, sizeof(Point) * grid.node.size() + room_for_the_rest);
  int base = 0, number = 0;
  file.require(cg_base_write(file.number(), "krilu", 2, 2, &base));
  file.require(cg_goto(file.number(), base, "end"));
  file.require(cg_descriptor_write("Description", "Lengths are in chords: the shape reaches from x = 0 to x = 1."));
  file.require(cg_dataclass_write(CGNS_ENUMV(NormalizedByUnknownDimensional)));
  const cgsize_t ni = grid.ni, nj = grid.nj;
  const std::array<cgsize_t, 6> sizes = {ni, nj, ni - 1, nj - 1, 0, 0};  // nodes, cells, and none of these
  file.require(cg_zone_write(file.number(), base, Zone::zone_name, sizes.data(), CGNS_ENUMV(Structured), &number));

  const Zone zone{file, base, number};
  zone.coordinate("CoordinateX", grid, &Point::x);
  zone.coordinate("CoordinateY", grid, &Point::y);

  const Range first_line{1, 1, 1, nj}, last_line{ni, 1, ni, nj};
  zone.boundary("farfield", CGNS_ENUMV(BCFarfield), {1, nj, ni, nj});
  if (grid.topology == Grid::Topology::O) {
    zone.boundary("wall", CGNS_ENUMV(BCWall), {1, 1, ni, 1});
    zone.joined("seam-first", first_line, last_line, {1, 2});
    zone.joined("seam-last", last_line, first_line, {1, 2});
  } else {
    const cgsize_t wake = grid.wake;
    const Range lower{1, 1, wake + 1, 1}, upper{ni, 1, ni - wake, 1};
    zone.boundary("wall", CGNS_ENUMV(BCWall), {wake + 1, 1, ni - wake, 1});
    zone.boundary("outflow-lower", CGNS_ENUMV(BCFarfield), first_line);
    zone.boundary("outflow-upper", CGNS_ENUMV(BCFarfield), last_line);
    zone.joined("cut-lower", lower, upper, {-1, -2});
    zone.joined("cut-upper", {ni - wake, 1, ni, 1}, {wake + 1, 1, 1, 1}, {-1, -2});
  }
  file.commit();
}

#else

void grid::require_cgns(const std::string& path) {
  throw Error("could not write " + path +
              ": krilu was built without CGNS; install libcgns-dev and build again, or write Plot3D (.xyz)");
}

void write_cgns(const Grid&, const std::string& path) { grid::require_cgns(path); }

#endif

}  // namespace krilu
