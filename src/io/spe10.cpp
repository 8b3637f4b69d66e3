// SPDX-License-Identifier: Apache-2.0
// The SPE10 pressure system; see spe10.hpp. Between two cells of a row, a distance d apart, with the face area S:
//
//   T = S / (d/2/k1 + d/2/k2),
//
// which is S/d times the harmonic mean of the permeabilities. a_ij = -T; a_ii is the sum of the row's T, and at the two
// ends in y the half cell up to the face, S / (d/2/k), stands there too: without it the constants would be in the
// kernel. Each T is worked out by the rows on both its sides, in the same numbers, so that the matrix is symmetric bit
// for bit. Cost: one pass over two texts of 10 MB and one over the matrix.
#include "io/spe10.hpp"

#include <fmt/format.h>

#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"

namespace krilu::io {

namespace {

constexpr std::array<double, 3> feet{20, 10, 2};  // the size of a cell
constexpr std::array<double, 3> area{feet[1] * feet[2], feet[0] * feet[2], feet[0] * feet[1]};
constexpr std::size_t flow = 1;  // the direction at whose ends the pressure is fixed

/// What a half cell puts in the way of the flow, for a face of area 1.
double half_cell(std::size_t direction, double k) { return feet[direction] / 2 / k; }

/// Within these nothing overflows and no T is rounded to zero; no rock is near them in any unit.
constexpr double least_permeability = 1e-100, largest_permeability = 1e100;

std::vector<double> read_permeability(const std::string& path, const std::array<Index, 3>& cells) {
  std::vector<double> k = read_vector(path);
  const auto [nx, ny, nz] = cells;
  const std::size_t n = std::size_t(nx) * std::size_t(ny) * std::size_t(nz);
  if (k.size() != n)
    throw Error(
        fmt::format("{}: it holds {} permeabilities and the model has {} x {} x {} = {} cells; give one a cell and "
                    "line, x fastest, then y, then z",
                    path, k.size(), nx, ny, nz, n));
  for (std::size_t c = 0; c < n; ++c) {
    if (k[c] >= least_permeability && k[c] <= largest_permeability) continue;
    const std::size_t i = c % std::size_t(nx), j = c / std::size_t(nx) % std::size_t(ny);
    throw Error(
        fmt::format("{}: entry {} (cell {}, {}, {}, counted from 1) is the permeability {}, which must lie between "
                    "{} and {}; give a cell that lets nothing through a small positive one",
                    path, c + 1, i + 1, j + 1, c / (std::size_t(nx) * std::size_t(ny)) + 1, k[c], least_permeability,
                    largest_permeability));
  }
  return k;
}

}  // namespace

CsrMatrix spe10_matrix(const std::array<Index, 3>& cells, const std::vector<double>& kx,
                       const std::vector<double>& kz) {
  const std::array<Index, 3> stride{1, cells[0], cells[0] * cells[1]};
  const Index n = stride[2] * cells[2];
  const std::array<const double*, 3> permeability{kx.data(), kx.data(), kz.data()};
  CsrMatrix a;
  a.rows = a.cols = n;
  a.offsets.resize(std::size_t(n) + 1);
  a.offsets[0] = 0;
  const auto place = [&](Index r, std::size_t direction) { return r / stride[direction] % cells[direction]; };
  for (Index r = 0; r < n; ++r) {
    Offset length = 1;
    for (std::size_t d = 0; d < 3; ++d) length += (place(r, d) > 0) + (place(r, d) + 1 < cells[d]);
    a.offsets[std::size_t(r) + 1] = a.offsets[std::size_t(r)] + length;
  }
  a.columns.resize(std::size_t(a.nnz()));
  a.values.resize(std::size_t(a.nnz()));
  exec::Host().for_each_range(std::size_t(n), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      auto at = std::size_t(a.offsets[std::size_t(r)]);
      double sum = 0;
      const auto neighbour = [&](std::size_t d, Index step) {
        const double* const k = permeability[d];
        const double t = area[d] / (half_cell(d, k[r]) + half_cell(d, k[r + step]));
        a.columns[at] = r + step;
        a.values[at++] = -t;
        sum += t;
      };
      for (std::size_t d = 3; d-- > 0;)
        if (place(r, d) > 0) neighbour(d, -stride[d]);
      const std::size_t diagonal = at++;
      for (std::size_t d = 0; d < 3; ++d)
        if (place(r, d) + 1 < cells[d]) neighbour(d, stride[d]);
      const Index j = place(r, flow);
      const int ends = (j == 0) + (j + 1 == cells[flow]);
      a.columns[diagonal] = r;
      a.values[diagonal] = sum + ends * (area[flow] / half_cell(flow, permeability[flow][r]));
    }
  });
  return a;
}

CsrMatrix read_spe10(const std::string& kx_path, const std::string& kz_path, const std::array<Index, 3>& cells) {
  const std::vector<double> kx = read_permeability(kx_path, cells);
  const std::vector<double> kz = read_permeability(kz_path, cells);
  return spe10_matrix(cells, kx, kz);
}

}  // namespace krilu::io
