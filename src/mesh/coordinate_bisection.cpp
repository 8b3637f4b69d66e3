// SPDX-License-Identifier: Apache-2.0
#include "mesh/coordinate_bisection.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "exec/simd.hpp"
#include "exec/tasks.hpp"

namespace krilu::mesh {

namespace {

using std::size_t;
using Coordinate = std::uint32_t;  // from 0 to 2^31 across the mesh

struct Point {
  std::array<Coordinate, 3> at;
  Index cell;
};

using Points = std::span<const Point>;

/// Where cells of one slab across the first axis go by: the other two axes, and the number at last.
struct Tie {
  std::uint64_t place;
  Index cell;
  bool operator<(const Tie& o) const { return place != o.place ? place < o.place : cell < o.cell; }
};

struct Box {
  std::array<Coordinate, 3> low, high;
  Box() : low{~0u, ~0u, ~0u}, high{0, 0, 0} {}
  void add(const std::array<Coordinate, 3>& a, const std::array<Coordinate, 3>& b) {
    for (size_t d = 0; d < 3; ++d) {
      low[d] = std::min(low[d], a[d]);
      high[d] = std::max(high[d], b[d]);
    }
  }
};

Box box_of(Points points) {
  // A point's words side by side, its cell with its coordinates.
  using Words = exec::Simd<Coordinate, 4>;
  static_assert(sizeof(Words) == sizeof(Point));
  Words low = ~Words{}, high = {};
  for (const Point& p : points) {
    const Words w = exec::load<Coordinate, 4>(p.at.data());
    low = w < low ? w : low;
    high = w > high ? w : high;
  }
  Box box;
  box.add({low[0], low[1], low[2]}, {high[0], high[1], high[2]});
  return box;
}

/// The axes of some cells, longest side first, and how finely coordinates are compared along them.
struct Grid {
  std::array<size_t, 3> axis;
  std::array<Coordinate, 3> low;
  std::array<int, 3> shift;
  Coordinate length = 0;  // of the longest side
  double layers = 1;      // of cells across it, were they cubes

  /// The step that a coordinate is in, along axis[k]. Steps are centred about multiples of their width: planes of a
  /// lattice then stand well within them.
  Coordinate step(const Point& p, size_t k) const { return round(p.at[axis[k]] - low[k], shift[k]); }
  Tie tie(const Point& p) const { return {std::uint64_t(step(p, 1)) << 32 | step(p, 2), p.cell}; }
  static Coordinate round(Coordinate c, int s) { return s == 0 ? c : (c + (Coordinate(1) << (s - 1))) >> s; }
};

/// `steps`: into how many a cell's width is divided, at least. Of equal sides the last axis goes first, along which
/// numbers usually differ most.
Grid grid_of(const Box& box, size_t points, const std::array<double, 3>& unit, double steps) {
  Grid g{};
  g.axis = {2, 1, 0};
  std::array<double, 3> side;
  for (size_t d = 0; d < 3; ++d) side[d] = double(box.high[d] - box.low[d]) * unit[d];
  std::stable_sort(g.axis.begin(), g.axis.end(), [&](size_t a, size_t b) { return side[a] > side[b]; });
  // A cell's width, were cells cubes; sides that are shorter have one layer of them.
  double width = side[g.axis[0]], content = 1;
  for (size_t k = 0; k < 3 && side[g.axis[k]] > 0; ++k) {
    content *= side[g.axis[k]];
    const double of_these = std::pow(content / double(points), 1.0 / double(k + 1));
    if (k > 0 && side[g.axis[k]] < of_these) break;
    width = of_these;
  }
  // Sides that differ by no step count as equal, lest rounding decides between them.
  const auto place_longest = [&](size_t k) {
    const double longest = side[*std::max_element(g.axis.begin() + k, g.axis.end(),
                                                  [&](size_t a, size_t b) { return side[a] < side[b]; })];
    std::sort(g.axis.begin() + k, g.axis.end(), std::greater<>());
    const auto first =
        std::find_if(g.axis.begin() + k, g.axis.end(), [&](size_t d) { return side[d] >= longest - width / 16; });
    std::swap(g.axis[k], *first);
  };
  place_longest(0);
  place_longest(1);
  for (size_t k = 0; k < 3; ++k) {
    const size_t d = g.axis[k];
    g.low[k] = box.low[d];
    const double in_units = unit[d] > 0 ? width / steps / unit[d] : 1;
    g.shift[k] = in_units > 1 ? std::min(30, std::ilogb(in_units)) : 0;
  }
  g.length = box.high[g.axis[0]] - box.low[g.axis[0]];
  if (width > 0) g.layers = std::max(1.0, side[g.axis[0]] / width);
  return g;
}

/// Bisections of one set of points after another, by one thread or by all threads of a host.
class Bisection {
 public:
  Bisection(const exec::Host& host, const std::array<double, 3>& unit, bool together)
      : host_(host), unit_(unit), pieces_(together ? 4 * size_t(host.threads()) : 1), ties_(pieces_), left_(pieces_) {}

