// SPDX-License-Identifier: Apache-2.0
#include "sparse/ldu.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "krilu/error.hpp"
#include "sparse/coo.hpp"
#include "sparse/csr.hpp"

namespace krilu::sparse {

Ldu to_ldu(const CsrView& a) {
  const Symmetry symmetry = sparse::symmetry(a);
  Ldu m;
  m.cells = a.rows;
  m.diagonal.assign(std::size_t(a.rows), 0.0);
  // first[j]: the face of row j's next entry right of the diagonal whose mirror has not been met yet.
  std::vector<Index> first(std::size_t(a.rows) + 1, 0);
  for (Index i = 0; i < a.rows; ++i) {
    first[std::size_t(i)] = m.faces();
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      if (a.columns[k] == i) m.diagonal[std::size_t(i)] = a.values[k];
      if (a.columns[k] > i) {
        m.owner.push_back(i);
        m.neighbour.push_back(a.columns[k]);
        m.upper.push_back(a.values[k]);
      }
    }
  }
  if (symmetry.values) return m;
  first[std::size_t(a.rows)] = m.faces();
  const std::vector<Index> last(first.begin() + 1, first.end());
  m.lower.resize(m.upper.size());
  const auto refuse = [](Index i, Index j) {
    throw Error(
        fmt::format("entry ({}, {}) has no partner across the diagonal: face addressing needs a symmetric "
                    "pattern",
                    i + 1, j + 1));
  };
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1] && a.columns[k] < i; ++k) {
      const auto j = std::size_t(a.columns[k]);
      const Index f = first[j]++;
      if (f >= last[j] || m.neighbour[std::size_t(f)] > i) refuse(i, Index(j));
      if (m.neighbour[std::size_t(f)] < i) refuse(Index(j), m.neighbour[std::size_t(f)]);
      m.lower[std::size_t(f)] = a.values[k];
    }
  for (std::size_t j = 0; j < std::size_t(a.rows); ++j)
    if (first[j] < last[j]) refuse(Index(j), m.neighbour[std::size_t(first[j])]);
  return m;
}

CsrMatrix to_csr(const Ldu& m) {
  Coo c{m.cells, m.cells, {}, {}, {}};
  const auto add = [&](Index i, Index j, double v) {
    c.row.push_back(i);
    c.column.push_back(j);
    c.value.push_back(v);
  };
  for (Index i = 0; i < m.cells; ++i) add(i, i, m.diagonal[std::size_t(i)]);
  for (std::size_t f = 0; f < m.owner.size(); ++f) {
    if (m.owner[f] < 0 || m.owner[f] >= m.neighbour[f] || m.neighbour[f] >= m.cells)
      throw Error(fmt::format("face {} joins cells {} and {}: owners stand below neighbours, both within 0 to {}", f,
                              m.owner[f], m.neighbour[f], m.cells - 1));
    add(m.owner[f], m.neighbour[f], m.upper[f]);
    add(m.neighbour[f], m.owner[f], m.lower_or_upper()[f]);
  }
  CsrMatrix a = to_csr(c);
  if (std::size_t(a.nnz()) != c.entries()) throw Error("two faces join the same cells");
  return a;
}

void multiply(const Ldu& a, const double* x, double* y) {
  for (Index i = 0; i < a.cells; ++i) y[i] = a.diagonal[std::size_t(i)] * x[i];
  const Buffer<double>& lower = a.lower_or_upper();
  for (std::size_t f = 0; f < a.owner.size(); ++f) {
    y[a.neighbour[f]] += lower[f] * x[a.owner[f]];
    y[a.owner[f]] += a.upper[f] * x[a.neighbour[f]];
  }
}

}  // namespace krilu::sparse
