// SPDX-License-Identifier: Apache-2.0
// Generated systems of any size, the same on every machine: finite-difference stencils with the weights that the
// benchmarks name. Row r takes its factor w from splitmix64(seed + r). Two parallel passes: lengths, then entries.
// gen:spe10 and gen:spe10-2p are built from permeabilities instead of stencils, in io/spe10.cpp and
// io/spe10_two_phase.cpp, gen:femflow2d by finite elements, in io/fem_flow.cpp, and gen:fv by finite volumes on a mesh,
// in io/finite_volume.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/names.hpp"
#include "base/parse.hpp"
#include "base/random.hpp"
#include "exec/host.hpp"
#include "io/fem_flow.hpp"
#include "io/finite_volume.hpp"
#include "io/generate_rows.hpp"
#include "io/spe10.hpp"
#include "io/spe10_two_phase.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "krilu/mesh.hpp"

namespace krilu {

namespace {

constexpr std::string_view generator_prefix = "gen:";
constexpr std::string_view spe10 = "spe10", spe10_two_phase = "spe10-2p", fem_flow = "femflow2d", finite_volume = "fv";

struct Neighbour {
  int di, dj, dk;
  double weight;
};

struct Stencil {
  const char* name;
  int dimensions;
  bool random_factor;                 // w uniform in [0.8, 1.2], else 1
  double excess;                      // diagonal = sum of magnitudes + excess
  double diagonal;                    // fixed where not 0: a Dirichlet problem's
  std::vector<Neighbour> neighbours;  // in ascending column order
};

/// Seven points, five without k: the magnitudes of the off-diagonals below and above.
std::vector<Neighbour> cross(int dimensions, std::array<double, 6> w) {
  std::vector<Neighbour> n{{0, -1, 0, w[1]}, {-1, 0, 0, w[2]}, {1, 0, 0, w[3]}, {0, 1, 0, w[4]}};
  if (dimensions == 3) {
    n.insert(n.begin(), {0, 0, -1, w[0]});
    n.push_back({0, 0, 1, w[5]});
  }
  return n;
}

/// All 26 neighbours, a weight each.
template <class Weight>
std::vector<Neighbour> cube(Weight weight) {
  std::vector<Neighbour> n;
  for (int k = -1; k <= 1; ++k)
    for (int j = -1; j <= 1; ++j)
      for (int i = -1; i <= 1; ++i)
        if (i || j || k) n.push_back({i, j, k, weight(i, j, k)});
  return n;
}

const std::vector<Stencil>& stencils() {
  static const std::array<double, 6> wind{1.3, 1, 1.1, 0.9, 1, 0.7}, still{1, 1, 1, 1, 1, 1};
  static const std::vector<Stencil> all{
      {"poisson2d", 2, false, 0, 4, cross(2, still)},
      {"poisson3d", 3, false, 0, 6, cross(3, still)},
      {"poisson3d27", 3, false, 0, 26, cube([](int, int, int) { return 1.0; })},
      {"aniso3d", 3, false, 0.001, 0, cross(3, wind)},
      {"convdiff2d", 2, true, 0.05, 0, cross(2, wind)},
      {"convdiff3d", 3, true, 0.05, 0, cross(3, wind)},
      // The wind of convdiff3d over 26 neighbours, each weaker the farther it is.
      {"convdiff3d27", 3, true, 0.05, 0,
       cube([](int i, int j, int k) { return (1 - 0.1 * i - 0.3 * k) / (std::abs(i) + std::abs(j) + std::abs(k)); })},
  };
  return all;
}

std::vector<std::string> generator_names() {
  std::vector<std::string> names;
  for (const Stencil& s : stencils()) names.emplace_back(s.name);
  names.emplace_back(spe10);
  names.emplace_back(spe10_two_phase);
  names.emplace_back(fem_flow);
  names.emplace_back(finite_volume);
  return names;
}

/// A stencil on a lattice.
struct Lattice {
  const Stencil* stencil = nullptr;
  std::array<std::int64_t, 3> size{1, 1, 1};
  std::uint64_t seed = 1;
  std::int64_t rows() const { return size[0] * size[1] * size[2]; }
};

/// Rows first .. first + count - 1. Columns are 32 bits wide, or 64.
template <class Column>
void build(const Lattice& lattice, std::int64_t first, Index count, Buffer<Offset>& offsets, Buffer<Column>& columns,
           Buffer<double>& values) {
  const Stencil& s = *lattice.stencil;
  const std::int64_t nx = lattice.size[0], ny = lattice.size[1], nz = lattice.size[2];
  offsets.resize(std::size_t(count) + 1);
  const exec::Host host;
  const auto for_rows = [&](auto f) {
    host.for_each_range(std::size_t(count), [&](Index begin, Index end) {
      for (Index local = begin; local < end; ++local) {
        const std::int64_t r = first + local, i = r % nx, j = r / nx % ny, k = r / (nx * ny);
        const auto inside = [&](const Neighbour& b) {
          return i + b.di >= 0 && i + b.di < nx && j + b.dj >= 0 && j + b.dj < ny && k + b.dk >= 0 && k + b.dk < nz;
        };
        f(local, r, inside);
      }
    });
  };
  offsets[0] = 0;
  for_rows([&](Index local, std::int64_t, auto inside) {
    Offset length = 1;
    for (const Neighbour& b : s.neighbours) length += inside(b);
    offsets[std::size_t(local) + 1] = length;
  });
  std::int64_t nnz = 0;
  for (std::size_t r = 1; r <= std::size_t(count); ++r) {
    nnz += offsets[r];
    if (nnz > std::numeric_limits<Offset>::max())
      throw Error(fmt::format("gen:{}: this size has 2^31 nonzeros or more, too many for one matrix", s.name));
    offsets[r] = Offset(nnz);
  }
  columns.resize(std::size_t(nnz));
  values.resize(std::size_t(nnz));
  for_rows([&](Index local, std::int64_t r, auto inside) {
    const double w = s.random_factor ? 0.8 + 0.4 * unit_random(lattice.seed + std::uint64_t(r)) : 1.0;
    auto at = std::size_t(offsets[std::size_t(local)]);
    std::size_t diagonal = 0;
    bool placed = false;
    double sum = 0;
    for (const Neighbour& b : s.neighbours) {
      const std::int64_t step = b.di + nx * (b.dj + ny * b.dk);
      if (step > 0 && !placed) {
        diagonal = at++;
        placed = true;
      }
      if (!inside(b)) continue;
      columns[at] = Column(r + step);
      values[at++] = -b.weight * w;
      sum += b.weight * w;
    }
    if (!placed) diagonal = at;
    columns[diagonal] = Column(r);
    values[diagonal] = s.diagonal != 0 ? s.diagonal : sum + s.excess;
  });
}

/// A generator's text in words; `stencil` is null where the generator is none.
struct Request {
  std::string_view name, arguments;
  Lattice lattice;
};

Error usage(const std::string& text, const std::string& why) {
  return Error(
      fmt::format("'{}': {}. A generator is gen:NAME:SIZE[:SEED], such as gen:convdiff3d:148x148x58, or "
                  "gen:spe10:KX,KZ, gen:spe10-2p:KX,KZ or gen:fv:MESH[,LAYERS[,ORDER]]; NAME is one of {}",
                  text, why, fmt::join(generator_names(), ", ")));
}

/// `most` bounds the number of rows.
Request parse_request(const std::string& text, std::int64_t most) {
  if (!is_generator(text)) throw usage(text, "not a generator");
  const std::string_view body = std::string_view(text).substr(generator_prefix.size());
  const auto parts = split(body, ':');
  Request request{parts[0], body.substr(std::min(body.size(), parts[0].size() + 1)), {}};
  for (const std::string_view other : {spe10, spe10_two_phase, fem_flow, finite_volume})
    if (parts[0] == other) return request;
  Lattice& l = request.lattice;
  for (const Stencil& s : stencils())
    if (parts[0] == s.name) l.stencil = &s;
  if (!l.stencil) {
    const std::string near = nearest_name(std::string(parts[0]), generator_names());
    throw usage(text, "unknown generator" + (near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near)));
  }
  if (parts.size() < 2 || parts.size() > 3) throw usage(text, "needs a size, and perhaps a seed");
  const auto sizes = split(parts[1], 'x');
  if (int(sizes.size()) != l.stencil->dimensions)
    throw usage(text, fmt::format("SIZE has {} numbers", l.stencil->dimensions));
  std::int64_t rows = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (!parse(sizes[d], l.size[d]) || l.size[d] < 1 || l.size[d] > std::numeric_limits<Index>::max())
      throw usage(text, "each number of SIZE is a whole number from 1");
    if (rows > most / l.size[d])
      throw usage(text, most < std::numeric_limits<Index>::max() ? "this size has 2^31 rows or more"
                                                                 : "this size has 2^60 rows or more");
    rows *= l.size[d];
  }
  if (parts.size() == 3 && !parse(parts[2], l.seed)) throw usage(text, "SEED is a whole number from 0");
  return request;
}

