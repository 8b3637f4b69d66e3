// SPDX-License-Identifier: Apache-2.0
// FoamFile: one file of an OpenFOAM case, from memory: its header, and then lists of labels, points or faces, or the
// dictionaries of a boundary.
//
// Source: the file format of the OpenFOAM user guide, and for binary files what its IOstreams write: a count, then the
// raw bytes between parentheses, labels of 32 or 64 bits and scalars of 32 or 64 as the header's arch says; faces as
// two lists, where each face's corners start and the corners (faceCompactList), or as a list of lists.
// Cost: long ASCII lists are read by a team of threads in pieces that end with an element, about 10 ns a label and
// 60 ns a point on one core. Where a piece is not plain numbers, the list is read again from its start, by one thread
// that knows comments and says what is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "krilu/buffer.hpp"
#include "krilu/types.hpp"
#include "krilu/vector3.hpp"

namespace krilu::io {

/// What the dictionary FoamFile at the start of a file says.
struct FoamHeader {
  bool binary = false;
  int label_bytes = 4, scalar_bytes = 8;  // in binary lists
  std::string class_name;                 // empty: not said
};

/// Corners of face f: corners[offsets[f]] .. corners[offsets[f + 1] - 1].
struct FoamFaces {
  Buffer<Offset> offsets;
  Buffer<Index> corners;
};

struct FoamPatch {
  std::string name, type;
  std::int64_t first = 0, faces = 0;  // counted from the mesh's first face
  const char* at = nullptr;           // its name in the text
};

class FoamFile {
 public:
  /// Reads the header. `label` is what messages call the text, which must outlive this object. threads 0: all, or one
  /// where the text is short. All members throw krilu::Error "LABEL:LINE: ..." or, in binary lists, "LABEL, byte N:
  /// ...", the byte counted from 0 and after unpacking.
  FoamFile(std::string_view text, std::string label, int threads = 0);

  const FoamHeader& header() const { return header_; }

  /// The next list of labels, each from -1 to 2^31 - 1. A uniform list, N{v}, has `most` labels at most; 0: it
  /// is refused.
  Buffer<Index> labels(std::int64_t most);
  /// The next list of points, which are finite.
  Buffer<Vector3> points();
  /// The next list of faces, in the form that the header's class names: three corners at least, each one of the points.
  FoamFaces faces(std::size_t points);
  /// The patches of a boundary, each with all four of its fields.
  std::vector<FoamPatch> patches();

  /// Throws unless nothing but comments follows.
  void require_end();

  [[noreturn]] void fail(const char* at, const std::string& what) const;
  /// Fails at element k of the list that was read last.
  [[noreturn]] void fail_at(std::size_t k, const std::string& what) const;
  /// Fails where that list starts, or where reading has come to.
  [[noreturn]] void fail_list(const std::string& what) const { fail(list_.at, what); }
  [[noreturn]] void fail_here(const std::string& what) const { fail(p_, what); }

 private:
  struct Opening {
    char bracket = 0;         // ( or {; 0: an empty list that has none
    std::int64_t count = -1;  // -1: not said
    const char* at = nullptr;
  };

  void skip();
  bool at_end() const { return p_ == end_; }
  /// The blank-delimited word at `at`, quoted, or "the end of the file".
  std::string seen(const char* at) const;
  [[noreturn]] void fail_wanted(const char* at, const std::string& wanted) const;
  void take(char c, const std::string& wanted);
  std::string word(const std::string& wanted);
  std::string_view value(const std::string& key);
  /// f(key, value, place) for each entry up to the closing brace; dictionaries among them are passed over.
  template <class F>
  void entries(F f);
  void skip_dictionary();
  void read_header();

  Opening open_list(std::size_t least_bytes);
  [[noreturn]] void fail_uniform(const Opening& opening) const;
  template <class E>
  void read_text(E& out);
  template <class E>
  bool read_pieces(const char* end, std::int64_t count, E& out);
  /// The bytes of a binary list whose elements have `width` of them.
  std::string_view read_raw(std::size_t width);
  Buffer<Index> read_binary_labels();
  FoamFaces read_compact(std::size_t points);
  FoamFaces read_binary_faces(std::size_t points);

  std::string_view text_;
  std::string label_;
  const char* p_;
  const char* end_;
  int threads_;
  FoamHeader header_;
  const char* class_at_ = nullptr;
  bool count_bytes_ = false;  // in messages

  struct {
    const char* at = nullptr;     // its count or opening bracket
    const char* first = nullptr;  // its first element
    std::size_t width = 0;        // bytes of an element; 0 for text
    bool uniform = false;
  } list_;  // the one that was read last
};

/// Space, tab, and the ends of lines and pages.
inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Behind the comment that opens at p, or p if none does. A comment that is never closed ends with the text.
const char* skip_comment(const char* p, const char* end);

inline const char* skip_spaces(const char* p, const char* end) {
  while (p != end && is_space(*p)) ++p;
  return p;
}
inline const char* skip_spaces_and_comments(const char* p, const char* end) {
  for (;;) {
    p = skip_spaces(p, end);
    if (p == end || *p != '/') return p;
    const char* const after = skip_comment(p, end);
    if (after == p) return p;
    p = after;
  }
}

}  // namespace krilu::io
