// SPDX-License-Identifier: Apache-2.0
// Hierarchical block multicolour ordering [Iwashita, Nakashima, Takahashi 2012]: blocks of a few neighbouring rows get
// the colours, and rows keep their natural order within a block. A handful of levels, with nearly natural order's
// convergence, where colouring single rows doubles the iterations. Written once for all spaces, since on a GPU it has
// to take less time than a few iterations of the solve.
//
// Where the matrix is a lattice stencil (rows i + nx (j + ny k) that touch neighbours only; found, not declared),
// blocks are boxes, long in the direction of strong coupling, and their colours (i + j + k) mod 3, or the 8 parities
// where the stencil has diagonals. Elsewhere blocks are grown pair by pair, as algebraic multigrid grows aggregates:
// each asks its most strongly coupled neighbour, and those that ask each other merge. So that many do, a coupling is
// the same from both sides, whichever way the flow goes, and those within a factor of two count as equal: where they
// grew from cell to cell, as in layers at a wall, each would ask the next and hardly any the one that asks it. Rows
// that follow one another and have the same neighbours, as the unknowns of a node do, are a block from the start.
// Blocks are coloured greedily in a scattered order [Jones and Plassmann 1993]. The result is the same on every run.
// Cost: some 30 passes over the nonzeros, 3 on a lattice.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "exec/array.hpp"
#include "krilu/matrix.hpp"
#include "sparse/csr.hpp"

namespace krilu::schedule {

template <class Space>
struct Blocks {
  exec::Array<Index> block;   // of each row: a number below rows; rows of one block share it
  exec::Array<Index> colour;  // of each row's block
  Index colours = 0;
  std::array<Index, 3> box{0, 0, 0};  // of a lattice; else zeros
  Index together = 32;                // blocks that may share a GPU's slice: on a lattice few, for sparse/stencils.cuh
};

/// Rows i + nx (j + ny k), each with entries in neighbouring ones only.
struct Lattice {
  Index nx = 0, ny = 0, nz = 0;
  bool diagonals = false;  // between rows that differ in more than one direction
  explicit operator bool() const { return nx > 0; }
  KRILU_INLINE void place(Index row, Index& i, Index& j, Index& k) const {
    i = row % nx;
    j = row / nx % ny;
    k = row / nx / ny;
  }
};

struct BlockTuning {
  Index rows = 0;          // of the largest block, up to a warp's lanes; 0: those below
  Index box_rows = 32;     // of a box
  Index planar_rows = 16;  // of a block that is grown where rows have few neighbours, as in planar meshes
  Index grown_rows = 8;    // of others: rows of a block that wait for each other cost more than they save
  Index few = 5;           // neighbours of a row, in the mean
  int passes = 6;          // of merging, at the most; a block at most doubles in each
  int rounds = 3;          // of asking, in a pass
  int rounds_at_once = 4;  // of colouring, between looks of the host
};

/// Made of a (offsets, columns and, where there are any, values) and graph, both in the space's memory. graph: the
/// pattern of A + A^T, or a itself where its pattern is symmetric; couplings are a's where the two are the same.
template <class Space>
class BlockBuilder {
 public:
  BlockBuilder(Space space, const CsrView& a, const CsrView& graph, BlockTuning tuning = {})
      : ex_(std::move(space)), a_(a), graph_(graph), tuning_(tuning) {}

  Blocks<Space> build() { return build(lattice()); }
  /// On what lattice() found before.
  Blocks<Space> build(const Lattice& lattice) {
    const auto n = std::size_t(graph_.rows);
    Blocks<Space> out;
    out.block = ex_.template allocate<Index>(n);
    out.colour = ex_.template allocate<Index>(n);
    if (n == 0) return out;
    if (lattice) {
      cut_boxes(lattice, out);
    } else {
      grow(out);
      colour(out);
    }
    return out;
  }

