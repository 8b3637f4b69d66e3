// SPDX-License-Identifier: Apache-2.0
// The lists of FoamFile; see foam_file.hpp.
//
// What reads an element of an ASCII list says nothing where it succeeds and else what should have stood there. Pieces
// of a list may hold no comment: a piece that would start inside of one follows another that holds where it opens, so
// that no comment is ever taken for numbers.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "io/foam_file.hpp"
#include "io/matrix_market.hpp"
#include "io/scan.hpp"
#include "krilu/error.hpp"

namespace krilu::io {

namespace {

constexpr std::int64_t largest = std::numeric_limits<Index>::max();
constexpr Index least_corners = 3;

using Wanted = const char*;  // nullptr: what is wanted stands there

constexpr Wanted whole_number = "a whole number from -1 to 2147483647";

template <bool comments>
const char* skip_gap(const char* p, const char* end) {
  if constexpr (comments) return skip_spaces_and_comments(p, end);
  return skip_spaces(p, end);
}

bool ends_number(const char* p, const char* end) {
  return p == end || is_space(*p) || *p == ')' || *p == '(' || *p == '}' || *p == '/';
}

inline Wanted scan_label(const char*& p, const char* end, Index& label) {
  std::int64_t v;
  const char* const after = scan_integer(p, end, v);
  if (!after || !ends_number(after, end) || v < -1 || v > largest) return whole_number;
  label = static_cast<Index>(v);
  p = after;
  return nullptr;
}

inline Wanted scan_coordinate(const char*& p, const char* end, double& value) {
  const char* const after = scan_double(p, end, value);
  if (!after || !ends_number(after, end) || !std::isfinite(value)) return "a finite number";
  p = after;
  return nullptr;
}

/// Elements of lists, as far as they were read. `border` is what an element ends with, at the latest.
struct Labels {
  static constexpr std::size_t least_bytes = 2;
  static constexpr char border = '\n';
  Buffer<Index> values;

  std::size_t size() const { return values.size(); }
  void reserve(std::size_t n) { values.reserve(n); }
  template <bool comments>
  Wanted read(const char*& p, const char* end) {
    Index label;
    if (const Wanted wanted = scan_label(p, end, label)) return wanted;
    values.push_back(label);
    return nullptr;
  }
};

struct Points {
  static constexpr std::size_t least_bytes = 7;
  static constexpr char border = ')';
  Buffer<Vector3> values;

  std::size_t size() const { return values.size(); }
  void reserve(std::size_t n) { values.reserve(n); }
  template <bool comments>
  Wanted read(const char*& p, const char* end) {
    if (*p != '(') return "a point, (x y z),";
    ++p;
    Vector3 v;
    for (double* const x : {&v.x, &v.y, &v.z}) {
      p = skip_gap<comments>(p, end);
      if (const Wanted wanted = scan_coordinate(p, end, *x)) return wanted;
    }
    p = skip_gap<comments>(p, end);
    if (p == end || *p != ')') return "the ')' of a point";
    ++p;
    values.push_back(v);
    return nullptr;
  }
};

struct Faces {
  static constexpr std::size_t least_bytes = 8;
  static constexpr char border = ')';
  Buffer<Offset> ends;
  Buffer<Index> corners;

