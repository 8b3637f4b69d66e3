// SPDX-License-Identifier: Apache-2.0
// The two-phase system of SPE10: its Jacobian against difference quotients of the balances, written down a second time
// below, face by face in long double; one cell by hand; what the sums of columns must be; and the real model where its
// files are at hand.
#include "io/spe10_two_phase.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "support/support.hpp"

namespace {

using krilu::CsrMatrix;
using krilu::Index;
using krilu::Offset;
using krilu::io::Spe10Grid;
using krilu::io::TwoPhaseState;
using Real = long double;

enum Phase { oil, water };

Real surface_volume(Phase f, Real p) {
  return f == oil ? (1 + 1.37e-6L * (p - 6000)) / 1.0128L : (1 + 3e-6L * (p - 6000)) / 1.01L;
}

Real mobility(Phase f, Real s) {
  const Real full = std::clamp(((f == oil ? 1 - s : s) - 0.2L) / 0.6L, Real(0), Real(1));
  return full * full / (f == oil ? 3 : 0.3L);
}

/// Surface barrels of a phase in a cell of 20 x 10 x 2 ft.
Real content(Phase f, Real p, Real s) {
  return 400 / 5.614583L * 0.2L * (1 + 1e-6L * (p - 6000)) * (f == oil ? 1 - s : s) * surface_volume(f, p);
}

/// The balances of all cells, oil and water in turn, without what the cells held before. `unknowns` are pressure and
/// saturation in turn.
std::vector<Real> balances(const Spe10Grid& g, const std::vector<Real>& unknowns) {
  const auto [nx, ny, nz] = g.cells;
  std::vector<Real> balance(unknowns.size(), 0);
  const auto cell = [&](Index i, Index j, Index k) { return std::size_t(i + nx * (j + ny * k)); };
  const auto flow = [&](Phase f, Real t, std::pair<Real, Real> from, std::pair<Real, Real> to) {
    const auto [p, s] = from.first > to.first ? from : to;
    return 0.001127L * t * mobility(f, s) * surface_volume(f, p) * (from.first - to.first);
  };
  const auto at = [&](std::size_t c) { return std::pair{unknowns[2 * c], unknowns[2 * c + 1]}; };
  const auto face = [&](const std::vector<double>& k, std::size_t c, std::size_t d, Real area_by_distance) {
    const Real t = area_by_distance * 2 * k[c] * k[d] / (Real(k[c]) + k[d]);
    for (Phase f : {oil, water}) {
      const Real q = flow(f, t, at(c), at(d));
      balance[2 * c + f] += q;
      balance[2 * d + f] -= q;
    }
  };
  for (Index k = 0; k < nz; ++k)
    for (Index j = 0; j < ny; ++j)
      for (Index i = 0; i < nx; ++i) {
        const std::size_t c = cell(i, j, k);
        const auto [p, s] = at(c);
        for (Phase f : {oil, water}) {
          balance[2 * c + f] += content(f, p, s);
          if (j == 0) balance[2 * c + f] += flow(f, 8 * g.kx[c], at(c), {6000, 0.8L});
          if (j + 1 == ny) balance[2 * c + f] += flow(f, 8 * g.kx[c], at(c), {4000, 0.8L});
        }
        if (i + 1 < nx) face(g.kx, c, cell(i + 1, j, k), 1);
        if (j + 1 < ny) face(g.kx, c, cell(i, j + 1, k), 4);
        if (k + 1 < nz) face(g.kz, c, cell(i, j, k + 1), 100);
      }
  return balance;
}

Spe10Grid random_grid(const std::array<Index, 3>& cells, std::uint64_t seed) {
  Spe10Grid g{cells, {}, {}};
  const std::size_t n = std::size_t(g.size());
  g.kx = krilu::random_vector(n, seed, -3, 4);
  g.kz = krilu::random_vector(n, seed + n, -4, 3);
  for (double& k : g.kx) k = std::pow(10, k);
  for (double& k : g.kz) k = std::pow(10, k);
  return g;
}

constexpr Real pressure_step = 10, saturation_step = 0.04L;

/// Central differences are exact but for rounding: a balance is quadratic in each unknown alone, as long as no step
/// changes a face's upstream side or crosses a residual saturation.
void expect_derivatives(const Spe10Grid& g, const TwoPhaseState& state) {
  const CsrMatrix a = krilu::io::spe10_two_phase_matrix(g, state);
  EXPECT_NO_THROW(krilu::require_valid(a));
  const krilu::test::Dense found = krilu::test::to_dense(a);
  const std::size_t n = state.pressure.size();
  ASSERT_EQ(found.size(), 2 * n);
  std::vector<Real> unknowns;
  for (std::size_t c = 0; c < n; ++c) {
    unknowns.push_back(state.pressure[c]);
    unknowns.push_back(state.saturation[c]);
  }
  for (std::size_t u = 0; u < 2 * n; ++u) {
    const Real step = u % 2 == 0 ? pressure_step : saturation_step;
    std::vector<Real> above = unknowns, below = unknowns;
    above[u] += step;
    below[u] -= step;
    above = balances(g, above);
    below = balances(g, below);
    Real largest = 0, rounding = 0;
    for (std::size_t r = 0; r < 2 * n; ++r) {
      largest = std::max(largest, std::abs(above[r] - below[r]) / (2 * step));
      rounding = std::max(rounding, 10 * std::numeric_limits<Real>::epsilon() * std::abs(above[r]) / step);
    }
    for (std::size_t r = 0; r < 2 * n; ++r)
      EXPECT_NEAR(found[r][u], double((above[r] - below[r]) / (2 * step)), double(1e-14L * largest + rounding))
          << "row " << r << ", column " << u;
  }
}

/// From 3050 to 6950 psi in random sequence, some beyond the pressures at the ends; no two of them, and none and an
/// end's, within two steps of one another.
std::vector<double> scattered_pressures(std::size_t n, std::uint64_t seed) {
  std::vector<double> p(n);
  for (std::size_t c = 0; c < n; ++c) p[c] = 3050 + 3900 * (double(c) + 0.5) / double(n);
  std::mt19937_64 random(seed);
  std::shuffle(p.begin(), p.end(), random);
  std::vector<double> sorted = p;
  sorted.insert(sorted.end(), {4000, 6000});
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) EXPECT_GT(sorted[i] - sorted[i - 1], 2 * pressure_step);
  return p;
}

