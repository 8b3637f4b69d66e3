// SPDX-License-Identifier: Apache-2.0
#include "precond/ilut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

#include "krilu/error.hpp"
#include "precond/row_walk.hpp"

namespace krilu::precond {

namespace {

constexpr std::int64_t most_entries = std::numeric_limits<Offset>::max();
constexpr Index no_column = std::numeric_limits<Index>::max();

/// Columns that wait for their elimination, smallest first. Few wait as a rule, so they are kept sorted; where they
/// become many, they are a heap, which a sorted array already is.
class ColumnQueue {
 public:
  void clear() {
    column_.clear();
    head_ = 0;
    heap_ = false;
  }
  Index front() const { return head_ < column_.size() ? column_[head_] : no_column; }
  void pop() {
    if (heap_) {
      std::pop_heap(column_.begin() + std::ptrdiff_t(head_), column_.end(), std::greater<>());
      column_.pop_back();
    } else {
      ++head_;
    }
  }
  void push(Index j) {
    column_.push_back(j);
    if (heap_ || column_.size() - head_ > sorted_most) {
      heap_ = true;
      std::push_heap(column_.begin() + std::ptrdiff_t(head_), column_.end(), std::greater<>());
      return;
    }
    Index* const first = column_.data() + head_;
    Index* at = column_.data() + column_.size() - 1;
    for (; at != first && at[-1] > j; --at) *at = at[-1];
    *at = j;
  }

 private:
  static constexpr std::size_t sorted_most = 64;
  std::vector<Index> column_;
  std::size_t head_ = 0;
  bool heap_ = false;
};

/// The k-th largest of n numbers (1 <= k <= n), which are not negative nor NaN. Overwrites x and spare, both with room
/// for n + 8.
double kth_largest(double* x, double* spare, std::size_t n, std::size_t k) {
  if (n <= 24) {  // each with each: the smallest that has fewer than k larger ones
    constexpr std::size_t lanes = 8;
    for (std::size_t i = n; i < n + lanes; ++i) x[i] = -1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t b = 0; b < n; b += lanes) {
      std::int64_t larger[lanes] = {};
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t q = 0; q < lanes; ++q) larger[q] += x[i] > x[b + q];
      for (std::size_t q = 0; q < lanes; ++q)
        least = larger[q] < std::int64_t(k) && x[b + q] < least ? x[b + q] : least;
    }
    return least;
  }
  // Few numbers: partitions that the processor need not guess.
  for (int round = 0; n <= 256 && round < 32; ++round) {
    const double pivot = std::max(std::min(x[0], x[n / 2]), std::min(std::max(x[0], x[n / 2]), x[n - 1]));
    std::size_t larger = 0, smaller = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double v = x[i];
      spare[smaller] = v;
      smaller += v < pivot;
      x[larger] = v;
      larger += v > pivot;
    }
    if (k <= larger) {
      n = larger;
    } else if (k <= n - smaller) {
      return pivot;
    } else {
      k -= n - smaller;
      n = smaller;
      std::swap(x, spare);
    }
  }
  std::nth_element(x, x + (k - 1), x + n, std::greater<>());
  return x[k - 1];
}

/// Entries of one part of a row that may stay.
struct Candidates {
  std::vector<Index> column;
  std::vector<double> value;
  std::vector<double> magnitude;  // by which the largest are told: of the multiplier in L
  std::size_t count = 0;

  /// Room for n entries and one that is written before it is known to be none.
  void reserve(std::size_t n) {
    if (n < column.size()) return;
    const std::size_t room = std::max(n + 1, 2 * column.size());
    column.resize(room);
    value.resize(room);
    magnitude.resize(room);
  }
};

/// Where a row stands while others are eliminated with it.
struct Place {
  const Index* columns;  // of U, ascending
  const double* values;  // the pivot, then U
  Index upper;           // entries of U
};

/// Finished rows in the sequence in which a thread made them. Chunks never move, and go one by one when they are
/// copied.
struct Chunk {
  struct Run {
    Index first_row, rows;
    std::size_t at, entries;
  };
  Buffer<Index> columns;
  Buffer<double> values;
  std::size_t used = 0;
  std::vector<Run> runs;  // of consecutive rows
};

