// SPDX-License-Identifier: Apache-2.0
#include "triangular/hec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "exec/emulated.hpp"
#include "exec/threads.hpp"
#include "krilu/error.hpp"

namespace krilu::triangular {

namespace {

void require_triangle(const CsrView& a, bool lower) {
  require_valid(a);
  for (Index i = 0; i < a.rows; ++i) {
    const Offset begin = a.offsets[i], end = a.offsets[i + 1];
    if (begin < end) {
      const Index first = a.columns[begin], last = a.columns[end - 1];
      if (lower ? last > i : first < i)
        throw Error(
            fmt::format("row {} has an entry in column {}: the matrix is not {} triangular; hand over the "
                        "triangle alone",
                        i + 1, (lower ? last : first) + 1, lower ? "lower" : "upper"));
      const Offset diagonal = lower ? end - 1 : begin;
      if (a.columns[diagonal] == i && a.values[diagonal] != 0) continue;
      if (a.columns[diagonal] == i)
        throw ZeroPivot(fmt::format("row {} has a zero on its diagonal: a triangular solve divides by it", i + 1));
    }
    throw ZeroPivot(fmt::format("row {} has no entry on its diagonal: a triangular solve divides by it", i + 1));
  }
}

}  // namespace

CsrMatrix reversed(const CsrView& a) {
  CsrMatrix r;
  r.rows = a.rows;
  r.cols = a.cols;
  r.offsets.resize(std::size_t(a.rows) + 1);
  r.columns.resize(std::size_t(a.nnz()));
  r.values.resize(std::size_t(a.nnz()));
  r.offsets[0] = 0;
  for (Index i = 0; i < a.rows; ++i) {
    Offset to = r.offsets[std::size_t(i)];
    const Index from = a.rows - 1 - i;
    for (Offset k = a.offsets[from + 1]; k-- > a.offsets[from]; ++to) {
      r.columns[std::size_t(to)] = a.cols - 1 - a.columns[k];
      r.values[std::size_t(to)] = a.values[k];
    }
    r.offsets[std::size_t(i) + 1] = to;
  }
  return r;
}

HecLevels reorder_by_levels(const exec::Host& host, const CsrView& a, schedule::Triangle triangle) {
  const bool lower = triangle == schedule::Triangle::lower;
  require_triangle(a, lower);
  const CsrMatrix mirrored = lower ? CsrMatrix{} : reversed(a);
  const CsrView l = lower ? a : mirrored.view();
  const Index n = l.rows;

  HecLevels out;
  schedule::LevelOrder order = schedule::sort_by_level(schedule::levels_sync_free(host, {l}));
  out.level = std::move(order.offsets);
  out.row = std::move(order.rows);
  const std::vector<Index> place = schedule::inverse(out.row);

  CsrMatrix& m = out.lower;
  m.rows = m.cols = n;
  m.offsets.resize(std::size_t(n) + 1);
  m.columns.resize(std::size_t(l.nnz()));
  m.values.resize(std::size_t(l.nnz()));
  m.offsets[0] = 0;
  for (Index p = 0; p < n; ++p) {
    const Index i = out.row[std::size_t(p)];
    m.offsets[std::size_t(p) + 1] = m.offsets[std::size_t(p)] + l.offsets[i + 1] - l.offsets[i];
  }
  host.for_each_range(std::size_t(n), [&](Index begin, Index end) {
    std::vector<std::pair<Index, double>> entries;
    for (Index p = begin; p < end; ++p) {
      const Index i = out.row[std::size_t(p)];
      entries.clear();
      for (Offset k = l.offsets[i]; k < l.offsets[i + 1]; ++k)
        entries.emplace_back(place[std::size_t(l.columns[k])], l.values[k]);
      std::sort(entries.begin(), entries.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
      auto to = std::size_t(m.offsets[std::size_t(p)]);
      for (const auto& [column, value] : entries) {
        m.columns[to] = column;
        m.values[to++] = value;
      }
    }
  });
  if (!lower)
    for (Index& i : out.row) i = n - 1 - i;
  return out;
}

std::vector<HecStep> hec_steps(const std::vector<Index>& level, Index narrow_rows) {
  std::vector<HecStep> steps;
  for (Index l = 0; l + 1 < Index(level.size()); ++l) {
    const Index begin = level[std::size_t(l)], end = level[std::size_t(l) + 1];
    const bool shared = end - begin >= narrow_rows;
    if (!shared && !steps.empty() && !steps.back().shared) {
      steps.back().last = l + 1;
      steps.back().end = end;
    } else {
      steps.push_back({l, l + 1, begin, end, shared});
    }
  }
  return steps;
}

namespace {

template <class T>
struct Rows {
  sparse::HecView<T> l;
  const Index* row;
  const T* b;
  T* z;  // x'
  T* x;

  /// Rows begin .. end-1 of L', which are of one level.
  void solve(Index begin, Index end) const {
    while (begin < end) {
      const Index stop = std::min(end, (begin / 32 + 1) * 32);
      T sum[32] = {};
      sparse::add_ell(l, begin, stop, z, sum);
      for (Index i = begin; i < stop; ++i) {
        const Offset last = l.csr_offset[i + 1] - 1;  // the diagonal
        const T known = sum[i - begin] + sparse::csr_sum(l, l.csr_offset[i], last, z);
        z[i] = (b[row[i]] - known) / l.csr_value[last];
        x[row[i]] = z[i];
      }
      begin = stop;
    }
  }
};

template <class T>
void solve_steps(const exec::Host& host, const Rows<T>& rows, const Index* level, const std::vector<HecStep>& steps) {
  const bool any = std::any_of(steps.begin(), steps.end(), [](const HecStep& s) { return s.shared; });
  exec::SpinBarrier barrier;
  host.parallel(any ? host.threads() : 1, [&](int me, int team) {
    for (const HecStep& step : steps) {
      if (step.shared) {
        // Cut at multiples of 32, which is what add_ell wants for the same bits.
        const std::int64_t first = step.begin / 32, groups = (std::int64_t(step.end) + 31) / 32 - first;
        const auto cut = [&](int part) {
          return Index(std::clamp<std::int64_t>(32 * (first + groups * part / team), step.begin, step.end));
        };
        rows.solve(cut(me), cut(me + 1));
      } else if (me == 0) {
        for (Index l = step.first; l < step.last; ++l) rows.solve(level[l], level[l + 1]);
      }
      barrier.wait(team);
    }
  });
}

}  // namespace

template <class Space, class T>
void HecSolver<Space, T>::solve(const T* b, T* x) const {
  space_.enqueue([rows = Rows<T>{l_.view(), row_.data(), b, work_.data(), x}, level = level_.data(),
                  steps = &steps_](const exec::Host& host) { solve_steps(host, rows, level, *steps); });
}

template class HecSolver<exec::Host, double>;
template class HecSolver<exec::Emulated, double>;

}  // namespace krilu::triangular
