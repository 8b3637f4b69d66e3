// SPDX-License-Identifier: Apache-2.0
// Finite volumes on a mesh; see finite_volume.hpp for the formulas. First one layer, its rows without diagonals and in
// ascending columns, faces that two cells share added up in the sequence of their numbers; then all layers in their
// order. A diagonal is summed in natural sequence, so that every order has the same values.
#include "io/finite_volume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/parse.hpp"
#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "mesh/cell_graph.hpp"

namespace krilu::io {

namespace {

constexpr std::int64_t largest_index = std::numeric_limits<Index>::max();

double norm(const Vector3& v) { return std::sqrt(dot(v, v)); }

/// d . n, from below bounded by a share of |d|.
double distance(const Vector3& d, const Vector3& area, double size) {
  constexpr double least = 0.05;
  return std::max(size > 0 ? dot(d, area) / size : 0, least * norm(d));
}

/// u, without its factor U.
class Stream {
 public:
  explicit Stream(const Buffer<Vector3>& centres) : low_(centres[0]) {
    Vector3 high = low_;
    for (const Vector3& c : centres) {
      low_ = {std::min(low_.x, c.x), std::min(low_.y, c.y), std::min(low_.z, c.z)};
      high = {std::max(high.x, c.x), std::max(high.y, c.y), std::max(high.z, c.z)};
    }
    const double longest = std::max({high.x - low_.x, high.y - low_.y, high.z - low_.z});
    scale_ = longest > 0 ? 1 / longest : 1;
  }
  Vector3 operator()(const Vector3& at) const {
    const double x = scale_ * (at.x - low_.x), y = scale_ * (at.y - low_.y);
    return {0.5 + 4 * y * (1 - y), x - 0.5, 0.5 - x};
  }