/// One thread's work: whole blocks, row by row.
class Worker {
 public:
  static constexpr std::size_t chunk_entries = std::size_t(1) << 18;

  /// first_chunk: entries that the first chunk has room for.
  Worker(const CsrView& a, const IlutOptions& options, std::size_t first_chunk, Place* places, Offset* counts)
      : a_(a),
        most_(std::size_t(std::min<Index>(options.most, a.rows))),
        bound_(std::size_t(a.rows) * (2 * most_ + 1)),
        first_chunk_(first_chunk),
        tolerance_(options.tolerance),
        shift_(options.shift),
        places_(places),
        counts_(counts) {}

  /// Rows begin .. end-1. Notes the first row whose pivot is bad, and the first that leaves the block.
#if defined(__GNUC__) && !defined(__clang__)
  [[gnu::noinline, gnu::noclone]]
#else
  [[gnu::noinline]]
#endif
  void
  factor(Index begin, Index end, Index& zero_pivot, Index& leaves_block) {
    begin_ = begin;
    const auto rows = std::size_t(end - begin);
    if (cells_.size() < rows) {
      cells_.resize(rows);
      fill_.resize(rows + 1);
    }
    for (Index i = begin; i < end; ++i) {
      const Offset first = a_.offsets[i], last = a_.offsets[i + 1];
      if (first < last && (a_.columns[first] < begin || a_.columns[last - 1] >= end)) {
        note_row(leaves_block, i);
        return;
      }
      if (!row(i)) note_row(zero_pivot, i);
    }
  }

  /// Gives the rows away where one chunk holds them all; for a worker that made every row.
  bool hand_over(CsrMatrix& out) {
    if (chunks_.size() != 1 || chunks_[0].runs.size() != 1) return false;
    out.columns = std::move(chunks_[0].columns);
    out.values = std::move(chunks_[0].values);
    out.columns.resize(chunks_[0].used);
    out.values.resize(chunks_[0].used);
    return true;
  }

  /// Puts the rows where they belong. Frees what has been copied.
  void copy_to(CsrMatrix& out) {
    for (Chunk& chunk : chunks_) {
      for (const Chunk::Run& run : chunk.runs) {
        const auto to = std::size_t(out.offsets[std::size_t(run.first_row)]);
        std::memcpy(out.columns.data() + to, chunk.columns.data() + run.at, run.entries * sizeof(Index));
        std::memcpy(out.values.data() + to, chunk.values.data() + run.at, run.entries * sizeof(double));
      }
      chunk = {};
    }
  }

 private:
  /// An entry of the row at work. Zero and not listed between rows.
  struct Cell {
    double value = 0;
    Index listed = 0;
  };
  Cell& cell(Index j) { return cells_[std::size_t(j - begin_)]; }

  /// Eliminates and stores row i. False if its pivot is bad.
  bool row(Index i) {
    sound_ = true;
    scatter(i);
    eliminate(i);
    gather(i);
    const double pivot = cell(i).value;
    cell(i) = {};
    if (!sound_) lower_.count = upper_.count = 0;
    const bool good = sound_ && std::isfinite(1 / pivot) && 1 / pivot != 0;
    keep_largest_lower();
    keep_largest_upper();
    store(i, good ? pivot : 1.0);
    return good;
  }

  /// Row i of A into the cells.
  void scatter(Index i) {
    const Offset last = a_.offsets[i + 1];
    double squares = 0, largest = 0;
    fills_ = 0;
    Offset k = a_.offsets[i];
    own_ = a_.columns + k;
    const auto take = [&](Index j) {
      const double v = a_.values[k];
      cell(j) = {v, 1};
      squares += v * v;
      largest = std::max(largest, std::abs(v));
    };
    for (; k < last && a_.columns[k] < i; ++k) take(a_.columns[k]);
    own_end_ = a_.columns + k;
    cell(i).listed = 1;
    if (k < last && a_.columns[k] == i) {
      take(i);
      ++k;
    }
    for (; k < last; ++k) {
      take(a_.columns[k]);
      fill_[fills_++] = a_.columns[k];
    }
    if (shift_ != 0) cell(i).value += std::copysign(shift_ * largest, cell(i).value);
    double norm = std::sqrt(squares);
    if (!(squares > 1e-280 && squares < 1e280) && largest > 0) {  // the squares left the range of numbers
      squares = 0;
      for (k = a_.offsets[i]; k < last; ++k) squares += (a_.values[k] / largest) * (a_.values[k] / largest);
      norm = largest * std::sqrt(squares);
    }
    least_ = tolerance_ * norm;
    sound_ = std::isfinite(norm);
  }