constexpr std::int64_t most_rows = std::numeric_limits<Index>::max() - 1;
constexpr std::int64_t most_rows_in_parts = (std::int64_t(1) << 60) - 1;

}  // namespace

bool is_generator(std::string_view text) { return text.starts_with(generator_prefix); }

CsrMatrix generate(const std::string& text) {
  const Request request = parse_request(text, most_rows);
  if (request.name == fem_flow) return io::fem_flow_matrix(io::parse_fem_flow(request.arguments));
  if (request.name == finite_volume) {
    const io::FiniteVolume problem = io::parse_finite_volume(request.arguments);
    return io::finite_volume_matrix(read_mesh(problem.mesh), problem);
  }
  if (!request.lattice.stencil) {
    // File names may hold colons, and so only the comma divides them.
    const auto files = split(request.arguments, ',');
    if (files.size() != 2 || files[0].empty() || files[1].empty())
      throw usage(text, "needs the files of Kx and Kz with one comma between them and none in their names");
    const io::Spe10Grid grid = io::read_spe10(std::string(files[0]), std::string(files[1]));
    if (request.name == spe10) return io::spe10_matrix(grid);
    return io::spe10_two_phase_matrix(grid, io::spe10_two_phase_start(grid.cells));
  }
  CsrMatrix a;
  a.rows = a.cols = Index(request.lattice.rows());
  build(request.lattice, 0, a.rows, a.offsets, a.columns, a.values);
  return a;
}

std::optional<std::int64_t> io::generated_rows(const std::string& text) {
  const Request request = parse_request(text, most_rows_in_parts);
  if (!request.lattice.stencil) return std::nullopt;
  return request.lattice.rows();
}

RowsMatrix io::generate_rows(const std::string& text, std::int64_t first, Index count) {
  const Request request = parse_request(text, most_rows_in_parts);
  if (!request.lattice.stencil) throw usage(text, "rows can be made without the others for stencils only");
  RowsMatrix a;
  a.all = request.lattice.rows();
  if (first < 0 || count < 0 || first + count > a.all)
    throw Error(fmt::format("'{}': rows {} to {} are not within its {} rows", text, first + 1, first + count, a.all));
  a.first = first;
  a.count = count;
  build(request.lattice, first, count, a.offsets, a.columns, a.values);
  return a;
}

std::vector<double> random_vector(std::size_t n, std::uint64_t seed, double lo, double hi) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = lo + (hi - lo) * unit_random(seed + i);
  return v;
}

}  // namespace krilu
