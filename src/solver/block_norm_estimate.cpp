// SPDX-License-Identifier: Apache-2.0
#include "solver/block_norm_estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "krilu/buffer.hpp"

namespace krilu::solver {

namespace {

constexpr Index width = 2;      // t in the paper
constexpr int most_rounds = 5;  // itmax
constexpr Index small = 8;      // up to here the norm costs no more than an estimate

using Signs = std::vector<signed char>;

/// splitmix64's signs.
class RandomSigns {
 public:
  signed char next() {
    if (left_ == 0) {
      std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      bits_ = z ^ (z >> 31);
      left_ = 64;
    }
    --left_;
    const bool minus = bits_ & 1;
    bits_ >>= 1;
    return minus ? -1 : 1;
  }
  void fill(Signs& s) {
    for (signed char& v : s) v = next();
  }

 private:
  std::uint64_t state_ = 1, bits_ = 0;
  int left_ = 0;
};

bool parallel(const Signs& s, const Signs& t) {
  const bool same = s[0] == t[0];
  for (std::size_t i = 1; i < s.size(); ++i)
    if ((s[i] == t[i]) != same) return false;
  return true;
}

double norm1(const double* x, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::abs(x[i]);
  return sum;
}

double largest_column(const Buffer<double>& block, std::size_t n, Index& column) {
  double largest = -1;
  for (std::size_t c = 0; c * n < block.size(); ++c) {
    const double norm = norm1(block.data() + c * n, n);
    if (!std::isfinite(norm)) return std::numeric_limits<double>::infinity();
    if (norm > largest) {
      largest = norm;
      column = Index(c);
    }
  }
  return largest;
}

}  // namespace

BlockNorm estimate_norm1(Index rows, const BlockProduct& multiply, const BlockProduct& multiply_transposed) {
  BlockNorm result;
  const auto n = std::size_t(rows);
  if (n == 0) return result;
  Index column = 0;
  if (rows <= small) {
    Buffer<double> identity(n * n);
    std::fill(identity.begin(), identity.end(), 0.0);
    for (std::size_t i = 0; i < n; ++i) identity[i * n + i] = 1;
    multiply(identity.data(), rows);
    return {largest_column(identity, n, column), int(rows)};
  }

  RandomSigns random;
  Buffer<double> block(n * width);
  std::array<Signs, width> signs, old_signs;
  signs.fill(Signs(n, 1));
  old_signs = signs;
  // The first block: all ones, and random signs that are not parallel to them.
  do random.fill(signs[1]);
  while (parallel(signs[0], signs[1]));
  for (std::size_t c = 0; c < width; ++c)
    for (std::size_t i = 0; i < n; ++i) block[c * n + i] = double(signs[c][i]) / double(n);

  std::array<Index, width> units{};  // block is e_j of these from the second round on
  std::vector<Index> used;           // all such j so far
  std::vector<Index> by_size(n);
  Buffer<double> height(n);
  Index best_unit = -1;
  for (int round = 1;; ++round) {
    multiply(block.data(), width);
    result.products += width;
    const double norm = largest_column(block, n, column);
    if (!std::isfinite(norm)) {
      result.value = norm;
      return result;
    }
    if (round >= 2 && (norm > result.value || round == 2)) best_unit = units[std::size_t(column)];
    if (round >= 2 && norm <= result.value) return result;
    result.value = norm;
    if (round > most_rounds) return result;

    std::swap(signs, old_signs);
    const bool first = round == 1;
    const auto seen = [&](const Signs& s) {  // in the last round
      return !first && std::any_of(old_signs.begin(), old_signs.end(), [&](const Signs& t) { return parallel(s, t); });
    };
    for (std::size_t c = 0; c < width; ++c)
      for (std::size_t i = 0; i < n; ++i) signs[c][i] = block[c * n + i] < 0 ? -1 : 1;
    if (std::all_of(signs.begin(), signs.end(), seen)) return result;
    for (std::size_t c = 0; c < width; ++c)
      while (seen(signs[c]) ||
             std::any_of(signs.begin(), signs.begin() + c, [&](const Signs& t) { return parallel(signs[c], t); }))
        random.fill(signs[c]);
    for (std::size_t c = 0; c < width; ++c)
      for (std::size_t i = 0; i < n; ++i) block[c * n + i] = signs[c][i];
    multiply_transposed(block.data(), width);
    result.products += width;

    for (std::size_t i = 0; i < n; ++i) {
      height[i] = 0;
      for (std::size_t c = 0; c < width; ++c) {
        if (!std::isfinite(block[c * n + i])) {
          result.value = std::numeric_limits<double>::infinity();
          return result;
        }
        height[i] = std::max(height[i], std::abs(block[c * n + i]));
      }
    }
    if (round >= 2 && *std::max_element(height.begin(), height.end()) == height[std::size_t(best_unit)]) return result;
    // The highest that no block has had; of equal ones the first.
    const std::size_t wanted = std::min(n, used.size() + width);
    std::iota(by_size.begin(), by_size.end(), 0);
    std::partial_sort(by_size.begin(), by_size.begin() + std::ptrdiff_t(wanted), by_size.end(), [&](Index i, Index j) {
      const double hi = height[std::size_t(i)], hj = height[std::size_t(j)];
      return hi > hj || (hi == hj && i < j);
    });
    const auto was_used = [&](Index i) { return std::find(used.begin(), used.end(), i) != used.end(); };
    if (std::all_of(by_size.begin(), by_size.begin() + width, was_used)) return result;
    std::fill(block.begin(), block.end(), 0.0);
    std::size_t taken = 0;
    for (std::size_t q = 0; q < wanted && taken < width; ++q)
      if (!was_used(by_size[q])) units[taken++] = by_size[q];
    if (taken < width) return result;  // a small matrix, all of whose columns were looked at but one
    for (std::size_t c = 0; c < width; ++c) {
      block[c * n + std::size_t(units[c])] = 1;
      used.push_back(units[c]);
    }
  }
}

}  // namespace krilu::solver