 private:
  Vector3 low_;
  double scale_;
};

/// The magnitudes of what faces put into rows.
struct Coefficients {
  Buffer<double> of_owner, of_neighbour;  // of each internal face, in the rows of its two cells
  Buffer<double> boundary;                // of each cell: the sum over its boundary faces
};

/// Of each boundary face: whether its patch is of type empty.
std::vector<char> empty_faces(const Mesh& mesh) {
  std::vector<char> empty(mesh.boundary.size(), 0);
  for (const Patch& p : mesh.patches)
    if (p.type == "empty") std::fill_n(empty.begin() + p.first, p.faces, char(1));
  return empty;
}

Coefficients coefficients_of(const exec::Host& host, const Mesh& mesh, const std::vector<char>& empty) {
  const std::size_t faces = mesh.owner.size();
  Coefficients c;
  c.of_owner.resize(faces);
  c.of_neighbour.resize(faces);
  c.boundary.assign(std::size_t(mesh.cells), 0.0);
  if (!mesh.has_geometry()) {
    std::fill(c.of_owner.begin(), c.of_owner.end(), 1.0);
    std::fill(c.of_neighbour.begin(), c.of_neighbour.end(), 1.0);
    for (std::size_t b = 0; b < mesh.boundary.size(); ++b)
      if (!empty[b]) c.boundary[std::size_t(mesh.boundary[b])] += 1;
    return c;
  }
  // First D and u . S, and the sum of |u . S| / D.
  const Stream stream(mesh.centre);
  double peclet = 0;
  host.reduce(
      faces,
      [&](Index face) {
        const auto f = std::size_t(face);
        const Vector3& area = mesh.area[f];
        const double size = norm(area);
        const double d =
            distance(mesh.centre[std::size_t(mesh.neighbour[f])] - mesh.centre[std::size_t(mesh.owner[f])], area, size);
        const double flux = dot(stream(mesh.face_centre[f]), area);
        c.of_owner[f] = size / d;
        c.of_neighbour[f] = flux;
        return size > 0 ? std::abs(flux) / size * d : 0;
      },
      [&](double sum) { peclet = sum / double(faces); });
  const double speed = peclet > 0 ? 1 / peclet : 0;
  host.for_each_range(faces, [&](Index begin, Index end) {
    for (auto f = std::size_t(begin); f < std::size_t(end); ++f) {
      const double diffusion = c.of_owner[f], flux = speed * c.of_neighbour[f];
      c.of_owner[f] = diffusion + std::max(-flux, 0.0);
      c.of_neighbour[f] = diffusion + std::max(flux, 0.0);
    }
  });
  for (std::size_t b = 0; b < mesh.boundary.size(); ++b) {
    if (empty[b]) continue;
    const auto cell = std::size_t(mesh.boundary[b]);
    const Vector3 &area = mesh.boundary_area[b], &centre = mesh.boundary_centre[b];
    const double size = norm(area), flux = speed * dot(stream(centre), area);
    c.boundary[cell] += size / distance(centre - mesh.centre[cell], area, size) + std::max(-flux, 0.0);
  }
  return c;
}

/// Of each cell: V / h^2, what couples it with its copies.
Buffer<double> between_layers(const exec::Host& host, const Mesh& mesh, const std::vector<char>& empty) {
  const auto cells = std::size_t(mesh.cells);
  Buffer<double> coupling(cells);
  std::fill(coupling.begin(), coupling.end(), 1.0);
  if (!mesh.has_geometry()) return coupling;
  if (std::find(empty.begin(), empty.end(), char(1)) != empty.end()) {
    std::fill(coupling.begin(), coupling.end(), 0.0);
    for (std::size_t b = 0; b < empty.size(); ++b)
      if (empty[b]) coupling[std::size_t(mesh.boundary[b])] += 0.5 * norm(mesh.boundary_area[b]);
  } else {
    host.for_each(cells, [size = coupling.data(), volume = mesh.volume.data()](Index c) {
      const double side = std::cbrt(volume[c]);
      size[c] = side * side;
    });
  }
  double square = 0;
  host.reduce(
      cells, [&](Index c) { return coupling[std::size_t(c)]; }, [&](double sum) { square = sum / double(cells); });
  host.for_each(cells,
                [out = coupling.data(), volume = mesh.volume.data(), square](Index c) { out[c] = volume[c] / square; });
  return coupling;
}

/// The rows of one layer without their diagonals.
struct Layer {
  Buffer<Offset> offsets;
  Buffer<Index> columns;
  Buffer<double> magnitudes;
};

Layer layer_of(const exec::Host& host, const Mesh& mesh, const Coefficients& c) {
  const mesh::CellFaces cells = mesh::cell_faces(host, mesh.cells, mesh.owner, mesh.neighbour);
  const auto n = std::size_t(mesh.cells);
  // f(row, its cells and faces, ascending).
  const auto for_rows = [&](auto f) {
    host.for_each_range(n, [&](Index begin, Index end) {
      std::vector<std::pair<Index, Index>> row;
      for (Index r = begin; r < end; ++r) {
        row.clear();
        for (Offset k = cells.offsets[std::size_t(r)]; k < cells.offsets[std::size_t(r) + 1]; ++k)
          row.emplace_back(cells.cell[std::size_t(k)], cells.face[std::size_t(k)]);
        std::sort(row.begin(), row.end());
        f(r, row);
      }
    });
  };
  Layer layer;
  layer.offsets.resize(n + 1);
  layer.offsets[0] = 0;
  for_rows([&](Index r, const auto& row) {
    Offset length = 0;
    for (std::size_t k = 0; k < row.size(); ++k) length += k == 0 || row[k].first != row[k - 1].first;
    layer.offsets[std::size_t(r) + 1] = length;
  });
  for (std::size_t r = 0; r < n; ++r) layer.offsets[r + 1] += layer.offsets[r];
  layer.columns.resize(std::size_t(layer.offsets[n]));
  layer.magnitudes.resize(layer.columns.size());
  for_rows([&](Index r, const auto& row) {
    auto at = std::size_t(layer.offsets[std::size_t(r)]);
    for (std::size_t k = 0; k < row.size(); ++k) {
      const auto [cell, face] = row[k];
      const auto f = std::size_t(face);
      const double magnitude = mesh.owner[f] == r ? c.of_owner[f] : c.of_neighbour[f];
      if (k > 0 && row[k - 1].first == cell) {
        layer.magnitudes[at - 1] += magnitude;
        continue;
      }
      layer.columns[at] = cell;
      layer.magnitudes[at++] = magnitude;
    }
  });
  return layer;
}

[[noreturn]] void refuse(const FiniteVolume& problem, const std::string& why) {
  throw Error(fmt::format("gen:fv:{}: {}", problem.mesh, why));
}

/// Where the matrix fits 31 bits and each row has sound coefficients.
void require_sound(const FiniteVolume& problem, const Coefficients& c, const Layer& layer) {
  const std::int64_t cells = std::int64_t(c.boundary.size()), layers = problem.layers;
  const std::int64_t nonzeros = layers * (layer.offsets.back() + cells) + 2 * (layers - 1) * cells;
  if (nonzeros > largest_index)
    refuse(problem, fmt::format("{} layers of {} cells give 2^31 nonzeros or more, too many for one matrix; take fewer",
                                layers, cells));
  bool given = false;
  for (std::size_t r = 0; r < c.boundary.size(); ++r) {
    double sum = c.boundary[r];
    given = given || sum > 0;
    for (auto k = std::size_t(layer.offsets[r]); k < std::size_t(layer.offsets[r + 1]); ++k) sum += layer.magnitudes[k];
    if (!std::isfinite(sum))
      refuse(problem,
             fmt::format("cell {}, counted from 0, has coefficients that are not finite: is its centre that of "
                         "a neighbour or of a boundary face, or are coordinates too large?",
                         r));
  }
  if (!given)
    refuse(problem, "the mesh has no boundary but patches of type empty, so that the matrix would be singular");
}

}  // namespace

FiniteVolume parse_finite_volume(std::string_view arguments) {
  const auto wrong = [&](const std::string& why) {
    return Error(
        fmt::format("'gen:fv:{}': {}. It is gen:fv:MESH[,LAYERS[,ORDER]], such as gen:fv:mesh:tetrahedra:60x60x60 or "
                    "gen:fv:airfoil.su2,20,random:1; MESH is an OpenFOAM case, NAME.su2 or a generated mesh with no "
                    "comma in its name, ORDER natural, random[:SEED] or shuffled[:SEED]",
                    arguments, why));
  };
  const auto parts = split(arguments, ',');
  if (parts[0].empty()) throw wrong("needs a mesh");
  if (parts.size() > 3) throw wrong("has more than a mesh, layers and an order");
  FiniteVolume problem;
  problem.mesh = std::string(parts[0]);
  if (parts.size() > 1 && (!parse(parts[1], problem.layers) || problem.layers < 1))
    throw wrong("LAYERS is a whole number from 1 to 2147483647");
  if (parts.size() > 2) {
    const std::string why = mesh::read_cell_order(split(parts[2], ':'), problem.order);
    if (!why.empty()) throw wrong(why);
  }
  return problem;
}

CsrMatrix finite_volume_matrix(const Mesh& mesh, const FiniteVolume& problem) {
  const std::int64_t cells = mesh.cells, layers = problem.layers, rows = cells * layers;
  if (cells == 0) refuse(problem, "the mesh has no cells");
  // One row less than the largest number, as everywhere: offsets are one more.
  if (rows >= largest_index)
    refuse(problem, fmt::format("{} layers of {} cells are 2^31 rows or more; take fewer", layers, cells));
  const exec::Host host;
  const std::vector<char> empty = empty_faces(mesh);
  Coefficients coefficients = coefficients_of(host, mesh, empty);
  const Layer layer = layer_of(host, mesh, coefficients);
  require_sound(problem, coefficients, layer);
  Buffer<double>().swap(coefficients.of_owner);
  Buffer<double>().swap(coefficients.of_neighbour);
  const Buffer<double> between = layers > 1 ? between_layers(host, mesh, empty) : Buffer<double>();
  for (std::size_t c = 0; c < between.size(); ++c)
    if (!std::isfinite(between[c]))
      refuse(problem,
             fmt::format("cell {}, counted from 0, has no finite coefficient to the next layer: are its volume "
                         "and those of the others too far apart?",
                         c));

  const schedule::Order order = problem.order.of(Index(rows));
  const schedule::Order rank = schedule::inverse(order);
  CsrMatrix a;
  a.rows = a.cols = Index(rows);
  a.offsets.resize(std::size_t(rows) + 1);
  // f(row, layer, cell)
  const auto for_rows = [&](auto f) {
    host.for_each_range(std::size_t(rows), [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) {
        const Index natural = order.empty() ? r : order[std::size_t(r)];
        f(r, natural / mesh.cells, natural % mesh.cells);
      }
    });
  };
  a.offsets[0] = 0;
  for_rows([&](Index r, Index l, Index cell) {
    const auto c = std::size_t(cell);
    a.offsets[std::size_t(r) + 1] = layer.offsets[c + 1] - layer.offsets[c] + 1 + (l > 0) + (l + 1 < layers);
  });
  for (std::size_t r = 0; r < std::size_t(rows); ++r) a.offsets[r + 1] += a.offsets[r];
  a.columns.resize(std::size_t(a.nnz()));
  a.values.resize(a.columns.size());
  for_rows([&](Index r, Index l, Index cell) {
    const auto c = std::size_t(cell), first = std::size_t(a.offsets[std::size_t(r)]);
    auto at = first;
    double sum = 0;
    const auto add = [&](Index in_layer, Index other, double magnitude) {
      const Index natural = in_layer * mesh.cells + other;
      a.columns[at] = order.empty() ? natural : rank[std::size_t(natural)];
      a.values[at++] = -magnitude;
      sum += magnitude;
    };
    if (l > 0) add(l - 1, cell, between[c]);
    for (auto k = std::size_t(layer.offsets[c]); k < std::size_t(layer.offsets[c + 1]); ++k)
      add(l, layer.columns[k], layer.magnitudes[k]);
    if (l + 1 < layers) add(l + 1, cell, between[c]);
    a.columns[at] = r;
    a.values[at] = sum + coefficients.boundary[c];
    // By insertion: a row is short, and in natural order only its diagonal is out of place.
    for (std::size_t k = first + 1; k <= at; ++k)
      for (std::size_t j = k; j > first && a.columns[j] < a.columns[j - 1]; --j) {
        std::swap(a.columns[j], a.columns[j - 1]);
        std::swap(a.values[j], a.values[j - 1]);
      }
  });
  return a;
}

}  // namespace krilu::io