  /// The lattice that the graph is one of, if it is.
  Lattice lattice() {
    Lattice found = graph_.rows > 0 ? suggestion() : Lattice{};
    if (!found) return found;
    const CsrView g = graph_;
    const auto counts = ex_.template allocate<Index>(2);
    const auto wrong = counts.scalar(0), diagonal = counts.scalar(1);
    ex_.reduce(
        std::size_t(g.rows),
        KRILU_FN(Index row) {
          exec::Sums<Index, 2> sums{{0, 0}};
          Index i, j, k;
          found.place(row, i, j, k);
          for (Offset e = g.offsets[row]; e < g.offsets[row + 1]; ++e) {
            Index ci, cj, ck;
            found.place(g.columns[e], ci, cj, ck);
            const Index di = ci < i ? i - ci : ci - i, dj = cj < j ? j - cj : cj - j, dk = ck < k ? k - ck : ck - k;
            if (di > 1 || dj > 1 || dk > 1) ++sums[0];
            if (di + dj + dk > 1) ++sums[1];
          }
          return sums;
        },
        KRILU_FN(exec::Sums<Index, 2> sums) {
          wrong() = sums[0];
          diagonal() = sums[1];
        });
    Index count[2];
    ex_.copy_out(count, counts, 2);
    found.diagonals = count[1] > 0;
    return count[0] == 0 ? found : Lattice{};
  }

  // Parts of build(): public because nvcc takes kernels in public members only.

  /// The lattice that some rows in the middle suggest.
  Lattice suggestion() {
    constexpr Index samples = 64, most = 40;
    const Index n = graph_.rows, first = std::max<Index>(0, n / 2 - samples / 2);
    const auto distances = ex_.template allocate<Index>(std::size_t(samples * most));
    const auto out = distances.view();
    const CsrView g = graph_;
    ex_.for_each(
        samples, KRILU_FN(Index s) {
          const Index row = first + s;
          Index filled = 0;
          if (row < n)
            for (Offset e = g.offsets[row]; e < g.offsets[row + 1] && filled < most; ++e)
              if (g.columns[e] > row) out[s * most + filled++] = g.columns[e] - row;
          for (; filled < most; ++filled) out[s * most + filled] = 0;
        });
    std::vector<Index> d(distances.size());
    ex_.copy_out(d.data(), distances, d.size());
    std::sort(d.begin(), d.end());
    d.erase(std::unique(d.begin(), d.end()), d.end());
    d.erase(std::remove(d.begin(), d.end(), 0), d.end());
    if (d.empty() || d[0] != 1 || d.size() > 13) return {};
    if (d.size() == 1) return {n, 1, 1};
    // A stencil with diagonals has nx-1, nx, nx+1 where one without them has nx alone.
    const bool cluster = d.size() > 3 && d[2] == d[1] + 1 && d[3] == d[1] + 2;
    const Index nx = cluster ? d[1] + 1 : d[1];
    const auto beyond = std::upper_bound(d.begin(), d.end(), nx + 1);
    const Index plane = beyond == d.end() ? n : (*beyond + d.back()) / 2;
    if (nx < 2 || plane % nx != 0 || n % plane != 0) return {};
    return {nx, plane / nx, n / plane};
  }

  void cut_boxes(const Lattice& lattice, Blocks<Space>& out) {
    const CsrView a = a_;
    const auto n = std::size_t(a.rows);
    // How strong the couplings are along each direction.
    std::array<double, 3> strength{1, 1, 1};
    if (a.values) {
      const auto sums = ex_.template allocate<double>(3);
      const auto x = sums.scalar(0), y = sums.scalar(1), z = sums.scalar(2);
      ex_.reduce(
          n,
          KRILU_FN(Index row) {
            exec::Sums<double, 3> s{{0, 0, 0}};
            double all = 0;
            for (Offset e = a.offsets[row]; e < a.offsets[row + 1]; ++e)
              if (a.columns[e] != row) all += magnitude(a.values[e]);
            if (!(all > 0)) return s;
            Index i, j, k;
            lattice.place(row, i, j, k);
            for (Offset e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
              Index ci, cj, ck;
              lattice.place(a.columns[e], ci, cj, ck);
              const double w = magnitude(a.values[e]) / all;
              if (ci != i && cj == j && ck == k) s[0] += w;
              if (ci == i && cj != j && ck == k) s[1] += w;
              if (ci == i && cj == j && ck != k) s[2] += w;
            }
            return s;
          },
          KRILU_FN(exec::Sums<double, 3> s) {
            x() = s[0];
            y() = s[1];
            z() = s[2];
          });
      ex_.copy_out(strength.data(), sums, 3);
    }
    const std::array<Index, 3> box = box_of(lattice, strength);
    const bool parities = lattice.diagonals;
    const Index bx = box[0], by = box[1], bz = box[2];
    const Index nbx = (lattice.nx + bx - 1) / bx, nby = (lattice.ny + by - 1) / by, nbz = (lattice.nz + bz - 1) / bz;
    // Parities of the directions that have two boxes or more.
    const Index two_x = nbx > 1 ? 2 : 1, two_y = nby > 1 ? 2 : 1, two_z = nbz > 1 ? 2 : 1;
    const auto block = out.block.view(), colour = out.colour.view();
    ex_.for_each(
        n, KRILU_FN(Index row) {
          Index i, j, k;
          lattice.place(row, i, j, k);
          i /= bx;
          j /= by;
          k /= bz;
          block[row] = i + nbx * (j + nby * k);
          colour[row] = parities ? i % two_x + two_x * (j % two_y + two_y * (k % two_z)) : (i + j + k) % 3;
        });
    out.box = box;
    if (const Index few = lattice.diagonals ? 1 : 4; bx * by * bz * few >= 32) out.together = few;
    out.colours = parities ? two_x * two_y * two_z : std::min<Index>(3, nbx + nby + nbz - 2);
  }