  /// Copies `from` to `to`, the first `target` of them along the longest side first, each half in its former sequence.
  void run(Points from, Point* to, size_t target) {
    find(from, target);
    size_t sum = 0;
    for (size_t& n : left_) sum += std::exchange(n, sum);
    over(from, [&](size_t piece, size_t begin, Points points) {
      const Slab* slab = slab_.data() + begin;
      size_t left = left_[piece], right = target + begin - left;
      for (const Point& p : points) {
        bool is_right = *slab > middle_;
        if (*slab++ == middle_) [[unlikely]]
          is_right = last_ < grid_.tie(p);
        // Without a branch, and without waiting for memory to tell where the next one goes.
        to[left ^ ((left ^ right) & (0 - size_t(is_right)))] = p;
        left += !is_right;
        right += is_right;
      }
    });
  }

 private:
  using Slab = std::uint16_t;

  /// f(piece, where it begins, its points).
  template <class F>
  void over(Points points, F f) {
    const auto first = [&](size_t piece) { return points.size() * piece / pieces_; };
    if (pieces_ == 1)
      f(size_t(0), size_t(0), points);
    else
      for_each_task(host_, pieces_,
                    [&](size_t p) { f(p, first(p), points.subspan(first(p), first(p + 1) - first(p))); });
  }

  Box box(Points points) {
    box_.assign(pieces_, Box());
    over(points, [&](size_t piece, size_t, Points mine) { box_[piece] = box_of(mine); });
    Box all;
    for (const Box& b : box_) all.add(b.low, b.high);
    return all;
  }

  /// Points in each of so many slabs; slab(p) says which, or that it is none by a larger number, and is kept.
  template <class F>
  const Index* count(Points points, size_t slabs, F slab) {
    count_.assign(pieces_ * (slabs + 1), 0);
    over(points, [&](size_t piece, size_t begin, Points mine) {
      Index* const counts = count_.data() + piece * (slabs + 1);
      Slab* kept = slab_.data() + begin;
      for (const Point& p : mine) {
        const auto s = Slab(std::min(size_t(slab(p)), slabs));
        ++counts[s];
        *kept++ = s;
      }
    });
    for (size_t piece = 1; piece < pieces_; ++piece)
      for (size_t s = 0; s < slabs; ++s) count_[s] += count_[piece * (slabs + 1) + s];
    return count_.data();
  }

