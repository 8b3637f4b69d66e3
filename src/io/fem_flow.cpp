// SPDX-License-Identifier: Apache-2.0
// Flow in a cavity by finite elements; see fem_flow.hpp. Elements have straight sides, with nodes in the middles of
// their sides and in their own, and three by three Gauss points. Each element fills the rows of the unknowns that it
// owns, from the matrices of the up to four elements that share them: no two threads write to one place, and sums do
// not depend on the number of threads. Cost: four element matrices an element, and a binary search for the place of
// each of their entries.
#include "io/fem_flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"

namespace krilu::io {

namespace {

constexpr std::size_t nodes = 9, velocities = 2 * nodes, pressures = 3, of_element = velocities + pressures;

using Pair = std::array<double, 2>;
using ElementMatrix = std::array<std::array<double, of_element>, of_element>;

/// A Gauss point, and there the functions that belong to the nodes and to the corners, with their slopes in the square
/// [-1, 1]^2.
struct GaussPoint {
  double weight;
  std::array<double, nodes> node;
  std::array<Pair, nodes> node_slope;
  std::array<double, 4> corner;
  std::array<Pair, 4> corner_slope;
};

std::array<GaussPoint, 9> gauss_points() {
  const double r = std::sqrt(0.6);
  const std::array<double, 3> place{-r, 0, r}, weight{5.0 / 9, 8.0 / 9, 5.0 / 9};
  const auto quadratic = [](double t) { return std::array{t * (t - 1) / 2, 1 - t * t, t * (t + 1) / 2}; };
  const auto quadratic_slope = [](double t) { return std::array{t - 0.5, -2 * t, t + 0.5}; };
  const auto linear = [](double t) { return std::array{(1 - t) / 2, (1 + t) / 2}; };
  const std::array<double, 2> linear_slope{-0.5, 0.5};
  std::array<GaussPoint, 9> points{};
  for (std::size_t q = 0; q < 9; ++q) {
    GaussPoint& p = points[q];
    const double x = place[q % 3], y = place[q / 3];
    p.weight = weight[q % 3] * weight[q / 3];
    for (std::size_t s = 0; s < nodes; ++s) {
      const double fx = quadratic(x)[s % 3], fy = quadratic(y)[s / 3];
      p.node[s] = fx * fy;
      p.node_slope[s] = {quadratic_slope(x)[s % 3] * fy, fx * quadratic_slope(y)[s / 3]};
    }
    for (std::size_t c = 0; c < 4; ++c) {
      const double fx = linear(x)[c % 2], fy = linear(y)[c / 2];
      p.corner[c] = fx * fy;
      p.corner_slope[c] = {linear_slope[c % 2] * fy, fx * linear_slope[c / 2]};
    }
  }
  return points;
}

/// w, of stream function 8 f(x / width) g(y).
Pair given_velocity(double width, const Pair& at) {
  const double x = at[0] / width, y = at[1];
  const double f = x * x * (1 - x) * (1 - x), f_slope = 2 * x * (1 - x) * (1 - 2 * x);
  const double g = y * y * (y * y - 1), g_slope = 2 * y * (2 * y * y - 1);
  return {8 * f * g_slope, -8 * f_slope / width * g};
}

/// Elements or nodes along one direction, from `first` to `last`.
struct Span {
  Index first, last;
  Index length() const { return last - first + 1; }
};

/// Which unknown is which. Nodes are counted from 0 to 2 n in each direction; those on walls have no unknowns.
class Numbering {
 public:
  Numbering(Index nx, Index ny) : nx_(nx), ny_(ny) {}

  /// The elements beside a node, along one direction.
  static Span elements(Index node) { return {(node - 1) / 2, node / 2}; }
  Span nodes_x(Span elements) const { return inner_nodes(elements, nx_); }
  Span nodes_y(Span elements) const { return inner_nodes(elements, ny_); }

  Index first(Index ex, Index ey) const {
    return 2 * (2 * ey * (2 * nx_ - 1) + 2 * ex * own(ey, ny_)) + Index(pressures) * (ey * nx_ + ex);
  }
  Index pressure(Index ex, Index ey) const { return first(ex, ey) + 2 * own(ex, nx_) * own(ey, ny_); }
  Index velocity(Index i, Index j) const {
    const Index ex = (i - 1) / 2, ey = (j - 1) / 2;
    return first(ex, ey) + 2 * ((j - 1) % 2 * own(ex, nx_) + (i - 1) % 2);
  }