  /// Powers of two whose product is a block, cutting as little coupling as can be.
  std::array<Index, 3> box_of(const Lattice& lattice, const std::array<double, 3>& strength) const {
    const Index rows = tuning_.rows > 0 ? tuning_.rows : tuning_.box_rows;
    std::array<Index, 3> best{1, 1, 1};
    double least = 1e300;
    for (Index x = 1; x <= rows && x < 2 * lattice.nx; x *= 2)
      for (Index y = 1; x * y <= rows && y < 2 * lattice.ny; y *= 2)
        for (Index z = 1; x * y * z <= rows && z < 2 * lattice.nz; z *= 2) {
          const double cut = strength[0] / double(x) + strength[1] / double(y) + strength[2] / double(z);
          if (cut < least * (1 - 1e-3) || (cut < least * (1 + 1e-3) && x > best[0])) {
            least = std::min(least, cut);
            best = {x, y, z};
          }
        }
    return best;
  }

  // --- any graph ------------------------------------------------------------------------------------------------

  void grow(Blocks<Space>& out) {
    const auto n = std::size_t(graph_.rows);
    work_ = ex_.template allocate<Index>(4 * n);
    next_ = ex_.template allocate<Index>(n);
    const auto block = out.block.view(), next = next_.view();
    const exec::View<Index> last{work_.data()}, size{work_.data() + n}, ask{work_.data() + 2 * n},
        merged{work_.data() + 3 * n};
    const CsrView g = graph_;
    const Offset neighbours = neighbours_of(g);
    const bool weighted = a_.columns == graph_.columns && a_.values;
    if (weighted) find_couplings(neighbours + g.rows);
    const float* const coupling = weighted ? coupling_.data() : nullptr;
    const bool few = neighbours <= std::int64_t(tuning_.few) * g.rows;
    const Index rows = tuning_.rows > 0 ? tuning_.rows : few ? tuning_.planar_rows : tuning_.grown_rows;
    // A block is a list of rows, and its number that of its first one.
    ex_.for_each(
        n, KRILU_FN(Index i) { merged[i] = i > 0 && of_one_node(g, i - 1, i); });
    ex_.for_each(
        n, KRILU_FN(Index i) {
          Index before = 0, behind = 0;
          while (merged[i - before]) ++before;
          before %= rows;
          while (before + behind + 1 < rows && i + behind + 1 < g.rows && merged[i + behind + 1]) ++behind;
          block[i] = i - before;
          next[i] = behind > 0 ? i + 1 : -1;
          last[i] = i + behind;
          size[i] = before + behind + 1;
        });
    const int passes = std::min(tuning_.passes, 1 + int(std::bit_width(std::uint32_t(rows))));
    for (int pass = 0; pass < passes; ++pass) {
      ex_.for_each(
          n, KRILU_FN(Index i) { merged[i] = 0; });
      // Blocks of similar size first; the last two passes take whatever still fits.
      const Index limit = pass + 2 >= passes ? rows : std::min<Index>(rows, Index(2) << pass);
      for (int round = 0; round < tuning_.rounds; ++round) {
        ex_.for_each(
            n, KRILU_FN(Index b) {
              const bool may = block[b] == b && !merged[b] && size[b] < limit;
              ask[b] = may ? strongest(g, coupling, b, block, next, size, merged, limit) : -1;
            });
        // Of two that ask each other, the lower number takes the other's rows in.
        ex_.for_each(
            n, KRILU_FN(Index b) {
              const Index other = ask[b];
              if (other <= b || ask[other] != b) return;
              next[last[b]] = other;
              last[b] = last[other];
              size[b] += size[other];
              merged[b] = merged[other] = 1;
            });
        ex_.for_each(
            n, KRILU_FN(Index b) {
              const Index other = ask[b];
              if (other <= b || ask[other] != b) return;
              for (Index i = other; i >= 0; i = next[i]) block[i] = b;
            });
      }
    }
  }

