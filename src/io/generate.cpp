// SPDX-License-Identifier: Apache-2.0
// Generated systems of any size, the same on every machine: finite-difference stencils with the weights that the
// benchmarks name. Row r takes its factor w from splitmix64(seed + r). Two parallel passes: lengths, then entries.
// gen:spe10 and gen:spe10-2p are built from permeabilities instead of stencils, in io/spe10.cpp and
// io/spe10_two_phase.cpp, and gen:femflow2d by finite elements, in io/fem_flow.cpp.
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
#include "io/spe10.hpp"
#include "io/spe10_two_phase.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"

namespace krilu {

namespace {

constexpr std::string_view prefix = "gen:";
constexpr std::string_view spe10 = "spe10", spe10_two_phase = "spe10-2p", fem_flow = "femflow2d";

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
  return names;
}

CsrMatrix build(const Stencil& s, std::array<std::int64_t, 3> size, std::uint64_t seed) {
  const auto [nx, ny, nz] = size;
  const std::int64_t n = nx * ny * nz;
  CsrMatrix a;
  a.rows = a.cols = Index(n);
  a.offsets.resize(std::size_t(n) + 1);
  const exec::Host host;
  const auto for_rows = [&](auto f) {
    host.for_each_range(std::size_t(n), [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) {
        const std::int64_t i = r % nx, j = r / nx % ny, k = r / (nx * ny);
        const auto inside = [&](const Neighbour& b) {
          return i + b.di >= 0 && i + b.di < nx && j + b.dj >= 0 && j + b.dj < ny && k + b.dk >= 0 && k + b.dk < nz;
        };
        f(r, inside);
      }
    });
  };
  a.offsets[0] = 0;
  for_rows([&](Index r, auto inside) {
    Offset length = 1;
    for (const Neighbour& b : s.neighbours) length += inside(b);
    a.offsets[std::size_t(r) + 1] = length;
  });
  std::int64_t nnz = 0;
  for (std::size_t r = 1; r <= std::size_t(n); ++r) {
    nnz += a.offsets[r];
    if (nnz > std::numeric_limits<Offset>::max())
      throw Error(fmt::format("gen:{}: this size has 2^31 nonzeros or more, too many for one matrix", s.name));
    a.offsets[r] = Offset(nnz);
  }
  a.columns.resize(std::size_t(nnz));
  a.values.resize(std::size_t(nnz));
  for_rows([&](Index r, auto inside) {
    const double w = s.random_factor ? 0.8 + 0.4 * unit_random(seed + std::uint64_t(r)) : 1.0;
    auto at = std::size_t(a.offsets[std::size_t(r)]);
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
      a.columns[at] = Index(r + step);
      a.values[at++] = -b.weight * w;
      sum += b.weight * w;
    }
    if (!placed) diagonal = at;
    a.columns[diagonal] = r;
    a.values[diagonal] = s.diagonal != 0 ? s.diagonal : sum + s.excess;
  });
  return a;
}

}  // namespace

bool is_generator(std::string_view text) { return text.starts_with(prefix); }

CsrMatrix generate(const std::string& text) {
  const auto usage = [&](const std::string& why) {
    return Error(
        fmt::format("'{}': {}. A generator is gen:NAME:SIZE[:SEED], such as gen:convdiff3d:148x148x58, or "
                    "gen:spe10:KX,KZ or gen:spe10-2p:KX,KZ; NAME is one of {}",
                    text, why, fmt::join(generator_names(), ", ")));
  };
  if (!is_generator(text)) throw usage("not a generator");
  const std::string_view body = std::string_view(text).substr(prefix.size());
  const auto parts = split(body, ':');
  const std::string_view arguments = body.substr(std::min(body.size(), parts[0].size() + 1));
  if (parts[0] == fem_flow) return io::fem_flow_matrix(io::parse_fem_flow(arguments));
  if (parts[0] == spe10 || parts[0] == spe10_two_phase) {
    // File names may hold colons, and so only the comma divides them.
    const auto files = split(arguments, ',');
    if (files.size() != 2 || files[0].empty() || files[1].empty())
      throw usage("needs the files of Kx and Kz with one comma between them and none in their names");
    const io::Spe10Grid grid = io::read_spe10(std::string(files[0]), std::string(files[1]));
    if (parts[0] == spe10) return io::spe10_matrix(grid);
    return io::spe10_two_phase_matrix(grid, io::spe10_two_phase_start(grid.cells));
  }
  const Stencil* stencil = nullptr;
  for (const Stencil& s : stencils())
    if (parts[0] == s.name) stencil = &s;
  if (!stencil) {
    const std::string near = nearest_name(std::string(parts[0]), generator_names());
    throw usage("unknown generator" + (near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near)));
  }
  if (parts.size() < 2 || parts.size() > 3) throw usage("needs a size, and perhaps a seed");
  const auto sizes = split(parts[1], 'x');
  if (int(sizes.size()) != stencil->dimensions) throw usage(fmt::format("SIZE has {} numbers", stencil->dimensions));
  std::array<std::int64_t, 3> size{1, 1, 1};
  std::int64_t rows = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (!parse(sizes[d], size[d]) || size[d] < 1 || size[d] > std::numeric_limits<Index>::max())
      throw usage("each number of SIZE is a whole number from 1");
    rows *= size[d];
    if (rows > std::numeric_limits<Index>::max() - 1) throw usage("this size has 2^31 rows or more");
  }
  std::uint64_t seed = 1;
  if (parts.size() == 3 && !parse(parts[2], seed)) throw usage("SEED is a whole number from 0");
  return build(*stencil, size, seed);
}

std::vector<double> random_vector(std::size_t n, std::uint64_t seed, double lo, double hi) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = lo + (hi - lo) * unit_random(seed + i);
  return v;
}

}  // namespace krilu
