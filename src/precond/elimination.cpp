// SPDX-License-Identifier: Apache-2.0
#include "precond/elimination.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "exec/threads.hpp"

namespace krilu::precond {

namespace {

/// Consecutive rows that one thread takes at a time where threads wait for one another.
constexpr Index chunk = 32;

class Eliminator {
 public:
  Eliminator(const EliminationPattern& p, double* value, double* reciprocal)
      : columns_(p.rows.columns),
        offsets_(p.rows.offsets),
        diagonal_(p.diagonal),
        value_(value),
        reciprocal_(reciprocal) {}

  /// given(p) is A's value at place p; ready(k) returns once row k is done. `work` has an entry a row; what it holds
  /// elsewhere than in row i's places is never read, so updates that the pattern drops need no test.
  template <class Given, class Ready>
  bool row(Index i, double* work, const Given& given, const Ready& ready) const {
    const Offset begin = offsets_[i], middle = diagonal_[i], end = offsets_[i + 1];
    for (Offset p = begin; p < end; ++p) work[columns_[p]] = given(p);
    for (Offset p = begin; p < middle; ++p) {
      const Index k = columns_[p];
      ready(k);
      const double multiplier = work[k] * reciprocal_[k];
      value_[p] = multiplier;
      const Offset last = offsets_[k + 1];
      for (Offset t = diagonal_[k] + 1; t < last; ++t) work[columns_[t]] -= multiplier * value_[t];
    }
    const bool good = close(i, work[i]);  // first, as the next row waits for it
    for (Offset p = middle + 1; p < end; ++p) value_[p] = work[columns_[p]];
    return good;
  }

  /// DILU's: e_i = a_ii - sum over k < i of a_ik a_ki / e_k.
  template <class Ready>
  bool pivot(Index i, const Ready& ready) const {
    const Offset middle = diagonal_[i];
    double e = value_[middle];
    for (Offset p = offsets_[i]; p < middle; ++p) {
      const Index k = columns_[p];
      ready(k);
      const double multiplier = value_[p] * reciprocal_[k];
      value_[p] = multiplier;
      const Index* const first = columns_ + diagonal_[k] + 1;
      const Index* const last = columns_ + offsets_[k + 1];
      const Index* const mirror = std::lower_bound(first, last, i);
      if (mirror != last && *mirror == i) e -= multiplier * value_[mirror - columns_];
    }
    return close(i, e);
  }

 private:
  bool close(Index i, double pivot) const {
    const double r = 1 / pivot;
    const bool good = std::isfinite(r) && r != 0;
    value_[diagonal_[i]] = good ? pivot : 1;
    reciprocal_[i] = good ? r : 1;
    return good;
  }

  const Index* columns_;
  const Offset *offsets_, *diagonal_;
  double *value_, *reciprocal_;
};

/// All rows, each by row(i, work, ready), which is false for a bad pivot. Returns the first row with one, or -1.
template <class Row>
Index eliminate_rows(const exec::Host& host, const EliminationPattern& pattern, const Row& row) {
  const Index n = pattern.rows.rows;
  constexpr Index none = std::numeric_limits<Index>::max();
  std::atomic<Index> first_bad{none};
  const auto eliminate_row = [&](Index i, double* work, const auto& ready) {
    if (row(i, work, ready)) return;
    Index seen = first_bad;
    while (i < seen && !first_bad.compare_exchange_weak(seen, i)) {
    }
  };
  const auto at_once = [](Index) {};
  const auto blocks = std::max<std::size_t>(pattern.blocks.size(), 1) - 1;
  const int threads = n >= 4 * chunk * host.threads() ? host.threads() : 1;
  if (blocks >= 4 * std::size_t(host.threads())) {
    std::atomic<std::size_t> next{0};
    host.parallel([&](int, int) {
      Buffer<double> work(static_cast<std::size_t>(n), 0.0);
      for (std::size_t b = next++; b < blocks; b = next++)
        for (Index i = pattern.blocks[b]; i < pattern.blocks[b + 1]; ++i) eliminate_row(i, work.data(), at_once);
    });
  } else if (threads == 1) {  // to ask whose a row is would take a fifth of the time
    Buffer<double> work(static_cast<std::size_t>(n), 0.0);
    for (Index i = 0; i < n; ++i) eliminate_row(i, work.data(), at_once);
  } else {
    exec::Progress progress(threads);
    host.parallel(threads, [&](int me, int team) {
      Buffer<double> work(static_cast<std::size_t>(n), 0.0);
      const auto ready = [&](Index k) {
        if (const int owner = int(k / chunk) % team; owner != me) progress.wait(owner, k + 1);
      };
      for (Index first = chunk * me; first < n; first += chunk * team)
        for (Index i = first; i < std::min(n, first + chunk); ++i) {
          eliminate_row(i, work.data(), ready);
          if (team > 1) progress.publish(me, i + 1);
        }
      progress.publish(me, n);
    });
  }
  return first_bad == none ? -1 : first_bad.load();
}

}  // namespace

std::vector<Offset> diagonal_positions(const exec::Host& host, const CsrView& a) {
  std::vector<Offset> at(std::size_t(a.rows));
  host.for_each_range(at.size(), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      at[std::size_t(i)] =
          Offset(std::lower_bound(a.columns + a.offsets[i], a.columns + a.offsets[i + 1], i) - a.columns);
  });
  return at;
}

Index eliminate(const exec::Host& host, const EliminationPattern& pattern, Updated updated, double* value) {
  Buffer<double> reciprocal(static_cast<std::size_t>(pattern.rows.rows));
  const Eliminator by(pattern, value, reciprocal.data());
  if (updated == Updated::pivots)
    return eliminate_rows(host, pattern, [&](Index i, double*, const auto& ready) { return by.pivot(i, ready); });
  const auto given = [value](Offset p) { return value[p]; };
  return eliminate_rows(host, pattern,
                        [&](Index i, double* work, const auto& ready) { return by.row(i, work, given, ready); });
}

Index eliminate(const exec::Host& host, const EliminationPattern& pattern, const Offset* source, const double* a,
                double* value) {
  Buffer<double> reciprocal(static_cast<std::size_t>(pattern.rows.rows));
  const Eliminator by(pattern, value, reciprocal.data());
  const auto given = [source, a](Offset p) { return source[p] >= 0 ? a[source[p]] : 0.0; };
  return eliminate_rows(host, pattern,
                        [&](Index i, double* work, const auto& ready) { return by.row(i, work, given, ready); });
}

}  // namespace krilu::precond
