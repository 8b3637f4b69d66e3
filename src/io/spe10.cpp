// SPDX-License-Identifier: Apache-2.0
// The SPE10 pressure system; see spe10.hpp for the T of a face. a_ij = -T; a_ii is the sum of the row's T, and at the
// two ends in y the half cell up to the face, S / (d/2/k), stands there too: without it the constants would be in the
// kernel. Each T is worked out by the rows on both its sides, in the same numbers, so that the matrix is symmetric bit
// for bit. Cost: one pass over two texts of 10 MB and one over the matrix.
#include "io/spe10.hpp"

#include <fmt/format.h>

#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"

namespace krilu::io {

namespace {

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

CsrMatrix spe10_matrix(const Spe10Grid& grid) {
  const Index n = grid.size();
  CsrMatrix a;
  a.rows = a.cols = n;
  a.offsets.resize(std::size_t(n) + 1);
  a.offsets[0] = 0;
  for (Index r = 0; r < n; ++r) a.offsets[std::size_t(r) + 1] = a.offsets[std::size_t(r)] + grid.neighbours(r);
  a.columns.resize(std::size_t(a.nnz()));
  a.values.resize(std::size_t(a.nnz()));
  exec::Host().for_each_range(std::size_t(n), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      auto at = std::size_t(a.offsets[std::size_t(r)]);
      std::size_t diagonal = at;
      double sum = 0;
      grid.for_neighbours(r, [&](Index neighbour, double t) {
        if (neighbour == r) diagonal = at;
        a.columns[at] = neighbour;
        a.values[at++] = -t;
        sum += t;
      });
      const Index j = grid.row_in_y(r);
      const int ends = (j == 0) + (j + 1 == grid.cells[1]);
      a.values[diagonal] = sum + ends * grid.half_cell_in_y(r);
    }
  });
  return a;
}

Spe10Grid read_spe10(const std::string& kx_path, const std::string& kz_path, const std::array<Index, 3>& cells) {
  return {cells, read_permeability(kx_path, cells), read_permeability(kz_path, cells)};
}

}  // namespace krilu::io