  /// Rows k < i out of row i, in ascending order, fill included.
  void eliminate(Index i) {
    queue_.clear();
    lower_.count = 0;
    std::size_t fills = fills_;
    Index* const fill = fill_.data();
    Cell* const cells = cells_.data() - begin_;
    while (true) {
      const Index mine = own_ != own_end_ ? *own_ : no_column, filled = queue_.front();
      const Index k = std::min(mine, filled);
      if (k == no_column) break;
      if (k == mine)
        ++own_;
      else
        queue_.pop();
      const double w = cells[k].value;
      cells[k] = {};
      const Place& place = places_[k];
      const double multiplier = w / place.values[0];
      if (std::abs(multiplier) <= tolerance_) continue;
      if (!std::isfinite(multiplier)) {
        sound_ = false;
        continue;
      }
      lower_.reserve(lower_.count + 1);
      lower_.column[lower_.count] = k;
      lower_.value[lower_.count] = multiplier;
      lower_.magnitude[lower_.count++] = std::abs(multiplier);

      const Index* columns = place.columns;
      const double* values = place.values + 1;
      const Index upper = place.upper;
      Index q = 0;
      for (; q < upper && columns[q] < i; ++q) {
        Cell& c = cells[columns[q]];
        c.value -= multiplier * values[q];
        if (!c.listed) {
          c.listed = 1;
          queue_.push(columns[q]);
        }
      }
      for (; q < upper; ++q) {  // no branch: whether a column is new cannot be guessed
        const Index j = columns[q];
        Cell& c = cells[j];
        c.value -= multiplier * values[q];
        fill[fills] = j;
        fills += std::size_t(1 - c.listed);
        c.listed = 1;
      }
    }
    fills_ = fills;
  }

  /// Entries of U above the threshold; the cells are cleared.
  void gather(Index i) {
    upper_.reserve(fills_);
    Index* const column = upper_.column.data();
    double *const value = upper_.value.data(), *const magnitude = upper_.magnitude.data();
    std::size_t count = 0;
    bool sound = sound_;
    for (std::size_t k = 0; k < fills_; ++k) {
      Cell& c = cell(fill_[k]);
      const double size = std::abs(c.value);
      column[count] = fill_[k];
      value[count] = c.value;
      magnitude[count] = size;
      count += size > least_;
      sound &= size <= std::numeric_limits<double>::max();
      c = {};
    }
    upper_.count = count;
    sound_ = sound && std::isfinite(cell(i).value);
  }

  /// The magnitude of the smallest that stays, where not all do. `equals` of that size stay, smaller columns first.
  double threshold(const Candidates& c, std::size_t& equals) {
    if (scratch_.size() < 2 * c.count + 16) scratch_.resize(4 * c.count + 16);
    double *const x = scratch_.data(), *const spare = x + c.count + 8;
    std::copy_n(c.magnitude.data(), c.count, x);
    const double least = kth_largest(x, spare, c.count, most_);
    equals = most_;
    for (std::size_t k = 0; k < c.count; ++k) equals -= c.magnitude[k] > least;
    return least;
  }

  /// Leaves what threshold() says, in the sequence it has; `equals` as many as the sequence meets first.
  void filter(Candidates& c, double least, std::size_t equals) {
    std::size_t kept = 0;
    for (std::size_t k = 0; k < c.count; ++k) {
      const double size = c.magnitude[k];
      const bool equal = size == least && equals > 0;
      c.column[kept] = c.column[k];
      c.value[kept] = c.value[k];
      c.magnitude[kept] = size;
      equals -= equal;
      kept += size > least || equal;
    }
    c.count = kept;
  }

  void keep_largest_lower() {  // columns ascend
    if (lower_.count <= most_) return;
    if (most_ == 0) {
      lower_.count = 0;
      return;
    }
    std::size_t equals = 0;
    const double least = threshold(lower_, equals);
    filter(lower_, least, equals);
  }