TEST(Spe10TwoPhase, EntriesAreDerivativesOfTheBalances) {
  for (const std::array<Index, 3> cells : {std::array<Index, 3>{3, 4, 2}, {1, 5, 1}, {2, 1, 3}, {1, 1, 1}})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(::testing::Message() << cells[0] << " x " << cells[1] << " x " << cells[2] << ", seed " << seed);
      const Spe10Grid g = random_grid(cells, seed);
      const std::size_t n = std::size_t(g.size());
      expect_derivatives(g, {scattered_pressures(n, seed), krilu::random_vector(n, 200 * seed, 0.25, 0.75)});
    }
}

TEST(Spe10TwoPhase, APhaseBelowItsResidualSaturationStandsStill) {
  const Spe10Grid g = random_grid({2, 3, 2}, 9);
  expect_derivatives(g, {scattered_pressures(12, 3), krilu::random_vector(12, 4, 0.05, 0.15)});
  expect_derivatives(g, {scattered_pressures(12, 5), krilu::random_vector(12, 6, 0.85, 0.95)});
}

TEST(Spe10TwoPhase, OneCellByHand) {
  const CsrMatrix a = krilu::io::spe10_two_phase_matrix({{1, 1, 1}, {100}, {5}}, {{5000}, {0.5}});
  ASSERT_EQ(a.rows, 2);
  ASSERT_EQ(a.nnz(), 4);
  // Pores of 400 ft^3 x 0.2 x (1 - 0.001), in barrels; both mobile saturations are half of what they can be.
  const double pores = 80 * 0.999 / 5.614583, bo = (1 - 1.37e-3) / 1.0128, bw = (1 - 3e-3) / 1.01;
  const double oil_out = 0.25 / 3, water_out = 0.25 / 0.3, water_in = 1 / 0.3, through = 0.001127 * 8 * 100;
  // Oil leaves at 4000 psi and does not enter; water that enters is that of 6000 psi, whose b is 1 / 1.01.
  EXPECT_NEAR(
      a.values[0],
      0.5 * (pores * 1.37e-6 / 1.0128 + 80e-6 / 5.614583 * bo) + through * oil_out * (bo + 1000 * 1.37e-6 / 1.0128),
      1e-14);
  EXPECT_NEAR(a.values[1], -pores * bo - through * 2 * 0.5 / 0.6 / 3 * bo * 1000, 1e-10);
  EXPECT_NEAR(a.values[2],
              0.5 * (pores * 3e-6 / 1.01 + 80e-6 / 5.614583 * bw) +
                  through * (water_in / 1.01 + water_out * (bw + 1000 * 3e-6 / 1.01)),
              1e-13);
  EXPECT_NEAR(a.values[3], pores * bw + through * 2 * 0.5 / 0.6 / 0.3 * bw * 1000, 1e-9);
}

