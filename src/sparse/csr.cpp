// SPDX-License-Identifier: Apache-2.0
#include "sparse/csr.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "krilu/error.hpp"

namespace krilu {

void require_valid(const CsrView& a) {
  if (a.rows != a.cols)
    throw Error(
        fmt::format("the matrix has {} rows and {} columns: a linear system needs a square one", a.rows, a.cols));
  if (a.rows < 0 || (a.rows > 0 && !a.offsets)) throw Error("the matrix has no row offsets");
  if (a.rows == 0) return;
  if (a.offsets[0] != 0) throw Error(fmt::format("the first row offset is {}: it must be 0", a.offsets[0]));
  for (Index i = 0; i < a.rows; ++i)  // all of them before any column is read by them
    if (a.offsets[i + 1] < a.offsets[i])
      throw Error(fmt::format("row {}: its offsets descend from {} to {}", i + 1, a.offsets[i], a.offsets[i + 1]));
  for (Index i = 0; i < a.rows; ++i) {
    Index last = -1;
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const Index j = a.columns[k];
      if (j < 0 || j >= a.cols)
        throw Error(fmt::format("row {}: column {} is outside 1 to {}", i + 1, std::int64_t(j) + 1, a.cols));
      if (j <= last)
        throw Error(fmt::format("row {}: column {} follows column {}: columns must ascend within a row, each once",
                                i + 1, j + 1, last + 1));
      last = j;
    }
  }
}

}  // namespace krilu

namespace krilu::sparse {

namespace {

template <class F>
void for_rows(const exec::Host& host, const CsrView& a, F f) {
  host.for_each_range(std::size_t(a.rows), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      f(i, a.offsets[i], a.offsets[i + 1]);
    }
  });
}

}  // namespace

void multiply(const exec::Host& host, const CsrView& a, const double* x, double* y) {
  for_rows(host, a, [a, x, y](Index i, Offset k, Offset end) {
    double sum = 0;
    for (; k < end; ++k) sum += a.values[k] * x[a.columns[k]];
    y[i] = sum;
  });
}

void residual(const exec::Host& host, const CsrView& a, const double* x, const double* b, double* r) {
  for_rows(host, a, [a, x, b, r](Index i, Offset k, Offset end) {
    double sum = 0;
    for (; k < end; ++k) sum += a.values[k] * x[a.columns[k]];
    r[i] = b[i] - sum;
  });
}

CsrMatrix transpose(const CsrView& a) {
  CsrMatrix t;
  t.rows = a.cols;
  t.cols = a.rows;
  t.offsets.assign(std::size_t(a.cols) + 1, 0);
  t.columns.resize(std::size_t(a.nnz()));
  if (a.values) t.values.resize(std::size_t(a.nnz()));
  for (Offset k = 0; k < a.nnz(); ++k) ++t.offsets[std::size_t(a.columns[k]) + 1];
  for (std::size_t j = 0; j < std::size_t(a.cols); ++j) t.offsets[j + 1] += t.offsets[j];
  std::vector<Offset> next(t.offsets.begin(), t.offsets.end() - 1);
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const auto at = std::size_t(next[std::size_t(a.columns[k])]++);
      t.columns[at] = i;
      if (a.values) t.values[at] = a.values[k];
    }
  return t;
}

CsrMatrix adjacency(const CsrView& a) {
  CsrView pattern = a;
  pattern.values = nullptr;
  // Where the pattern is its own transpose, the second pass of the union adds nothing, and the transpose is not built.
  const bool symmetric = symmetry(a).pattern;
  const CsrMatrix t = symmetric ? CsrMatrix{} : transpose(pattern);
  CsrMatrix g;
  g.rows = g.cols = a.rows;
  g.offsets.resize(std::size_t(a.rows) + 1);
  g.offsets[0] = 0;
  g.columns.reserve(std::size_t(a.nnz()) * (symmetric ? 1 : 2));
  for (Index i = 0; i < a.rows; ++i) {
    const Index* p = a.columns + a.offsets[i];
    const Index* p_end = a.columns + a.offsets[i + 1];
    const Index* q = symmetric ? p_end : t.columns.data() + t.offsets[std::size_t(i)];
    const Index* q_end = symmetric ? p_end : t.columns.data() + t.offsets[std::size_t(i) + 1];
    while (p < p_end || q < q_end) {
      const Index j = q == q_end || (p < p_end && *p <= *q) ? *p : *q;
      if (p < p_end && *p == j) ++p;
      if (q < q_end && *q == j) ++q;
      if (j != i) g.columns.push_back(j);
    }
    if (g.columns.size() > std::size_t(std::numeric_limits<Offset>::max()))
      throw Error("the pattern of A + A^T has 2^31 entries or more, which 32-bit positions cannot count");
    g.offsets[std::size_t(i) + 1] = static_cast<Offset>(g.columns.size());
  }
  return g;
}