  /// The cut: points in slabs before `middle_` are on its left, those in it as far as `last_`.
  void find(Points points, size_t target) {
    if (slab_.size() < points.size()) slab_.resize(points.size());
    grid_ = grid_of(box(points), points.size(), unit_, 16);
    Grid& g = grid_;
    const size_t most_slabs = std::clamp(points.size() / 4, size_t(16), size_t(4096));
    while (Grid::round(g.length, g.shift[0]) >= most_slabs) ++g.shift[0];
    size_t before = 0, inside = 0;
    const auto slab_of = [&](const Index* counts, size_t wanted) {
      size_t s = 0;
      for (before = 0; before + size_t(counts[s]) < wanted; ++s) before += size_t(counts[s]);
      inside = size_t(counts[s]);
      return Slab(s);
    };
    const auto bounds = [](Coordinate s, int shift) {
      const std::int64_t half = shift == 0 ? 0 : std::int64_t(1) << (shift - 1), begin = std::int64_t(s) << shift;
      return std::pair{Coordinate(std::max(std::int64_t(0), begin - half)),
                       Coordinate(begin + (std::int64_t(1) << shift) - half)};
    };
    int shift = g.shift[0];
    middle_ = slab_of(
        count(points, size_t(Grid::round(g.length, shift)) + 1, [&](const Point& p) { return g.step(p, 0); }), target);
    auto [from, to] = bounds(middle_, shift);
    size_t wanted = target - before;
    // A slab with more cells than two layers would have is divided further, as at a wall, unless all of them tie.
    const auto crowd = size_t(2 * double(points.size()) / g.layers);
    bool divided = false;
    while (inside > crowd && shift > 0 && wanted < inside) {
      const int finer = std::max(0, shift - 6);
      const size_t all = inside;
      const auto within = [&, first = from, end = to](const Point& p) {
        const Coordinate c = p.at[g.axis[0]] - g.low[0] - first;
        return c < end - first ? Grid::round(c, finer) : std::numeric_limits<Coordinate>::max();
      };
      divided = true;
      const Slab s = slab_of(count(points, size_t(Grid::round(to - from, finer)) + 1, within), wanted);
      if (inside > all - all / 10) {
        inside = all;
        break;
      }
      wanted -= before;
      const auto [first, end] = bounds(s, finer);
      to = std::min(to, from + end);
      from += first;
      shift = finer;
    }
    if (divided) {
      middle_ = 1;
      count(points, 3, [&, first = from, end = to](const Point& p) {
        const Coordinate c = p.at[g.axis[0]] - g.low[0];
        return (c >= first) + (c >= end);
      });
    }
    // Who is on the left in each piece: all before the slab, and the first of those in it.
    over(points, [&](size_t piece, size_t begin, Points mine) {
      const Slab *const slab = slab_.data() + begin, middle = middle_;
      std::vector<Tie>& ties = ties_[piece];
      ties.clear();
      size_t left = 0;
      constexpr size_t look = 64;
      for (size_t i = 0; i < mine.size(); i += look) {
        const size_t end = std::min(mine.size(), i + look);
        unsigned lower = 0, met = 0;
        for (size_t k = i; k < end; ++k) {
          lower += slab[k] < middle;
          met += slab[k] == middle;
        }
        left += lower;
        for (size_t k = i; met > 0; ++k)
          if (slab[k] == middle) {
            ties.push_back(g.tie(mine[k]));
            --met;
          }
      }
      left_[piece] = left;
    });
    all_ties_.clear();
    for (const std::vector<Tie>& ties : ties_) all_ties_.insert(all_ties_.end(), ties.begin(), ties.end());
    std::nth_element(all_ties_.begin(), all_ties_.begin() + std::ptrdiff_t(wanted) - 1, all_ties_.end());
    last_ = all_ties_[wanted - 1];
    for (size_t piece = 0; piece < pieces_; ++piece)
      for (const Tie& t : ties_[piece]) left_[piece] += !(last_ < t);
  }

  const exec::Host& host_;
  std::array<double, 3> unit_;
  size_t pieces_;
  Grid grid_{};
  Slab middle_ = 0;
  Tie last_{};
  Buffer<Slab> slab_;  // of each point
  // Of each piece, kept from one bisection to the next.
  std::vector<Index> count_;
  std::vector<Box> box_;
  std::vector<std::vector<Tie>> ties_;
  std::vector<size_t> left_;  // how many go left, then where those begin
  std::vector<Tie> all_ties_;
};

/// Some of the points, and the blocks that they are to make.
struct Node {
  size_t begin, end;
  Index block, blocks;
  bool swapped;  // whether they stand in the second array
  size_t left() const { return begin + size_t(std::int64_t(end - begin) * (blocks / 2) / blocks); }
};

/// Points by rows: slabs across the longest side, in each of them rows across the next, and along those. Slabs are at
/// most a cell thick. A radix sort, least digits first.
class InRows {
 public:
  /// put(k, place) for each point: it stands at `place` and comes as the k-th.
  template <class Put>
  void operator()(Points points, const std::array<double, 3>& unit, Put put) {
    const Box box = box_of(points);
    Grid g = grid_of(box, points.size(), unit, 1);
    std::array<int, 3> bits;
    for (size_t k = 0; k < 3; ++k) {
      const Coordinate length = box.high[g.axis[k]] - g.low[k];
      while (Grid::round(length, g.shift[k]) >= 1u << 10) ++g.shift[k];
      bits[k] = std::bit_width(Grid::round(length, g.shift[k]));
    }
    keyed_.resize(points.size());
    other_.resize(points.size());
    for (size_t i = 0; i < points.size(); ++i) {
      const Point& p = points[i];
      keyed_[i] = {(g.step(p, 0) << bits[1] | g.step(p, 1)) << bits[2] | g.step(p, 2), Index(i)};
    }
    const int all = bits[0] + bits[1] + bits[2], passes = (all + most_digit - 1) / most_digit;
    const int digit = passes > 0 ? (all + passes - 1) / passes : 0;
    for (int low = 0; low < all; low += digit) {
      std::array<Index, 1 << most_digit> next{};
      const auto of = [low, digit](const Keyed& k) { return k.key >> low & ((1u << digit) - 1); };
      for (const Keyed& k : keyed_) ++next[of(k)];
      Index sum = 0;
      for (Index& n : next) sum += std::exchange(n, sum);
      for (const Keyed& k : keyed_) other_[size_t(next[of(k)]++)] = k;
      std::swap(keyed_, other_);
    }
    for (size_t k = 0; k < points.size(); ++k) put(Index(k), size_t(keyed_[k].place));
  }

