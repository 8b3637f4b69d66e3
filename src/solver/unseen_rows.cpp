// SPDX-License-Identifier: Apache-2.0
#include "solver/unseen_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace krilu::solver {

namespace {

/// The largest entry of each row.
std::vector<double> row_sizes(const CsrView& a) {
  std::vector<double> size(std::size_t(a.rows), 0.0);
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
      size[std::size_t(i)] = std::max(size[std::size_t(i)], std::abs(a.values[k]));
  return size;
}

double median(std::vector<double> v) {
  const auto middle = v.begin() + std::ptrdiff_t(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

}  // namespace

std::string unseen_rows(const CsrView& a, std::span<const double> b, std::span<const double> x, double rtol) {
  if (a.rows == 0) return "";
  constexpr double by_far = 1e8, as_well = 100, rounding = 1e-14;
  const std::vector<double> size = row_sizes(a);
  const double most = by_far * median(size);
  const auto is_large = [&](double s) { return s > most; };
  const auto large = std::count_if(size.begin(), size.end(), is_large);
  if (large == 0 || most == 0) return "";
  // In parts of what the terms of a row sum to, since b may be nothing there.
  double residual = 0, terms = 0, b_of_large = 0, b_of_others = 0;
  for (Index i = 0; i < a.rows; ++i) {
    double r = b[std::size_t(i)], t = std::abs(r);
    if (is_large(size[std::size_t(i)])) {
      b_of_large = std::max(b_of_large, t);
      continue;
    }
    b_of_others = std::max(b_of_others, t);
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const double term = a.values[k] * x[std::size_t(a.columns[k])];
      r -= term;
      t += std::abs(term);
    }
    residual += r * r;
    terms += t * t;
  }
  const double of_terms = terms > 0 ? std::sqrt(residual / terms) : 0;
  if (b_of_large < by_far * b_of_others || !(of_terms > as_well * std::max(rtol, rounding))) return "";
  const auto first = std::find_if(size.begin(), size.end(), is_large) - size.begin();
  return fmt::format(
      "{} row{} (row {}{}) hold{} entries {:.0e} times as large as most rows do, and the norm of b is theirs: in the "
      "other rows the residual is {:.1e} of what they sum up; divide such rows of A and b by their diagonals",
      large, large == 1 ? "" : "s", first + 1, large == 1 ? "" : " the first", large == 1 ? "s" : "",
      size[std::size_t(first)] / (most / by_far), of_terms);
}

}  // namespace krilu::solver