  /// f(row, elements in x, elements in y) for the element's own unknowns in ascending sequence.
  template <class F>
  void for_own(Index ex, Index ey, F f) const {
    for (Index j = 2 * ey + 1; j <= 2 * ey + own(ey, ny_); ++j)
      for (Index i = 2 * ex + 1; i <= 2 * ex + own(ex, nx_); ++i)
        for (Index c = 0; c < 2; ++c) f(velocity(i, j) + c, elements(i), elements(j));
    for (Index k = 0; k < Index(pressures); ++k) f(pressure(ex, ey) + k, Span{ex, ex}, Span{ey, ey});
  }

  /// The element's unknowns in the sequence of its matrix: nodes x fastest, two velocities each, and the pressures. -1
  /// where the velocity is given.
  std::array<Index, of_element> unknowns(Index ex, Index ey) const {
    std::array<Index, of_element> u;
    for (Index s = 0; s < Index(nodes); ++s) {
      const Index i = 2 * ex + s % 3, j = 2 * ey + s / 3;
      const bool wall = i == 0 || i == 2 * nx_ || j == 0 || j == 2 * ny_;
      for (Index c = 0; c < 2; ++c) u[std::size_t(2 * s + c)] = wall ? -1 : velocity(i, j) + c;
    }
    for (Index k = 0; k < Index(pressures); ++k) u[velocities + std::size_t(k)] = pressure(ex, ey) + k;
    return u;
  }

  Offset row_length(Span x, Span y) const {
    return 2 * nodes_x(x).length() * nodes_y(y).length() + Index(pressures) * x.length() * y.length();
  }

  /// What the row of an unknown that has these elements beside it reads, ascending.
  void columns(Span x, Span y, Index* out) const {
    Index* const begin = out;
    const Span nx = nodes_x(x), ny = nodes_y(y);
    for (Index j = ny.first; j <= ny.last; ++j)
      for (Index i = nx.first; i <= nx.last; ++i)
        for (Index c = 0; c < 2; ++c) *out++ = velocity(i, j) + c;
    for (Index ey = y.first; ey <= y.last; ++ey)
      for (Index ex = x.first; ex <= x.last; ++ex)
        for (Index k = 0; k < Index(pressures); ++k) *out++ = pressure(ex, ey) + k;
    std::sort(begin, out);
  }

 private:
  static Span inner_nodes(Span e, Index n) { return {std::max(2 * e.first, 1), std::min(2 * e.last + 2, 2 * n - 1)}; }
  /// Along one direction, the nodes of an element that none before it has and that are on no wall.
  static Index own(Index element, Index n) { return element + 1 < n ? 2 : 1; }