TEST(Spe10TwoPhase, BlocksAreStoredWholeWithTheirZeros) {
  const Spe10Grid g = random_grid({3, 4, 2}, 5);
  const CsrMatrix one_phase = krilu::io::spe10_matrix(g);
  const CsrMatrix a = krilu::io::spe10_two_phase_matrix(g, krilu::io::spe10_two_phase_start(g.cells));
  ASSERT_EQ(a.rows, 48);
  ASSERT_EQ(a.nnz(), 4 * one_phase.nnz());
  Index zeros = 0;
  for (Index r = 0; r < a.rows; ++r) {
    const Offset begin = a.offsets[std::size_t(r)], other = one_phase.offsets[std::size_t(r / 2)];
    ASSERT_EQ(a.offsets[std::size_t(r) + 1] - begin, 2 * (one_phase.offsets[std::size_t(r / 2) + 1] - other));
    for (Offset e = begin; e < a.offsets[std::size_t(r) + 1]; ++e) {
      EXPECT_EQ(a.columns[std::size_t(e)],
                2 * one_phase.columns[std::size_t(other + (e - begin) / 2)] + (e - begin) % 2);
      zeros += a.values[std::size_t(e)] == 0;
      if (a.columns[std::size_t(e)] == r) {
        EXPECT_GT(a.values[std::size_t(e)], 0) << "row " << r;
      }
    }
  }
  // Saturations across faces in x and z, where nothing flows, on both sides; across those in y, of what is downstream.
  EXPECT_EQ(zeros, 2 * (2 * (2 * 4 * 2 + 3 * 4 * 1) + 3 * 3 * 2));
}

TEST(Spe10TwoPhase, TheStartIsALinearPressureAndLittleWater) {
  const TwoPhaseState state = krilu::io::spe10_two_phase_start({2, 4, 2});
  ASSERT_EQ(state.pressure.size(), 16u);
  ASSERT_EQ(state.saturation.size(), 16u);
  const double expected[] = {5750, 5250, 4750, 4250};
  for (std::size_t c = 0; c < 16; ++c) {
    EXPECT_DOUBLE_EQ(state.pressure[c], expected[c / 2 % 4]);
    EXPECT_EQ(state.saturation[c], 0.25);
  }
}

TEST(Spe10TwoPhase, PressuresThatAreEqualShareOneUpstreamSide) {
  // Nothing flows between the two. By the derivatives a change would move what is in the first cell, whichever way.
  const Spe10Grid g{{2, 1, 1}, {100, 100}, {1, 1}};
  const krilu::test::Dense a = krilu::test::to_dense(krilu::io::spe10_two_phase_matrix(g, {{5000, 5000}, {0.3, 0.7}}));
  for (Phase f : {oil, water}) {
    const Real moved = 0.001127L * 100 * mobility(f, 0.3L) * surface_volume(f, 5000);
    EXPECT_NEAR(a[f][2], double(-moved), 1e-15);
    EXPECT_NEAR(a[2 + f][0], double(-moved), 1e-15);
    EXPECT_EQ(a[f][3], 0);
    EXPECT_EQ(a[2 + f][1], 0);
  }
}

TEST(Spe10TwoPhase, AnyNumberOfThreadsGivesTheSameBits) {
#if defined(_OPENMP)
  const Spe10Grid g = random_grid({30, 40, 20}, 3);
  const TwoPhaseState state = krilu::io::spe10_two_phase_start(g.cells);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const CsrMatrix one = krilu::io::spe10_two_phase_matrix(g, state);
  omp_set_num_threads(3);
  const CsrMatrix three = krilu::io::spe10_two_phase_matrix(g, state);
  omp_set_num_threads(before);
  ASSERT_EQ(one.nnz(), three.nnz());
  EXPECT_EQ(std::memcmp(one.values.data(), three.values.data(), std::size_t(one.nnz()) * sizeof(double)), 0);
  EXPECT_EQ(std::memcmp(one.columns.data(), three.columns.data(), std::size_t(one.nnz()) * sizeof(Index)), 0);
#else
  GTEST_SKIP() << "this krilu was built without OpenMP";
#endif
}

TEST(Spe10TwoPhase, TooManyCellsAreRefused) {
  try {
    krilu::io::spe10_two_phase_matrix({{1000, 1000, 80}, {}, {}}, {});
    FAIL() << "no error";
  } catch (const krilu::Error& e) {
    EXPECT_NE(std::string(e.what()).find("1000 x 1000 x 80 cells has 2^31 nonzeros or more"), std::string::npos)
        << e.what();
  }
}