  /// Whether rows i and j = i + 1 are neighbours and have all others in common.
  static KRILU_INLINE bool of_one_node(const CsrView& g, Index i, Index j) {
    Offset p = g.offsets[i], q = g.offsets[j];
    bool neighbours = false;
    for (const Offset p_end = g.offsets[j], q_end = g.offsets[j + 1];; ++p, ++q) {
      for (; p < p_end && (g.columns[p] == i || g.columns[p] == j); ++p) neighbours |= g.columns[p] == j;
      for (; q < q_end && (g.columns[q] == i || g.columns[q] == j); ++q) neighbours |= g.columns[q] == i;
      if (p == p_end || q == q_end) return neighbours && p == p_end && q == q_end;
      if (g.columns[p] != g.columns[q]) return false;
    }
  }

  /// Entries off the diagonal: the host does not see them.
  Offset neighbours_of(const CsrView& g) {
    const auto count = ex_.template allocate<Index>(1);
    const auto entries = count.scalar();
    ex_.reduce(
        std::size_t(g.rows),
        KRILU_FN(Index i) {
          Index others = 0;
          for (Offset e = g.offsets[i]; e < g.offsets[i + 1]; ++e) others += g.columns[e] != i;
          return others;
        },
        KRILU_FN(Index sum) { entries() = sum; });
    Index others = 0;
    ex_.copy_out(&others, count, 1);
    return others;
  }

