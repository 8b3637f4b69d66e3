// SPDX-License-Identifier: Apache-2.0
// What the tests of rounded operators and preconditioners share: scales, formats with their unit roundoffs, vectors in
// single precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/half.hpp"
#include "sparse/rounding.hpp"
#include "support/matrices.hpp"

namespace krilu::test {

/// R and C, in the caller's order of rows. Empty: all 1.
struct Scaling {
  std::vector<double> row, column;
  double r(Index i) const { return row.empty() ? 1 : row[std::size_t(i)]; }
  double c(Index i) const { return column.empty() ? 1 : column[std::size_t(i)]; }
};
/// Powers of two from 2^-most to 2^most.
inline Scaling powers_of_two(Index n, int most, std::uint64_t seed) {
  return {random_powers(std::size_t(n), most, seed), random_powers(std::size_t(n), most, seed + 1)};
}

/// S: storage of values.
template <class S>
struct Stored;
template <>
struct Stored<float> {
  static constexpr Format format = Format::fp32;
  static constexpr double unit = 0x1p-24, smallest = 0x1p-149;
};
template <>
struct Stored<Half> {
  static constexpr Format format = Format::fp16;
  static constexpr double unit = 0x1p-11, smallest = 0x1p-24;
};
template <>
struct Stored<Bfloat16> {
  static constexpr Format format = Format::bf16;
  static constexpr double unit = 0x1p-8, smallest = 0x1p-133;
};
/// The most that rounding takes from v, where it does not overflow.
template <class S>
double rounding_error(double v) {
  return std::max(1.001 * Stored<S>::unit * std::abs(v), 0.5 * Stored<S>::smallest);
}

/// f(S{}) for each format, by name in what a failure says.
template <class F>
void for_formats(F f) {
  for (Format format : {Format::fp32, Format::fp16, Format::bf16}) {
    SCOPED_TRACE(to_string(format));
    with_format(format, f);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

inline std::vector<float> in_single(const std::vector<double>& v) { return {v.begin(), v.end()}; }
inline std::vector<double> in_double(const std::vector<float>& v) { return {v.begin(), v.end()}; }

}  // namespace krilu::test
