// SPDX-License-Identifier: Apache-2.0
// What the tests of HEC share, host's and GPU's: references in long double for triangular solves, and what they run on.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "support/matrices.hpp"

namespace krilu::test {

/// Entries of the longest row.
inline Index longest_row(const CsrView& a) {
  Index longest = 0;
  for (Index i = 0; i < a.rows; ++i) longest = std::max(longest, a.offsets[i + 1] - a.offsets[i]);
  return longest;
}

/// x with a x = b by substitution, a being triangular.
inline std::vector<double> substitution(const CsrMatrix& a, bool lower, const std::vector<double>& b) {
  std::vector<long double> x(b.size());
  for (Index n = 0; n < a.rows; ++n) {
    const Index i = lower ? n : a.rows - 1 - n;
    long double left = b[std::size_t(i)], diagonal = 0;
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      const Index j = a.columns[std::size_t(k)];
      if (j == i)
        diagonal = a.values[std::size_t(k)];
      else
        left -= a.values[std::size_t(k)] * x[std::size_t(j)];
    }
    x[std::size_t(i)] = left / diagonal;
  }
  return {x.begin(), x.end()};
}

struct Triangle {
  std::string name;
  CsrMatrix a;
  bool lower;
};
/// Both triangles of the cases that have a diagonal.
inline std::vector<Triangle> triangles_of(const std::vector<GpuCase>& cases) {
  std::vector<Triangle> all;
  for (const GpuCase& c : cases)
    if (c.full_diagonal)
      for (const bool lower : {true, false})
        all.push_back({c.name + (lower ? ", lower" : ", upper"), triangle_of(c.a, lower), lower});
  return all;
}

}  // namespace krilu::test