  Index nx_, ny_;
};

ElementMatrix element_matrix(const FemFlow& flow, const std::array<Pair, 4>& corners) {
  static const std::array<GaussPoint, 9> points = gauss_points();
  const double width = double(flow.nx) / flow.ny;
  Pair centre{}, half{};
  for (std::size_t d = 0; d < 2; ++d) {
    const double a = corners[0][d], b = corners[1][d], c = corners[2][d], e = corners[3][d];
    centre[d] = (a + b + c + e) / 4;
    half[d] = d == 0 ? (b + e - a - c) / 4 : (c + e - a - b) / 4;
  }
  ElementMatrix m{};
  for (const GaussPoint& point : points) {
    Pair at{};
    std::array<Pair, 2> tangent{};  // the slopes of x and y along the square's two directions
    for (std::size_t c = 0; c < 4; ++c)
      for (std::size_t d = 0; d < 2; ++d) {
        at[d] += point.corner[c] * corners[c][d];
        for (std::size_t e = 0; e < 2; ++e) tangent[e][d] += point.corner_slope[c][e] * corners[c][d];
      }
    const double stretch = tangent[0][0] * tangent[1][1] - tangent[0][1] * tangent[1][0];
    const double volume = point.weight * stretch;
    const Pair w = given_velocity(width, at);
    const std::array<double, pressures> psi{1, (at[0] - centre[0]) / half[0], (at[1] - centre[1]) / half[1]};
    std::array<Pair, nodes> slope;
    for (std::size_t s = 0; s < nodes; ++s) {
      const Pair& p = point.node_slope[s];
      slope[s] = {(tangent[1][1] * p[0] - tangent[0][1] * p[1]) / stretch,
                  (tangent[0][0] * p[1] - tangent[1][0] * p[0]) / stretch};
    }
    for (std::size_t s = 0; s < nodes; ++s)
      for (std::size_t t = 0; t < nodes; ++t) {
        const Pair &v = slope[s], &u = slope[t];
        const double same =
            volume * (v[0] * u[0] + v[1] * u[1]) + volume * flow.reynolds * point.node[s] * (w[0] * u[0] + w[1] * u[1]);
        for (std::size_t c = 0; c < 2; ++c) {
          m[2 * s + c][2 * t + c] += same;
          for (std::size_t d = 0; d < 2; ++d) m[2 * s + c][2 * t + d] += volume * (v[d] * u[c]);
        }
      }
    for (std::size_t k = 0; k < pressures; ++k) {
      for (std::size_t s = 0; s < nodes; ++s)
        for (std::size_t c = 0; c < 2; ++c) m[2 * s + c][velocities + k] -= volume * psi[k] * slope[s][c];
      for (std::size_t l = 0; l < pressures; ++l)
        m[velocities + k][velocities + l] += flow.weight * flow.penalty * volume * (psi[k] * psi[l]);
    }
  }
  for (std::size_t k = 0; k < pressures; ++k)
    for (std::size_t v = 0; v < velocities; ++v) m[velocities + k][v] = -flow.weight * m[v][velocities + k];
  return m;
}

/// Where all parameters are in their ranges and the matrix has fewer than 2^31 nonzeros.
void require_sound(const FemFlow& flow) {
  const auto require = [](bool holds, const char* name, double value, const char* range) {
    if (!holds) throw Error(fmt::format("flow by finite elements: {} is {}; take a number {}", name, value, range));
  };
  require(flow.nx >= 1, "the number of elements in x", flow.nx, "from 1");
  require(flow.ny >= 1, "the number of elements in y", flow.ny, "from 1");
  require(flow.penalty >= 1e-100 && flow.penalty <= 1e100, "the penalty", flow.penalty, "from 1e-100 to 1e100");
  require(flow.reynolds >= 0 && flow.reynolds <= 1e100, "the Reynolds number", flow.reynolds, "from 0 to 1e100");
  require(flow.weight >= 1e-100 && flow.weight <= 1e100, "the weight", flow.weight, "from 1e-100 to 1e100");
  require(flow.grading >= 0 && flow.grading < 1, "the grading", flow.grading, "from 0, below 1");
  require(flow.distortion >= 0 && flow.distortion < 0.25, "the distortion", flow.distortion, "from 0, below 1/4");
  const std::int64_t nx = flow.nx, ny = flow.ny, most = std::numeric_limits<Offset>::max();
  // Pairs of neighbouring nodes along one direction, both inside.
  const auto pairs = [](std::int64_t n) { return n == 1 ? 1 : 8 * n - 9; };
  const auto nonzeros = [&] { return 4 * pairs(nx) * pairs(ny) + 12 * (3 * nx - 2) * (3 * ny - 2) + 9 * nx * ny; };
  if (nx * ny > most || nonzeros() > most)
    throw Error(
        fmt::format("flow by finite elements: {} x {} elements give 2^31 nonzeros or more, too many for one matrix; "
                    "take fewer elements",
                    nx, ny));
}

template <class N>
bool take(std::string_view& text, N& number) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc()) return false;
  text.remove_prefix(std::size_t(end - text.data()));
  return true;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

FemFlow parse_fem_flow(std::string_view arguments) {
  FemFlow flow;
  std::string_view text = arguments;
  const auto wrong = [&](const char* why) {
    return Error(
        fmt::format("'gen:femflow2d:{}': {}. It is gen:femflow2d:NXxNY[:SEED[,PENALTY[,REYNOLDS]]], such as "
                    "gen:femflow2d:16x16 or gen:femflow2d:16x16:1,2e-7,100",
                    arguments, why));
  };
  if (!take(text, flow.nx) || flow.nx < 1 || !take(text, 'x') || !take(text, flow.ny) || flow.ny < 1)
    throw wrong("its size is two whole numbers from 1 to 2147483647 with an x between them");
  if (take(text, ':')) {
    if (!take(text, flow.seed)) throw wrong("SEED is a whole number from 0");
    if (take(text, ',') && !take(text, flow.penalty)) throw wrong("PENALTY is a number above 0");
    if (take(text, ',') && !take(text, flow.reynolds)) throw wrong("REYNOLDS is a number from 0");
  }
  if (!text.empty()) throw wrong("it goes on where it should end");
  if (!(flow.penalty > 0)) throw wrong("PENALTY is a number above 0");
  if (!(flow.reynolds >= 0)) throw wrong("REYNOLDS is a number from 0");
  return flow;
}

std::vector<Pair> fem_flow_vertices(const FemFlow& flow) {
  require_sound(flow);
  const auto nx = std::size_t(flow.nx), ny = std::size_t(flow.ny), row = nx + 1;
  const double width = double(nx) / double(ny);
  const auto line = [&](std::size_t n, double length) {
    std::vector<double> x(n + 1);
    for (std::size_t i = 0; i <= n; ++i) {
      const double t = double(i) / double(n);
      x[i] = length * ((1 - flow.grading) * t + flow.grading * (t * t * (3 - 2 * t)));
    }
    return x;
  };
  const std::vector<double> x = line(nx, width), y = line(ny, 1);
  const auto moved = [&](const std::vector<double>& p, std::size_t i, double random) {
    return p[i] + flow.distortion * random * std::min(p[i] - p[i - 1], p[i + 1] - p[i]);
  };
  const std::vector<double> random = random_vector(2 * row * (ny + 1), flow.seed, -1, 1);
  std::vector<Pair> vertices(row * (ny + 1));
  for (std::size_t j = 0; j <= ny; ++j)
    for (std::size_t i = 0; i <= nx; ++i) {
      const std::size_t v = i + row * j;
      const bool wall = i == 0 || i == nx || j == 0 || j == ny;
      vertices[v] = wall ? Pair{x[i], y[j]} : Pair{moved(x, i, random[2 * v]), moved(y, j, random[2 * v + 1])};
    }
  return vertices;
}

CsrMatrix fem_flow_matrix(const FemFlow& flow) {
  const std::vector<Pair> vertices = fem_flow_vertices(flow);
  const Index nx = flow.nx, ny = flow.ny;
  const Numbering numbering(nx, ny);
  CsrMatrix a;
  a.rows = a.cols = 2 * (2 * nx - 1) * (2 * ny - 1) + Index(pressures) * nx * ny;
  a.offsets.resize(std::size_t(a.rows) + 1);
  a.offsets[0] = 0;
  for (Index ey = 0; ey < ny; ++ey)
    for (Index ex = 0; ex < nx; ++ex)
      numbering.for_own(ex, ey, [&](Index r, Span x, Span y) {
        a.offsets[std::size_t(r) + 1] = a.offsets[std::size_t(r)] + numbering.row_length(x, y);
      });
  a.columns.resize(std::size_t(a.nnz()));
  a.values.resize(std::size_t(a.nnz()));

  const auto matrix_of = [&](Index ex, Index ey) {
    const std::size_t v = std::size_t(ex) + std::size_t(nx + 1) * std::size_t(ey), above = v + std::size_t(nx) + 1;
    return element_matrix(flow, {vertices[v], vertices[v + 1], vertices[above], vertices[above + 1]});
  };
  const auto fill = [&](Index ex, Index ey) {
    Index end = 0;
    numbering.for_own(ex, ey, [&](Index r, Span x, Span y) {
      const auto at = std::size_t(a.offsets[std::size_t(r)]);
      numbering.columns(x, y, &a.columns[at]);
      std::fill_n(&a.values[at], numbering.row_length(x, y), 0.0);
      end = r + 1;
    });
    const Index begin = numbering.first(ex, ey);
    for (Index fy = ey; fy <= std::min(ey + 1, ny - 1); ++fy)
      for (Index fx = ex; fx <= std::min(ex + 1, nx - 1); ++fx) {
        const ElementMatrix m = matrix_of(fx, fy);
        const std::array<Index, of_element> unknown = numbering.unknowns(fx, fy);
        for (std::size_t r = 0; r < of_element; ++r) {
          if (unknown[r] < begin || unknown[r] >= end) continue;
          const auto row = a.columns.begin() + a.offsets[std::size_t(unknown[r])];
          const auto row_end = a.columns.begin() + a.offsets[std::size_t(unknown[r]) + 1];
          for (std::size_t c = 0; c < of_element; ++c)
            if (unknown[c] >= 0)
              a.values[std::size_t(std::lower_bound(row, row_end, unknown[c]) - a.columns.begin())] += m[r][c];
        }
      }
  };
  exec::Host().for_each_range(std::size_t(nx) * std::size_t(ny), [&](Index begin, Index end) {
    for (Index e = begin; e < end; ++e) fill(e % nx, e / nx);
  });
  return a;
}

}  // namespace krilu::io