  void keep_largest_upper() {  // columns as they came
    if (upper_.count > most_) {
      if (most_ == 0) {
        upper_.count = 0;
        return;
      }
      std::size_t equals = 0;
      const double least = threshold(upper_, equals);
      filter(upper_, least, upper_.count);  // all of equal size: which ones stay is known when columns ascend
      sort(upper_);
      if (upper_.count > most_) filter(upper_, least, equals);
    } else {
      sort(upper_);
    }
  }

  /// By column.
  void sort(Candidates& c) {
    constexpr std::size_t lanes = 8, few = 48;
    const std::size_t n = c.count;
    if (std::is_sorted(c.column.begin(), c.column.begin() + std::ptrdiff_t(n))) return;
    if (n <= few) {  // each entry's place is the number of smaller columns: no branches
      alignas(64) Index column[few], place[few];
      double value[few], magnitude[few];
      const std::size_t padded = (n + lanes - 1) / lanes * lanes;
      for (std::size_t k = 0; k < n; ++k) {
        column[k] = c.column[k];
        value[k] = c.value[k];
        magnitude[k] = c.magnitude[k];
      }
      for (std::size_t k = n; k < padded; ++k) column[k] = no_column;
      for (std::size_t b = 0; b < padded; b += lanes) {
        Index before[lanes] = {};
        for (std::size_t k = 0; k < n; ++k)
          for (std::size_t q = 0; q < lanes; ++q) before[q] += column[k] < column[b + q];
        std::copy_n(before, lanes, place + b);
      }
      for (std::size_t k = 0; k < n; ++k) {
        const auto to = std::size_t(place[k]);
        c.column[to] = column[k];
        c.value[to] = value[k];
        c.magnitude[to] = magnitude[k];
      }
      return;
    }
    sorted_.resize(n);
    for (std::size_t k = 0; k < n; ++k) sorted_[k] = {c.column[k], c.value[k], c.magnitude[k]};
    std::sort(sorted_.begin(), sorted_.end(), [](const Entry& x, const Entry& y) { return x.column < y.column; });
    for (std::size_t k = 0; k < n; ++k) {
      c.column[k] = sorted_[k].column;
      c.value[k] = sorted_[k].value;
      c.magnitude[k] = sorted_[k].magnitude;
    }
  }

  void store(Index i, double pivot) {
    const std::size_t entries = lower_.count + 1 + upper_.count;
    total_ += std::int64_t(entries);
    if (total_ > most_entries) throw_too_many();
    if (chunks_.empty() || chunks_.back().columns.size() - chunks_.back().used < entries) {
      const std::size_t usual = chunks_.empty() ? first_chunk_ : chunk_entries;
      Chunk& fresh = chunks_.emplace_back();
      fresh.columns.resize(std::max(entries, std::min(usual, bound_)));
      fresh.values.resize(fresh.columns.size());
    }
    Chunk& chunk = chunks_.back();
    if (chunk.runs.empty() || chunk.runs.back().first_row + chunk.runs.back().rows != i)
      chunk.runs.push_back({i, 0, chunk.used, 0});
    ++chunk.runs.back().rows;
    chunk.runs.back().entries += entries;
    Index* column = chunk.columns.data() + chunk.used;
    double* value = chunk.values.data() + chunk.used;
    chunk.used += entries;
    column = std::copy_n(lower_.column.data(), lower_.count, column);
    value = std::copy_n(lower_.value.data(), lower_.count, value);
    places_[i] = {column + 1, value, Index(upper_.count)};
    *column = i;
    *value = pivot;
    std::copy_n(upper_.column.data(), upper_.count, column + 1);
    std::copy_n(upper_.value.data(), upper_.count, value + 1);
    counts_[i] = Offset(entries);
  }

 public:
  [[noreturn]] static void throw_too_many() {
    throw Error("ilut: the factors would have 2^31 entries or more: give a smaller p or a larger tolerance");
  }

 private:
  struct Entry {
    Index column;
    double value, magnitude;
  };

  const CsrView a_;
  const std::size_t most_, bound_, first_chunk_;
  const double tolerance_, shift_;
  Place* const places_;
  Offset* const counts_;