  std::size_t size() const { return ends.size(); }
  void reserve(std::size_t n) {
    ends.reserve(n);
    corners.reserve(4 * n);
  }
  template <bool comments>
  Wanted read(const char*& p, const char* end) {
    const char* const start = p;
    const std::size_t before = corners.size();
    Index count = -1;
    if (*p != '(') {
      if (const Wanted wanted = scan_label(p, end, count)) return "a face, n(a b c ...),";
      if (count < least_corners) {
        p = start;
        return "a number of corners, at least 3,";
      }
      p = skip_gap<comments>(p, end);
      if (p == end || *p != '(') return "the '(' of a face";
    }
    for (++p;;) {
      p = skip_gap<comments>(p, end);
      if (p == end) return "the ')' of a face";
      if (*p == ')') break;
      Index corner;
      if (const Wanted wanted = scan_label(p, end, corner)) return wanted;
      corners.push_back(corner);
    }
    const std::size_t found = corners.size() - before;
    if (count >= 0 ? found != static_cast<std::size_t>(count) : found < std::size_t(least_corners)) {
      p = start;
      return count >= 0 ? "a face of as many corners as it says" : "a face of at least 3 corners";
    }
    if (corners.size() > static_cast<std::size_t>(largest)) return "the end: the faces have 2^31 corners; no more";
    ++p;
    ends.push_back(static_cast<Offset>(corners.size()));
    return nullptr;
  }
};

/// Reads up to the end or a ')' between elements, where p is left.
template <bool comments, class E>
Wanted read_elements(const char*& p, const char* end, E& out) {
  for (;;) {
    p = skip_gap<comments>(p, end);
    if (p == end || *p == ')') return nullptr;
    if (const Wanted wanted = out.template read<comments>(p, end)) return wanted;
  }
}

/// Pieces of roughly equal length, each ending with `border`, of as many bytes as a second-level cache holds.
std::vector<std::string_view> cut(const char* p, const char* end, char border, int threads) {
  const auto bytes = static_cast<std::size_t>(end - p);
  const std::size_t length = std::clamp<std::size_t>(bytes / (4 * std::size_t(threads)), 1, std::size_t(512) << 10);
  std::vector<std::string_view> pieces;
  while (p != end) {
    const char* stop = end;
    if (static_cast<std::size_t>(end - p) > length) stop = std::find(p + length - 1, end, border);
    if (stop != end) ++stop;
    pieces.emplace_back(p, static_cast<std::size_t>(stop - p));
    p = stop;
  }
  return pieces;
}

/// out[starts[k]..] = (part k)[..], each element changed by f(k, element).
template <class T, class Part, class F>
void join(std::vector<Part>& parts, Buffer<T> Part::*member, int threads, Buffer<T>& out, F f) {
  std::vector<std::size_t> starts(parts.size() + 1, 0);
  for (std::size_t k = 0; k < parts.size(); ++k) starts[k + 1] = starts[k] + (parts[k].*member).size();
  out.resize(starts.back());
  for_pieces(threads, parts.size(), [&](std::size_t k) {
    Buffer<T>& from = parts[k].*member;
    for (std::size_t i = 0; i < from.size(); ++i) out[starts[k] + i] = f(k, from[i]);
    Buffer<T>().swap(from);
  });
}
template <class E>
bool join(std::vector<E>& parts, int threads, E& out) {
  join(parts, &E::values, threads, out.values, [](std::size_t, const auto& v) { return v; });
  return true;
}
bool join(std::vector<Faces>& parts, int threads, Faces& out) {
  std::vector<std::int64_t> before(parts.size() + 1, 0);
  for (std::size_t k = 0; k < parts.size(); ++k)
    before[k + 1] = before[k] + static_cast<std::int64_t>(parts[k].corners.size());
  if (before.back() > largest) return false;
  join(parts, &Faces::ends, threads, out.ends,
       [&before](std::size_t k, Offset e) { return static_cast<Offset>(before[k] + e); });
  join(parts, &Faces::corners, threads, out.corners, [](std::size_t, Index c) { return c; });
  return true;
}

}  // namespace

FoamFile::Opening FoamFile::open_list(std::size_t least_bytes) {
  skip();
  // As fields have it: "nonuniform List<vector> N(...)".
  while (!at_end() && ((*p_ | 0x20) >= 'a' && (*p_ | 0x20) <= 'z')) {
    const char* const at = p_;
    const std::string prefix = word("a list");
    if (prefix != "nonuniform" && !prefix.starts_with("List<")) fail_wanted(at, "a list, N(...),");
    skip();
  }
  Opening out;
  out.at = p_;
  if (!at_end() && *p_ != '(') {
    const char* const after = scan_integer(p_, end_, out.count);
    if (!after || out.count < 0 || !(ends_number(after, end_) || *after == '{'))
      fail_wanted(p_, "the number of a list's entries");
    p_ = after;
    skip();
  }
  const bool opens = !at_end() && (*p_ == '(' || (*p_ == '{' && !header_.binary));
  if (!opens && out.count == 0) return out;
  if (!opens) fail_wanted(p_, "the '(' of a list");
  out.bracket = *p_++;
  if (out.count > largest)
    fail(out.at, fmt::format("the list says {} entries; one mesh may have 2147483647", out.count));
  const auto left = static_cast<std::int64_t>(end_ - p_);
  if (out.bracket == '(' && out.count * static_cast<std::int64_t>(least_bytes) > left)
    fail(out.at, fmt::format("the list says {} entries, which take {} bytes at least, and only {} follow; the file is "
                             "cut short, or its header does not tell what it holds",
                             out.count, out.count * static_cast<std::int64_t>(least_bytes), left));
  return out;
}

void FoamFile::fail_uniform(const Opening& opening) const {
  fail(opening.at, "the list says that all its entries are the same, which cannot be here");
}

template <class E>
bool FoamFile::read_pieces(const char* end, std::int64_t count, E& out) {
  const std::vector<std::string_view> pieces = cut(p_, end, E::border, threads_);
  std::vector<E> parts(pieces.size());
  std::atomic<bool> failed{false};
  // A tenth above the mean; open_list held the count to what the text can hold.
  const double density = 1.1 * static_cast<double>(count) / static_cast<double>(std::max<std::ptrdiff_t>(1, end - p_));
  for_pieces(threads_, pieces.size(), [&](std::size_t k) {
    if (failed.load(std::memory_order_relaxed)) return;
    const char* p = pieces[k].data();
    const char* const stop = p + pieces[k].size();
    E part;  // its own cache lines
    part.reserve(static_cast<std::size_t>(density * static_cast<double>(pieces[k].size())) + 16);
    if (read_elements<false>(p, stop, part) || p != stop) failed = true;
    parts[k] = std::move(part);
  });
  std::size_t found = 0;
  for (const E& part : parts) found += part.size();
  if (failed || found != static_cast<std::size_t>(count) || !join(parts, threads_, out)) return false;
  p_ = end;
  return true;
}

template <class E>
void FoamFile::read_text(E& out) {
  const Opening opening = open_list(E::least_bytes);
  list_ = {opening.at, p_, 0, false};
  if (opening.bracket == 0) return;
  if (opening.bracket == '{') fail_uniform(opening);
  if (threads_ > 1 && opening.count >= 0) {
    // Labels have no brackets of their own, so the first that closes is the list's; else it is the last of the text.
    const std::string_view rest(p_, static_cast<std::size_t>(end_ - p_));
    const std::size_t close = E::border == ')' ? rest.rfind(')') : rest.find(')');
    if (close != std::string_view::npos && read_pieces(rest.data() + close, opening.count, out)) {
      ++p_;
      return;
    }
    out = E();
  }
  if (opening.count > 0) out.reserve(static_cast<std::size_t>(opening.count));
  if (const Wanted wanted = read_elements<true>(p_, end_, out)) fail_wanted(p_, wanted);
  if (at_end())
    fail(p_, fmt::format("the file ends within a list, after {} entries{}; it is cut short", out.size(),
                         opening.count >= 0 ? fmt::format(" of {}", opening.count) : ""));
  if (opening.count >= 0 && out.size() != static_cast<std::size_t>(opening.count))
    fail(p_, fmt::format("the list ends after {} entries and says that it has {}", out.size(), opening.count));
  ++p_;
}

std::string_view FoamFile::read_raw(std::size_t width) {
  const Opening opening = open_list(width);
  list_ = {opening.at, p_, width, false};
  if (opening.bracket == 0) return {p_, 0};
  if (opening.count < 0) fail(opening.at, "a binary list does not say how many entries it has");
  const std::size_t bytes = static_cast<std::size_t>(opening.count) * width;
  const char* const close = p_ + bytes;  // within the text: open_list looked
  if (close == end_ || *close != ')')
    fail(close, fmt::format("no ')' stands behind {} entries of {} bytes; the file is cut short, or arch in its header "
                            "is not that of the machine that wrote it",
                            opening.count, width));
  const char* const first = p_;
  p_ = close + 1;
  return {first, bytes};
}

Buffer<Index> FoamFile::read_binary_labels() {
  const auto width = static_cast<std::size_t>(header_.label_bytes);
  const std::string_view raw = read_raw(width);
  Buffer<Index> out(raw.size() / width);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t v;
    if (width == sizeof(Index)) {
      Index narrow;
      std::memcpy(&narrow, raw.data() + i * width, width);
      v = narrow;
    } else {
      std::memcpy(&v, raw.data() + i * width, width);
    }
    if (v < -1 || v > largest) fail_at(i, fmt::format("{} stands where {} belongs", v, whole_number));
    out[i] = static_cast<Index>(v);
  }
  return out;
}

