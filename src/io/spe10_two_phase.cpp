// SPDX-License-Identifier: Apache-2.0
// The two-phase system of SPE10; see spe10_two_phase.hpp. The balance of phase f (oil, water) in cell c is
//
//   F_f = V phi(p) S_f b_f(p) / dt - (the same a step ago) + sum over faces of C T k_f(S_u) / mu_f b_f(p_u) (p - p_m),
//
// p_m being the pressure on the other side, and u the side with the higher pressure (upstream weighting); the lower
// cell where they are equal, so that both sides of a face agree. b is what a reservoir barrel is at the surface,
// k_f = ((S_f - 0.2) / 0.6)^2 the relative permeability, V a cell in barrels, and T that of spe10.hpp. Faces at the
// two ends in y have the half cell's T, and outside stands water with residual oil (water saturation 0.8).
//
// Derivatives come along with the values, in numbers that carry two (forward differentiation). Each face is worked out
// from both its sides. Cost: one pass over the matrix.
#include "io/spe10_two_phase.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "exec/host.hpp"
#include "krilu/error.hpp"

namespace krilu::io {

namespace {

constexpr double darcy = 0.001127;             // C: mD ft psi / cp in barrels a day
constexpr double barrel = 5.614583;            // cubic feet
constexpr double time_step = 1;                // day
constexpr double porosity = 0.2;               // phi at the reference pressure
constexpr double rock_compressibility = 1e-6;  // of the pores, 1/psi
constexpr double residual_saturation = 0.2;    // of either phase
constexpr double reference_pressure = 6000;    // psi: the project's at the beginning
constexpr double high_pressure = 6000;         // psi, before y = 0
constexpr double low_pressure = 4000;          // psi, behind the last cell: that of the project's producers
constexpr double outside_saturation = 1 - residual_saturation;

/// A number with its derivatives by the pressure and by the saturation of one cell.
struct Number {
  double value, by_pressure, by_saturation;

  Number operator+(double x) const { return {value + x, by_pressure, by_saturation}; }
  Number operator*(double x) const { return {value * x, by_pressure * x, by_saturation * x}; }
  Number operator*(const Number& o) const {
    return {value * o.value, by_pressure * o.value + value * o.by_pressure,
            by_saturation * o.value + value * o.by_saturation};
  }
  void operator+=(const Number& o) {
    value += o.value;
    by_pressure += o.by_pressure;
    by_saturation += o.by_saturation;
  }
};

/// 1 at the reference pressure.
Number expansion(double p, double compressibility) {
  return {1 + compressibility * (p - reference_pressure), compressibility, 0};
}

struct Phase {
  bool water;
  double viscosity;         // cp
  double formation_volume;  // B at the reference pressure: reservoir barrels for one at the surface
  double compressibility;   // 1/psi

  Number saturation(double water_saturation) const {
    return water ? Number{water_saturation, 0, 1} : Number{1 - water_saturation, 0, -1};
  }
  Number b(double p) const { return expansion(p, compressibility) * (1 / formation_volume); }

  /// k b / mu: what flows through a face of T = 1 for 1 psi.
  Number mobility(double p, double s) const {
    Number moving = (saturation(s) + -residual_saturation) * (1 / (1 - 2 * residual_saturation));
    if (moving.value < 0 || moving.value > 1) moving = {std::clamp(moving.value, 0.0, 1.0), 0, 0};
    return moving * moving * b(p) * (1 / viscosity);
  }

  /// Surface barrels in a cell, by the time step.
  Number content(double p, double s) const {
    constexpr double volume = spe10_feet[0] * spe10_feet[1] * spe10_feet[2] / barrel;
    return expansion(p, rock_compressibility) * (porosity * volume / time_step) * saturation(s) * b(p);
  }
};

// B of oil is 1.02 at 800 psi and 1.01 at 8000 psi in the project's table, and 3 cp its viscosity at 8000 psi.
constexpr Phase oil{false, 3, 1.0128, 1.37e-6};
constexpr Phase water{true, 0.3, 1.01, 3e-6};

/// The derivatives of one cell's balance of one phase, gathered face by face.
class Balance {
 public:
  Balance(const Phase& phase, double p, double s) : phase_(phase), p_(p), s_(s), own_(phase.content(p, s)) {}