  /// max(|a_ij| / sum_k |a_ik|, |a_ji| / sum_k |a_jk|) of each entry: one side alone makes a coupling strong.
  void find_couplings(Offset most) {
    const auto n = std::size_t(a_.rows);
    const CsrView a = a_;
    coupling_ = ex_.template allocate<float>(std::size_t(most));
    share_ = ex_.template allocate<double>(n);
    const auto coupling = coupling_.view();
    const auto share = share_.view();
    ex_.for_each(
        n, KRILU_FN(Index i) {
          double all = 0;
          for (Offset e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
            if (a.columns[e] != i) all += magnitude(a.values[e]);
          share[i] = all > 0 ? 1 / all : 0;
        });
    ex_.for_each(
        n, KRILU_FN(Index i) {
          for (Offset e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
            const Index j = a.columns[e];
            const Offset mirror = sparse::find_entry(a, j, i);
            const double back = mirror >= 0 ? magnitude(a.values[mirror]) : 0;
            const double own = magnitude(a.values[e]) * share[i], others = back * share[j];
            coupling[e] = float(own > others ? own : others);
          }
        });
  }

  /// Which power of two a weight belongs to; no weight of simple fractions stands where this changes.
  static KRILU_INLINE int power_of_two(float weight) {
    int exponent = 0;
    std::frexp(1.37f * weight, &exponent);
    return weight > 0 ? exponent : -1000;
  }

  /// A number of a pair of blocks, the same from both sides.
  static KRILU_INLINE std::uint32_t number_of_pair(Index b, Index c) {
    return scattered(std::uint32_t(b < c ? b : c) * 2654435761u + std::uint32_t(b < c ? c : b));
  }

  /// The neighbour that block b is coupled to most, among those it can merge with, or -1. Equal couplings are told
  /// apart by a number of the pair. Of more neighbours than it can keep in mind it forgets those coupled least.
  static KRILU_INLINE Index strongest(const CsrView& g, const float* coupling, Index b, exec::View<Index> block,
                                      exec::View<Index> next, exec::View<Index> size, exec::View<Index> merged,
                                      Index limit) {
    constexpr int most = 24;
    Index other[most];
    float weight[most];
    std::uint32_t number[most];
    int found = 0;
    for (Index i = b; i >= 0; i = next[i])
      for (Offset e = g.offsets[i]; e < g.offsets[i + 1]; ++e) {
        const Index c = block[g.columns[e]];
        if (c == b || merged[c] || size[c] + size[b] > limit) continue;
        const float own_weight = coupling ? coupling[e] : 1.0f;
        int k = 0;
        while (k < found && other[k] != c) ++k;
        if (k < found) {
          weight[k] += own_weight;
          continue;
        }
        const std::uint32_t own_number = number_of_pair(b, c);
        if (found < most) {
          ++found;
        } else {
          k = 0;
          for (int l = 1; l < most; ++l)
            if (weight[l] < weight[k] || (weight[l] == weight[k] && number[l] < number[k])) k = l;
          if (own_weight < weight[k] || (own_weight == weight[k] && own_number < number[k])) continue;
        }
        other[k] = c;
        weight[k] = own_weight;
        number[k] = own_number;
      }
    Index best = -1;
    int most_weight = -1001;
    std::uint32_t best_number = 0;
    for (int k = 0; k < found; ++k) {
      const int own_weight = power_of_two(weight[k]);
      if (own_weight > most_weight || (own_weight == most_weight && number[k] > best_number)) {
        best = other[k];
        most_weight = own_weight;
        best_number = number[k];
      }
    }
    return best;
  }

  /// Each block in turn takes the least colour that its neighbours leave: the turn is a scattered number, and blocks
  /// whose turn comes before that of all their neighbours without a colour go at once.
  void colour(Blocks<Space>& out) {
    const auto n = std::size_t(graph_.rows);
    const auto block = out.block.view(), colour = out.colour.view(), next = next_.view();
    const exec::View<Index> own{work_.data()}, chosen{work_.data() + n};
    const auto counted = ex_.template allocate<Index>(1);
    const auto count = counted.scalar();
    const CsrView g = graph_;
    const auto asked = [&] {
      Index c = 0;
      ex_.copy_out(&c, counted, 1);
      return c;
    };
    ex_.for_each(
        n, KRILU_FN(Index i) { own[i] = chosen[i] = -1; });
    for (Index waiting = 1; waiting > 0; waiting = asked()) {
      for (int round = 0; round < tuning_.rounds_at_once; ++round) {
        ex_.for_each(
            n, KRILU_FN(Index b) {
              if (block[b] == b && own[b] < 0) chosen[b] = free_colour(g, b, block, next, own);
            });
        ex_.reduce(
            n,
            KRILU_FN(Index b) {
              own[b] = chosen[b];
              return Index(block[b] == b && own[b] < 0 ? 1 : 0);
            },
            KRILU_FN(Index left) { count() = left; });
      }
    }
    ex_.for_each(
        n, KRILU_FN(Index i) { colour[i] = own[block[i]]; });
    for (Index used = 1; used > 0; used = asked()) {
      const Index c = out.colours;
      ex_.reduce(
          n, KRILU_FN(Index b) { return Index(block[b] == b && own[b] == c ? 1 : 0); },
          KRILU_FN(Index have) { count() = have; });
      if (asked() > 0) ++out.colours;
    }
  }

  /// The least colour that none of block b's neighbours has, or -1 where b has to wait for one of them.
  static KRILU_INLINE Index free_colour(const CsrView& g, Index b, exec::View<Index> block, exec::View<Index> next,
                                        exec::View<Index> own) {
    const std::uint32_t turn = scattered(std::uint32_t(b));
    for (Index base = 0;; base += 64) {
      std::uint64_t used = 0;
      for (Index i = b; i >= 0; i = next[i])
        for (Offset e = g.offsets[i]; e < g.offsets[i + 1]; ++e) {
          const Index c = block[g.columns[e]];
          if (c == b) continue;
          if (own[c] < 0 && scattered(std::uint32_t(c)) > turn) return -1;
          if (own[c] >= base && own[c] < base + 64) used |= std::uint64_t(1) << (own[c] - base);
        }
      for (Index k = 0; k < 64; ++k)
        if (!(used >> k & 1)) return base + k;
    }
  }

  static KRILU_INLINE double magnitude(double v) { return v < 0 ? -v : v; }
  static KRILU_INLINE std::uint32_t scattered(std::uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
  }

 private:
  Space ex_;
  CsrView a_, graph_;
  BlockTuning tuning_;
  exec::Array<float> coupling_;  // of each entry
  exec::Array<double> share_;
  exec::Array<Index> next_;  // the row after each in its block, or -1
  exec::Array<Index> work_;  // lives as long as what is queued may use it
};

}  // namespace krilu::schedule