Buffer<Index> FoamFile::labels(std::int64_t most) {
  if (header_.binary) return read_binary_labels();
  const char* const start = p_;
  const Opening opening = open_list(Labels::least_bytes);
  if (opening.bracket != '{') {
    p_ = start;
    Labels out;
    read_text(out);
    return std::move(out.values);
  }
  if (most == 0 && opening.count > 0) fail_uniform(opening);
  if (opening.count > most)
    fail(opening.at, fmt::format("the list says {} entries, and {} belong here at most", opening.count, most));
  skip();
  list_ = {opening.at, p_, 0, true};
  Index label;
  if (const Wanted wanted = scan_label(p_, end_, label)) fail_wanted(p_, wanted);
  take('}', "the '}' of a list");
  return Buffer<Index>(static_cast<std::size_t>(std::max<std::int64_t>(0, opening.count)), label);
}

Buffer<Vector3> FoamFile::points() {
  if (!header_.binary) {
    Points out;
    read_text(out);
    return std::move(out.values);
  }
  const auto width = static_cast<std::size_t>(header_.scalar_bytes);
  const std::string_view raw = read_raw(3 * width);
  Buffer<Vector3> out(raw.size() / (3 * width));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const char* const from = raw.data() + i * 3 * width;
    if (width == sizeof(double)) {
      std::memcpy(&out[i], from, 3 * width);
    } else {
      float v[3];
      std::memcpy(v, from, sizeof v);
      out[i] = {v[0], v[1], v[2]};
    }
    const Vector3& v = out[i];
    if (!std::isfinite(v.x) || !std::isfinite(v.y) || !std::isfinite(v.z))
      fail_at(i, fmt::format("point {} is ({} {} {}), which is not finite", i, v.x, v.y, v.z));
  }
  return out;
}