Symmetry symmetry(const CsrView& a) {
  // cursor[j] walks the entries of row j right of the diagonal. Rows are visited in ascending order, so the entry
  // (i, j) left of the diagonal must meet exactly the next one of row j.
  Symmetry s{true, a.values != nullptr, 0};
  std::vector<Offset> cursor(std::size_t(a.rows));
  double difference = 0, largest = 0;
  for (Index i = 0; i < a.rows; ++i) {
    Offset k = a.offsets[i];
    for (; k < a.offsets[i + 1] && a.columns[k] < i; ++k) {
      const Index j = a.columns[k];
      Offset& c = cursor[std::size_t(j)];
      if (c == a.offsets[j + 1] || a.columns[c] != i) return {false, false, std::numeric_limits<double>::infinity()};
      if (a.values) {
        difference = std::max(difference, std::abs(a.values[k] - a.values[c]));
        largest = std::max({largest, std::abs(a.values[k]), std::abs(a.values[c])});
      }
      ++c;
    }
    if (k < a.offsets[i + 1] && a.columns[k] == i) {
      if (a.values) largest = std::max(largest, std::abs(a.values[k]));
      ++k;
    }
    cursor[std::size_t(i)] = k;
  }
  for (Index i = 0; i < a.rows; ++i)
    if (cursor[std::size_t(i)] != a.offsets[i + 1]) return {false, false, std::numeric_limits<double>::infinity()};
  s.values = a.values && difference == 0;
  s.largest = largest > 0 ? difference / largest : 0;
  return s;
}

namespace {

struct RowWeights {
  double diagonal = 0, others = 0;  // others: the sum of their magnitudes
  bool stored = false;              // the diagonal
  double dominance() const {
    return others > 0 ? std::abs(diagonal) / others : std::numeric_limits<double>::infinity();
  }
};
RowWeights weights_of(const CsrView& a, Index i) {
  RowWeights w;
  for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
    if (a.columns[k] == i) {
      w.diagonal = a.values[k];
      w.stored = true;
    } else {
      w.others += std::abs(a.values[k]);
    }
  }
  return w;
}

}  // namespace

DiagonalFacts diagonal_facts(const CsrView& a) {
  DiagonalFacts f;
  f.least_dominance = std::numeric_limits<double>::infinity();
  for (Index i = 0; i < a.rows; ++i) {
    const RowWeights w = weights_of(a, i);
    if (a.offsets[i] == a.offsets[i + 1] && f.empty_rows++ == 0) f.first_empty = i;
    if (!w.stored) ++f.missing;
    if (w.stored && w.diagonal == 0) ++f.zero;
    if (w.diagonal == 0 && f.first_bad < 0) f.first_bad = i;
    if (w.diagonal < 0) ++f.negative;
    if (std::abs(w.diagonal) >= w.others) ++f.dominant_rows;
    f.least_dominance = std::min(f.least_dominance, w.dominance());
  }
  return f;
}

Index bandwidth(const CsrView& a) {
  Index widest = 0;
  for (Index i = 0; i < a.rows; ++i)
    if (a.offsets[i] < a.offsets[i + 1])
      widest = std::max({widest, i - a.columns[a.offsets[i]], a.columns[a.offsets[i + 1] - 1] - i});
  return widest;
}

std::uint64_t pattern_hash(const exec::Host& host, const CsrView& a) {
  std::atomic<std::uint64_t> total{0};
  host.for_each_range(std::size_t(a.rows), [&](Index begin, Index end) {
    std::uint64_t sum = 0;
    for (Index i = begin; i < end; ++i) sum += scrambled_end(i, a.offsets[i + 1]);
    for (Offset k = a.offsets[begin]; k < a.offsets[end]; ++k) sum += scrambled(k, a.columns[k]);
    total += sum;
  });
  return pattern_hash_of(a.rows, total);
}

}  // namespace krilu::sparse