  /// Adds what leaves through a face; returns its derivatives by the pressure and saturation on the other side.
  Number face(double t, double p, double s, bool outward) {
    const double through = darcy * t, driving = through * (p_ - p);
    const Number mobility = outward ? phase_.mobility(p_, s_) : phase_.mobility(p, s);
    const Number carried{driving * mobility.value, driving * mobility.by_pressure, driving * mobility.by_saturation};
    const double pushed = through * mobility.value;
    Number mine{0, pushed, 0}, other{0, -pushed, 0};
    (outward ? mine : other) += carried;
    own_ += mine;
    return other;
  }
  void end(double t, double p) { face(t, p, outside_saturation, p_ > p); }
  const Number& own() const { return own_; }

 private:
  const Phase& phase_;
  double p_, s_;
  Number own_;
};

void require_room(const std::array<Index, 3>& cells) {
  const std::int64_t nx = cells[0], ny = cells[1], nz = cells[2];
  const std::int64_t blocks = nx * ny * nz + 2 * ((nx - 1) * ny * nz + nx * (ny - 1) * nz + nx * ny * (nz - 1));
  if (4 * blocks > std::numeric_limits<Offset>::max())
    throw Error(
        fmt::format("a two-phase system on {} x {} x {} cells has 2^31 nonzeros or more, too many for one matrix; "
                    "take fewer cells",
                    nx, ny, nz));
}

}  // namespace

TwoPhaseState spe10_two_phase_start(const std::array<Index, 3>& cells) {
  const std::size_t n = std::size_t(cells[0]) * std::size_t(cells[1]) * std::size_t(cells[2]);
  TwoPhaseState state{std::vector<double>(n), std::vector<double>(n, 0.25)};
  for (std::size_t c = 0; c < n; ++c) {
    const std::size_t j = c / std::size_t(cells[0]) % std::size_t(cells[1]);
    state.pressure[c] = high_pressure + (low_pressure - high_pressure) * (double(j) + 0.5) / cells[1];
  }
  return state;
}

CsrMatrix spe10_two_phase_matrix(const Spe10Grid& grid, const TwoPhaseState& state) {
  require_room(grid.cells);
  const Index n = grid.size();
  const double* const p = state.pressure.data();
  const double* const s = state.saturation.data();
  CsrMatrix a;
  a.rows = a.cols = 2 * n;
  a.offsets.resize(2 * std::size_t(n) + 1);
  a.offsets[0] = 0;
  for (Index c = 0; c < n; ++c) {
    const Offset length = 2 * grid.neighbours(c);
    for (std::size_t r = 2 * std::size_t(c); r < 2 * std::size_t(c) + 2; ++r) a.offsets[r + 1] = a.offsets[r] + length;
  }
  a.columns.resize(std::size_t(a.nnz()));
  a.values.resize(std::size_t(a.nnz()));

  const auto fill = [&](std::size_t row, Index c, const Phase& phase) {
    Balance balance(phase, p[c], s[c]);
    auto at = std::size_t(a.offsets[row]);
    const auto store = [&](std::size_t e, Index m, const Number& derivatives) {
      a.columns[e] = 2 * m;
      a.columns[e + 1] = 2 * m + 1;
      a.values[e] = derivatives.by_pressure;
      a.values[e + 1] = derivatives.by_saturation;
    };
    std::size_t diagonal = at;
    grid.for_neighbours(c, [&](Index m, double t) {
      if (m == c)
        diagonal = at;
      else
        store(at, m, balance.face(t, p[m], s[m], p[c] > p[m] || (p[c] == p[m] && c < m)));
      at += 2;
    });
    if (grid.row_in_y(c) == 0) balance.end(grid.half_cell_in_y(c), high_pressure);
    if (grid.row_in_y(c) + 1 == grid.cells[1]) balance.end(grid.half_cell_in_y(c), low_pressure);
    store(diagonal, c, balance.own());
  };
  exec::Host().for_each_range(std::size_t(n), [&](Index begin, Index end) {
    for (Index c = begin; c < end; ++c) {
      fill(2 * std::size_t(c), c, oil);
      fill(2 * std::size_t(c) + 1, c, water);
    }
  });
  return a;
}

}  // namespace krilu::io