  Index begin_ = 0;
  std::vector<Cell> cells_;
  std::vector<Index> fill_;  // columns of U in the cells
  std::size_t fills_ = 0;
  const Index *own_ = nullptr, *own_end_ = nullptr;  // columns of A's lower part, not eliminated yet
  ColumnQueue queue_;                                // those of its fill
  double least_ = 0;                                 // of an entry of U that stays
  bool sound_ = true;                                // neither NaN nor infinity was met
  Candidates lower_, upper_;
  std::vector<double> scratch_;
  std::vector<Entry> sorted_;
  std::vector<Chunk> chunks_;
  std::int64_t total_ = 0;
};

void require_sense(const CsrView& a, std::span<const Index> blocks, const IlutOptions& o) {
  if (a.rows != a.cols)
    throw Error(fmt::format("ilut: the matrix has {} rows and {} columns: it must be square", a.rows, a.cols));
  if (o.most < 0)
    throw Error(fmt::format("ilut: {} entries a row: give the most that a row may keep, 0 or more", o.most));
  if (!(o.tolerance >= 0) || !std::isfinite(o.tolerance))
    throw Error(fmt::format("ilut: a drop tolerance of {}: give a number of 0 or more, such as 0.01", o.tolerance));
  if (!std::isfinite(o.shift)) throw Error("ilut: the shift is not a finite number");
  if (blocks.empty() || blocks.front() != 0 || blocks.back() != a.rows || !std::is_sorted(blocks.begin(), blocks.end()))
    throw Error(fmt::format("ilut: the blocks must begin at 0, ascend and end at the number of rows, {}", a.rows));
}

}  // namespace

IlutFactors ilut(const exec::Host& host, const CsrView& a, std::span<const Index> blocks, const IlutOptions& options) {
  require_sense(a, blocks, options);
  const auto rows = std::size_t(a.rows);
  const std::size_t count = blocks.size() - 1;
  IlutFactors out;
  CsrMatrix& f = out.factors;
  f.rows = f.cols = a.rows;
  f.offsets.resize(rows + 1);
  f.offsets[0] = 0;

  Buffer<Place> places(rows);
  const int threads = int(std::clamp<std::size_t>(count, 1, std::size_t(host.threads())));
  // One thread's rows may stay where it makes them, if there is room: pages that are not written cost nothing.
  const std::size_t first_chunk = threads == 1 ? 4 * std::size_t(a.nnz()) + rows : Worker::chunk_entries;
  std::vector<Worker> workers;
  for (int t = 0; t < threads; ++t) workers.emplace_back(a, options, first_chunk, places.data(), f.offsets.data() + 1);

  // Blocks go to the threads as they become free: any may factor any, and its rows are the same.
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::exception_ptr thrown;
  Index zero_pivot = no_column, leaves_block = no_column;
  host.parallel(threads, [&](int t, int team) {
    try {
      const std::size_t batch = std::max<std::size_t>(1, count / (std::size_t(team) * 32));
      for (std::size_t b = next.fetch_add(batch); b < count; b = next.fetch_add(batch))
        for (std::size_t k = b; k < std::min(b + batch, count); ++k)
          workers[std::size_t(t)].factor(blocks[k], blocks[k + 1], zero_pivot, leaves_block);
    } catch (...) {
      const std::scoped_lock lock(guard);
      thrown = std::current_exception();
    }
  });
  if (thrown) std::rethrow_exception(thrown);
  if (leaves_block != no_column)
    throw Error(
        fmt::format("ilut: row {} has an entry outside of its block: drop such entries first", leaves_block + 1));
  if (zero_pivot != no_column) out.zero_pivot = zero_pivot;

  std::int64_t total = 0;
  for (std::size_t i = 1; i <= rows; ++i) {
    total += f.offsets[i];
    if (total > most_entries) Worker::throw_too_many();
    f.offsets[i] = Offset(total);
  }
  places = {};
  if (threads == 1 && workers[0].hand_over(f)) return out;
  f.columns.resize(std::size_t(total));
  f.values.resize(std::size_t(total));
  host.parallel(threads, [&](int t, int team) {  // the team may be smaller than it was
    for (int w = t; w < threads; w += team) workers[std::size_t(w)].copy_to(f);
  });
  return out;
}

}  // namespace krilu::precond