FoamFaces FoamFile::faces(std::size_t points) {
  const std::string& name = header_.class_name;
  if (name != "faceCompactList" && name != "faceList" && !name.empty())
    fail(class_at_, fmt::format("the header's class is {} where faceList or faceCompactList belongs", in_quotes(name)));
  if (name == "faceCompactList") return read_compact(points);
  if (header_.binary) return read_binary_faces(points);
  Faces read;
  read_text(read);
  FoamFaces out;
  out.offsets.resize(read.ends.size() + 1);
  out.offsets[0] = 0;
  std::copy(read.ends.begin(), read.ends.end(), out.offsets.begin() + 1);
  out.corners = std::move(read.corners);
  const auto bad = std::find_if(out.corners.begin(), out.corners.end(),
                                [points](Index c) { return c < 0 || std::size_t(c) >= points; });
  if (bad != out.corners.end()) {
    const auto k = static_cast<Offset>(bad - out.corners.begin());
    const auto face = std::upper_bound(out.offsets.begin(), out.offsets.end(), k) - out.offsets.begin() - 1;
    fail_at(static_cast<std::size_t>(face),
            fmt::format("face {} has the corner {}, and there are {} points", face, *bad, points));
  }
  return out;
}

FoamFaces FoamFile::read_compact(std::size_t points) {
  FoamFaces out;
  out.offsets = labels(0);
  for (std::size_t k = 0; k < out.offsets.size(); ++k) {
    if (k == 0 ? out.offsets[k] == 0 : out.offsets[k] - out.offsets[k - 1] >= least_corners) continue;
    if (k == 0) fail_at(k, fmt::format("the corners of face 0 start at {}, which must be 0", out.offsets[k]));
    fail_at(k, fmt::format("face {} has its corners from {} to before {}; three at least make a face", k - 1,
                           out.offsets[k - 1], out.offsets[k]));
  }
  if (out.offsets.empty()) out.offsets.push_back(0);
  skip();
  const char* const second = p_;
  out.corners = labels(0);
  if (std::size_t(out.offsets.back()) != out.corners.size())
    fail(second, fmt::format("the faces have {} corners by the first list, and {} stand in the second",
                             out.offsets.back(), out.corners.size()));
  for (std::size_t k = 0; k < out.corners.size(); ++k) {
    if (out.corners[k] < 0 || std::size_t(out.corners[k]) >= points)
      fail_at(k, fmt::format("a face has the corner {}, and there are {} points", out.corners[k], points));
  }
  return out;
}

FoamFaces FoamFile::read_binary_faces(std::size_t points) {
  const Opening opening = open_list(std::size_t(least_corners) * std::size_t(header_.label_bytes));
  list_ = {opening.at, p_, 0, true};
  FoamFaces out;
  out.offsets.push_back(0);
  if (opening.bracket == 0) return out;
  for (std::size_t face = 0;; ++face) {
    skip();
    const char* const at = p_;
    if (!at_end() && *p_ == ')') {
      if (opening.count >= 0 && face != static_cast<std::size_t>(opening.count))
        fail(p_, fmt::format("the list ends after {} entries and says that it has {}", face, opening.count));
      ++p_;
      return out;
    }
    const Buffer<Index> corners = read_binary_labels();
    if (corners.size() < std::size_t(least_corners))
      fail(at, fmt::format("face {} has {} corners, and three at least make one", face, corners.size()));
    if (out.corners.size() + corners.size() > static_cast<std::size_t>(largest))
      fail(at, "the faces have more than 2147483647 corners; split the mesh over several processes");
    for (std::size_t k = 0; k < corners.size(); ++k) {
      if (corners[k] < 0 || std::size_t(corners[k]) >= points)
        fail_at(k, fmt::format("face {} has the corner {}, and there are {} points", face, corners[k], points));
    }
    out.corners.insert(out.corners.end(), corners.begin(), corners.end());
    out.offsets.push_back(static_cast<Offset>(out.corners.size()));
  }
}

}  // namespace krilu::io