TEST(Spe10TwoPhase, AsAGenerator) {
  const auto expect_error = [](const std::string& text, const std::vector<std::string>& words) {
    try {
      krilu::generate(text);
      FAIL() << text << ": no error";
    } catch (const krilu::Error& e) {
      const std::string message = e.what();
      for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << word << "\n" << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  };
  EXPECT_TRUE(krilu::is_generator("gen:spe10-2p:a,b"));
  for (const char* text :
       {"gen:spe10-2p", "gen:spe10-2p:", "gen:spe10-2p:a", "gen:spe10-2p:a,", "gen:spe10-2p:,b", "gen:spe10-2p:a,b,c"})
    expect_error(text, {text, "one comma between them", "gen:spe10-2p:KX,KZ", "spe10, spe10-2p"});
  expect_error("gen:spe10-2:a,b", {"did you mean 'spe10-2p'?"});
  // A colon belongs to the name, and the size is that of the model.
  const krilu::test::TemporaryFolder folder;
  const std::string colon = folder.file("k:x");
  std::ofstream(colon) << "1\n2\n3\n";
  expect_error("gen:spe10-2p:" + colon + "," + colon,
               {colon, "holds 3 permeabilities", "60 x 220 x 85 = 1122000 cells"});
}

/// What leaves a cell enters another: a column's sum over the balances of a phase is the derivative of what the cell
/// holds, but for the cells at the ends.
TEST(Spe10TwoPhase, TheModelItself) {
#if !defined(KRILU_HAS_ZLIB)
  GTEST_SKIP() << "its files are compressed and this krilu was built without zlib";
#endif
  KRILU_REQUIRE_MATRIX(kx_path, "spe10/spe10_model2_kx.txt.gz");
  KRILU_REQUIRE_MATRIX(kz_path, "spe10/spe10_model2_kz.txt.gz");
  const CsrMatrix a = krilu::generate("gen:spe10-2p:" + kx_path.string() + "," + kz_path.string());
  ASSERT_EQ(a.rows, 2244000);
  ASSERT_EQ(a.cols, 2244000);
  ASSERT_EQ(a.nnz(), 31120000);
  EXPECT_NO_THROW(krilu::require_valid(a));

  struct Sum {
    Real sum = 0, magnitude = 0;
  };
  std::array<std::vector<Sum>, 2> sums{std::vector<Sum>(2244000), std::vector<Sum>(2244000)};
  Index not_finite = 0, bad_diagonals = 0, zeros = 0;
  for (std::size_t r = 0; r < 2244000; ++r)
    for (Offset e = a.offsets[r]; e < a.offsets[r + 1]; ++e) {
      const double v = a.values[std::size_t(e)];
      const auto column = std::size_t(a.columns[std::size_t(e)]);
      not_finite += !std::isfinite(v);
      zeros += v == 0;
      bad_diagonals += column == r && !(v > 0);
      Sum& sum = sums[r % 2][column];
      sum.sum += v;
      sum.magnitude += std::abs(v);
    }
  EXPECT_EQ(not_finite, 0);
  EXPECT_EQ(bad_diagonals, 0);
  EXPECT_EQ(zeros, 2 * (2 * (59 * 220 * 85 + 60 * 220 * 84) + 60 * 219 * 85));
  Index bad_sums = 0;
  for (std::size_t c = 0; c < 1122000; ++c) {
    const std::size_t j = c / 60 % 220;
    if (j == 0 || j == 219) continue;
    const Real p = 6000 - 2000 * (Real(j) + 0.5L) / 220;
    for (Phase f : {oil, water}) {
      const Real by_pressure = (content(f, p + 1000, 0.25L) - content(f, p - 1000, 0.25L)) / 2000;
      const Real by_saturation = (content(f, p, 0.5L) - content(f, p, 0)) * 2;
      const Sum &pressure = sums[f][2 * c], &saturation = sums[f][2 * c + 1];
      bad_sums += !(std::abs(pressure.sum - by_pressure) <= 1e-14L * pressure.magnitude);
      bad_sums += !(std::abs(saturation.sum - by_saturation) <= 1e-14L * saturation.magnitude);
    }
  }
  EXPECT_EQ(bad_sums, 0);
  // The first two cells, in the files' own digits: 18.2808 and 28.5927 mD beside each other in x.
  const double t = 0.001127 * 2 * 18.2808 * 28.5927 / (18.2808 + 28.5927), p = 6000 - 2000 * 0.5 / 220;
  EXPECT_EQ(a.columns[2], 2);
  EXPECT_NEAR(a.values[2], -t * (0.55 * 0.55 / 0.36) / 3 * (1 + 1.37e-6 * (p - 6000)) / 1.0128, 1e-15);
}

}  // namespace
