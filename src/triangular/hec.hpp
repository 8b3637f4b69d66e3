// SPDX-License-Identifier: Apache-2.0
// HecSolver: x = L^-1 b for a triangular matrix L with its diagonal, level by level over the HEC format. Source: Liu,
// Chen et al., Parallel triangular solvers on GPU (about 2012), Algorithms 1 (preprocessing) and 2 (solution).
//
// Preprocessing, on the host: levels are found, row i gets the place m(i) = start of its level + its position in the
// level, rows of a level ascending, and L becomes L' in that order. L' is lower triangular too, and its levels are
// ranges of rows. It is kept in HEC, each row ending in its diagonal. An upper triangle is made a lower one first, by
// the map i -> n - 1 - i.
//
// Solution: the paper permutes b, solves level after level, and permutes the result back. Here a row takes its number
// from b and leaves its result in x itself, so that neither permutation is a pass of its own; x' in the order of L',
// which later rows read, is work space. On the host threads share a level, with a barrier between levels, and runs of
// narrow levels are left to one thread. On a GPU a thread has a row: a wide level is a launch, a run of narrow ones a
// launch of a single block with a barrier between levels. Launches are simply put on the stream: a loop of the space
// (repeat_until) records them in its graph together with everything else. A row with many entries in the CSR part keeps
// its one thread, as in the paper: rows of very different lengths are for the strategies of runner.hpp.
//
// Cost in bytes: 12 width n + 12 entries of the CSR part (a diagonal a row among them) + 32 n, where each number of b,
// x and x' is moved once; b and x stand in the caller's order, and where a level's rows lie apart there, each costs a
// cache line: a grid of 100^3 takes twice the time of a serial substitution in natural order on one core.
#pragma once

#include <utility>
#include <vector>

#include "schedule/levels.hpp"
#include "sparse/hec.hpp"

namespace krilu::triangular {

/// Row i and column j become row n-1-i and column n-1-j: an upper triangle becomes a lower one, and back.
CsrMatrix reversed(const CsrView& a);

/// What Algorithm 1 makes of a triangle, on the host.
struct HecLevels {
  CsrMatrix lower;           // L'
  std::vector<Index> row;    // row[m(i)] = i, the caller's row; for an upper triangle through the reversing map
  std::vector<Index> level;  // levels + 1: first row of L' in each
};
/// a: square and triangular, its diagonal stored. Throws krilu::Error, naming the row, where an entry stands on the
/// other side of the diagonal, and ZeroPivot where a diagonal is missing or zero.
HecLevels reorder_by_levels(const exec::Host& host, const CsrView& a, schedule::Triangle triangle);

/// Levels first .. last-1, which are rows begin .. end-1 of L': one level that is shared, or a run of narrow ones.
struct HecStep {
  Index first, last;
  Index begin, end;
  bool shared;
};
/// A level of fewer than narrow_rows rows is narrow.
std::vector<HecStep> hec_steps(const std::vector<Index>& level, Index narrow_rows);

/// Rows that make a level worth sharing: a barrier of the host's threads costs as much as 256 rows of each.
template <class Space>
struct HecNarrow {
  static Index rows(const Space& space) { return space.threads() > 1 ? 256 * space.threads() : 0x7fffffff; }
};

template <class Space, class T>
class HecSolver {
 public:
  /// narrow_rows 0: HecNarrow. width: sparse::Hec's, of the entries off the diagonal. Throws as reorder_by_levels does.
  HecSolver(Space space, const CsrView& a, schedule::Triangle triangle, Index narrow_rows = 0,
            Index width = sparse::Hec<Space, T>::automatic)
      : HecSolver(space, reorder_by_levels(exec::Host(space.threads()), a, triangle),
                  narrow_rows > 0 ? narrow_rows : HecNarrow<Space>::rows(space), width) {}

  Index rows() const { return l_.rows(); }
  Index levels() const { return Index(level_.size()) - 1; }
  /// Launches on a GPU; parts between barriers on the host.
  Index steps() const { return Index(steps_.size()); }
  const sparse::Hec<Space, T>& matrix() const { return l_; }
  /// x = L^-1 b, both of rows() entries in the space's memory and in the caller's order; x may be b. Solves of one
  /// object share its work space: one at a time.
  void solve(const T* b, T* x) const;
  std::size_t bytes() const {
    return l_.bytes() + row_.bytes() + level_.bytes() + work_.bytes() + steps_.capacity() * sizeof(HecStep);
  }

 private:
  HecSolver(Space space, HecLevels&& levels, Index narrow_rows, Index width)
      : space_(std::move(space)),
        l_(space_, exec::Host(space_.threads()), levels.lower, sparse::HecForm::triangular, width),
        row_(space_.template allocate<Index>(levels.row.size())),
        level_(space_.template allocate<Index>(levels.level.size())),
        work_(space_.template allocate<T>(levels.row.size())),
        steps_(hec_steps(levels.level, narrow_rows)) {
    space_.copy_in(row_, levels.row.data(), row_.size());
    space_.copy_in(level_, levels.level.data(), level_.size());
  }

  Space space_;
  sparse::Hec<Space, T> l_;
  exec::Array<Index> row_, level_;
  exec::Array<T> work_;  // x'
  std::vector<HecStep> steps_;
};

}  // namespace krilu::triangular
