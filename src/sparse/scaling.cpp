// SPDX-License-Identifier: Apache-2.0
#include "sparse/scaling.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace krilu::sparse {

namespace {

constexpr int no_exponent = std::numeric_limits<int>::min() / 4;  // of a row without an entry other than zero

int exponent(double v) { return v == 0 ? no_exponent : int(std::bit_cast<std::uint64_t>(v) >> 52 & 0x7ff) - 1023; }

void raise_to(int& to, int value) {
  const std::atomic_ref<int> shared(to);
  int seen = shared.load(std::memory_order_relaxed);
  while (value > seen && !shared.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

std::vector<double> powers(const std::vector<int>& exponents) {
  std::vector<double> out(exponents.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::ldexp(1.0, exponents[i]);
  return out;
}

/// Whether the largest entries of all rows are within 2^most of 1.
bool keeps_within(const exec::Host& host, const CsrView& a, int most) {
  std::atomic<bool> far{false};
  host.for_each_range(std::size_t(a.rows), [&](Index begin, Index end) {
    bool any = false;
    for (Index i = begin; i < end; ++i) {
      double largest = 0;
      for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) largest = std::max(largest, std::abs(a.values[k]));
      any = any || (largest > 0 && std::abs(exponent(largest)) > most);
    }
    if (any) far = true;
  });
  return !far;
}

/// Largest entries near 2^top.
Scales iterated_maxima(const exec::Host& host, const CsrView& a, int top) {
  constexpr int passes = 12, near = 2;  // each pass halves what is left
  const auto n = std::size_t(a.rows);
  std::vector<int> row(n, 0), column(n, 0), row_most(n), column_most(n);
  for (int pass = 0; pass < passes; ++pass) {
    std::fill(column_most.begin(), column_most.end(), no_exponent);
    std::atomic<bool> off{false};
    host.for_each_range(n, [&](Index begin, Index end) {
      bool any_off = false;
      for (Index i = begin; i < end; ++i) {
        int most = no_exponent;
        for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
          const int e = exponent(a.values[k]) + row[std::size_t(i)] + column[std::size_t(a.columns[k])];
          most = std::max(most, e);
          raise_to(column_most[std::size_t(a.columns[k])], e);
        }
        row_most[std::size_t(i)] = most;
        any_off = any_off || (most > no_exponent / 2 && std::abs(most - top) > near);
      }
      if (any_off) off = true;
    });
    for (int most : column_most)
      if (most > no_exponent / 2 && std::abs(most - top) > near) off = true;
    if (pass > 0 && !off) break;
    const auto halve = [&](std::vector<int>& scale, const std::vector<int>& most) {
      for (std::size_t i = 0; i < n; ++i)
        if (most[i] > no_exponent / 2) scale[i] -= int(std::floor((most[i] - top + 1) / 2.0));
    };
    halve(row, row_most);
    halve(column, column_most);
  }
  std::int64_t sum = 0;
  for (int e : row) sum += e;
  return {powers(row), powers(column), std::ldexp(1.0, int(sum / std::max<std::int64_t>(1, std::int64_t(n))))};
}

}  // namespace

Scales scales_for(const exec::Host& host, const CsrView& a, Format storage) {
  // In fp16 the largest entries stand near the top of the range, so that small ones keep all their bits for long.
  if (storage == Format::fp16) return iterated_maxima(host, a, 12);
  if (keeps_within(host, a, 40)) return {};
  return iterated_maxima(host, a, 0);
}

Scales equilibrating_scales(const exec::Host& host, const CsrView& a) { return iterated_maxima(host, a, 0); }

}  // namespace krilu::sparse