 private:
  static constexpr int most_digit = 11;
  struct Keyed {
    std::uint32_t key;
    Index place;
  };
  std::vector<Keyed> keyed_, other_;
};

/// Whether neighbours within a block stand clearly nearer to each other by rows than in the mesh's own sequence: the
/// sum of their distances over faces of some of the blocks. scratch: an element for each cell.
template <class Block>
bool rows_are_nearer(const exec::Host& host, const Mesh& mesh, Index blocks, Block block,
                     const std::array<double, 3>& unit, Index* scratch) {
  constexpr size_t enough_cells = 1 << 15, enough_faces = 1 << 13, fewest_blocks = 4;
  constexpr double clearly = 0.4;
  const auto cells = size_t(mesh.cells), faces = size_t(mesh.faces());
  const size_t looked_at = std::min(size_t(blocks), fewest_blocks + enough_cells * size_t(blocks) / cells);
  struct Place {
    Index own, rows;
    size_t block;
  };
  std::vector<Place> sample;
  Index* const place_of = scratch;  // of sampled cells
  std::vector<bool> sampled(cells, false);
  InRows in_rows;
  for (size_t i = 0; i < looked_at; ++i) {
    const Points points = block(size_t(blocks) * i / looked_at);
    const size_t first = sample.size();
    for (size_t k = 0; k < points.size(); ++k) {
      const auto c = size_t(points[k].cell);
      place_of[c] = Index(sample.size());
      sampled[c] = true;
      sample.push_back({Index(k), 0, i});
    }
    in_rows(points, unit, [&](Index k, size_t place) { sample[first + place].rows = k; });
  }

  struct Sums {
    double own = 0, rows = 0;
  };
  // Of large blocks a part of the faces, one in each of so many that follow one another, chosen by a hash: faces come
  // in periods.
  const size_t one_in = std::bit_ceil(1 + sample.size() * (faces / cells) / enough_faces), pieces = 64;
  std::vector<Sums> sums(pieces);
  const size_t groups = (faces + one_in - 1) / one_in;
  for_each_task(host, pieces, [&](size_t piece) {
    for (size_t g = groups * piece / pieces; g < groups * (piece + 1) / pieces; ++g) {
      const size_t f = g * one_in + (std::uint64_t(g) * 0x9e3779b97f4a7c15u >> 32 & (one_in - 1));
      if (f >= faces) continue;
      const auto o = size_t(mesh.owner[f]), n = size_t(mesh.neighbour[f]);
      if (!sampled[o] || !sampled[n]) continue;
      const Place &a = sample[size_t(place_of[o])], &b = sample[size_t(place_of[n])];
      if (a.block != b.block) continue;
      sums[piece].own += std::abs(a.own - b.own);
      sums[piece].rows += std::abs(a.rows - b.rows);
    }
  });
  Sums all;
  for (const Sums& s : sums) {
    all.own += s.own;
    all.rows += s.rows;
  }
  return all.rows < clearly * all.own;
}

}  // namespace

CellBlocks bisect_cells(const exec::Host& host, const Mesh& mesh, Index most) {
  CellBlocks result;
  const auto cells = size_t(mesh.cells);
  const auto blocks = Index((std::int64_t(mesh.cells) + most - 1) / most);
  result.order.resize(cells);
  result.offsets.assign(size_t(blocks) + 1, mesh.cells);
  if (blocks == 0) return result;

  // Positions as whole numbers.
  const size_t pieces = std::min(cells, 4 * size_t(host.threads()));
  struct Range {
    std::array<double, 3> low, high;
  };
  const auto coordinates = [&](size_t c) {
    const Vector3& v = mesh.centre[c];
    return std::array<double, 3>{v.x, v.y, v.z};
  };
  std::vector<Range> ranges(pieces);
  for_each_task(host, pieces, [&](size_t piece) {
    Range r{coordinates(0), coordinates(0)};
    for (size_t c = cells * piece / pieces; c < cells * (piece + 1) / pieces; ++c) {
      const std::array<double, 3> x = coordinates(c);
      for (size_t d = 0; d < 3; ++d) {
        r.low[d] = std::min(r.low[d], x[d]);
        r.high[d] = std::max(r.high[d], x[d]);
      }
    }
    ranges[piece] = r;
  });
  Range all = ranges[0];
  for (const Range& r : ranges)
    for (size_t d = 0; d < 3; ++d) {
      all.low[d] = std::min(all.low[d], r.low[d]);
      all.high[d] = std::max(all.high[d], r.high[d]);
    }
  std::array<double, 3> unit, scale;
  for (size_t d = 0; d < 3; ++d) {
    unit[d] = (all.high[d] - all.low[d]) / 0x1p31;
    scale[d] = unit[d] > 0 ? 1 / unit[d] : 0;
  }
  Buffer<Point> buffer[2] = {Buffer<Point>(cells), Buffer<Point>(cells)};
  for_each_task(host, pieces, [&](size_t piece) {
    for (size_t c = cells * piece / pieces; c < cells * (piece + 1) / pieces; ++c) {
      const std::array<double, 3> x = coordinates(c);
      for (size_t d = 0; d < 3; ++d)
        buffer[0][c].at[d] = Coordinate(std::min((x[d] - all.low[d]) * scale[d] + 0.5, 0x1p31));
      buffer[0][c].cell = Index(c);
    }
  });

  std::vector<char> swapped(static_cast<size_t>(blocks));
  const auto divide = [&](Bisection& bisection, const Node& node) {
    bisection.run({buffer[node.swapped].data() + node.begin, node.end - node.begin},
                  buffer[!node.swapped].data() + node.begin, node.left() - node.begin);
    const Index half = node.blocks / 2;
    return std::array<Node, 2>{Node{node.begin, node.left(), node.block, half, !node.swapped},
                               Node{node.left(), node.end, node.block + half, node.blocks - half, !node.swapped}};
  };
  // Threads divide large nodes together, and then take what is left one by one.
  const size_t large = host.threads() == 1 ? cells : std::max(cells / (8 * size_t(host.threads())), size_t(1) << 15);
  std::vector<Node> nodes{{0, cells, 0, blocks, false}}, smaller;
  Bisection together(host, unit, true);
  while (!nodes.empty()) {
    const Node node = nodes.back();
    nodes.pop_back();
    if (node.blocks == 1 || node.end - node.begin <= large)
      smaller.push_back(node);
    else
      for (const Node& half : divide(together, node)) nodes.push_back(half);
  }
  for_each_task(host, smaller.size(), [&](size_t i) {
    Bisection alone(host, unit, false);
    std::vector<Node> stack{smaller[i]};
    while (!stack.empty()) {
      const Node node = stack.back();
      stack.pop_back();
      if (node.blocks == 1) {
        result.offsets[size_t(node.block)] = Index(node.begin);
        swapped[size_t(node.block)] = node.swapped;
      } else {
        for (const Node& half : divide(alone, node)) stack.push_back(half);
      }
    }
  });

  const auto block = [&](size_t b) {
    const auto begin = size_t(result.offsets[b]), end = size_t(result.offsets[b + 1]);
    return Points(buffer[swapped[b] ? 1 : 0].data() + begin, end - begin);
  };
  const bool by_rows = rows_are_nearer(host, mesh, blocks, block, unit, result.order.data());
  std::atomic<size_t> next{0};
  host.parallel(blocks > 1 ? host.threads() : 1, [&](int, int) {
    InRows in_rows;
    for (size_t b; (b = next.fetch_add(1)) < size_t(blocks);) {
      const Points points = block(b);
      Index* const to = result.order.data() + result.offsets[b];
      if (by_rows)
        in_rows(points, unit, [&](Index k, size_t place) { to[k] = points[place].cell; });
      else
        for (size_t k = 0; k < points.size(); ++k) to[k] = points[k].cell;
    }
  });
  return result;
}

}  // namespace krilu::mesh
