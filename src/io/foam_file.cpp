// SPDX-License-Identifier: Apache-2.0
// Headers, dictionaries and messages of FoamFile; see foam_file.hpp. Its lists are in foam_list.cpp.
#include "io/foam_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "io/matrix_market.hpp"
#include "io/scan.hpp"
#include "krilu/error.hpp"

namespace krilu::io {

namespace {

constexpr std::string_view openings = "([{", closings = ")]}";

/// Behind the text in quotation marks whose first mark stands at p, or nullptr where it is not closed.
const char* skip_quoted(const char* p, const char* end) {
  for (++p; p != end; ++p) {
    if (*p == '"') return p + 1;
    if (*p == '\\' && ++p == end) break;
  }
  return nullptr;
}

std::string unquoted(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  return std::string(value);
}

/// The whole number that follows `name` in the header's arch, or `missing`.
int bits_in(std::string_view arch, std::string_view name, int missing) {
  const std::size_t at = arch.find(name);
  if (at == std::string_view::npos) return missing;
  std::int64_t bits = 0;
  const char* const end = arch.data() + arch.size();
  return scan_integer(arch.data() + at + name.size(), end, bits) && bits <= 1024 ? static_cast<int>(bits) : -1;
}

}  // namespace

const char* skip_comment(const char* p, const char* end) {
  if (end - p < 2 || p[0] != '/') return p;
  if (p[1] == '/') return next_line(p, end);
  if (p[1] != '*') return p;
  const std::string_view rest(p + 2, static_cast<std::size_t>(end - p - 2));
  const std::size_t close = rest.find("*/");
  return close == std::string_view::npos ? end : rest.data() + close + 2;
}

FoamFile::FoamFile(std::string_view text, std::string label, int threads)
    : text_(text),
      label_(std::move(label)),
      p_(text.data()),
      end_(text.data() + text.size()),
      threads_(team_size(text, threads)) {
  read_header();
}

void FoamFile::fail(const char* at, const std::string& what) const {
  if (count_bytes_) throw Error(fmt::format("{}, byte {}: {}", label_, at - text_.data(), what));
  throw Error(fmt::format("{}:{}: {}", label_, line_number(text_, at), what));
}

void FoamFile::fail_at(std::size_t k, const std::string& what) const {
  const char* at = list_.first;
  if (list_.width > 0) fail(at + k * list_.width, what);
  at = skip_spaces_and_comments(at, end_);
  for (; k > 0 && !list_.uniform && at != end_; --k) {
    const auto ends = [](char c) { return is_space(c) || c == '(' || c == ')' || c == '/'; };
    at = skip_spaces_and_comments(std::find_if(at, end_, ends), end_);
    if (at != end_ && *at == '(') at = std::find(at, end_, ')');
    if (at != end_ && *at == ')') ++at;
    at = skip_spaces_and_comments(at, end_);
  }
  fail(at, what);
}

std::string FoamFile::seen(const char* at) const {
  if (at == end_) return "the end of the file";
  const char* stop = std::find_if(at, end_, is_space);
  return io::in_quotes({at, static_cast<std::size_t>(stop - at)});
}

void FoamFile::fail_wanted(const char* at, const std::string& wanted) const {
  fail(at, fmt::format("{} stands where {} belongs", seen(at), wanted));
}

void FoamFile::skip() { p_ = skip_spaces_and_comments(p_, end_); }

void FoamFile::take(char c, const std::string& wanted) {
  skip();
  if (at_end() || *p_ != c) fail_wanted(p_, wanted);
  ++p_;
}

void FoamFile::require_end() {
  skip();
  if (!at_end()) fail_wanted(p_, "the end of the file");
}

std::string FoamFile::word(const std::string& wanted) {
  skip();
  const char* const start = p_;
  if (!at_end() && *p_ == '"') {
    const char* const stop = skip_quoted(p_, end_);
    if (!stop) fail(start, "a quotation mark opens here and none closes it");
    p_ = stop;
    return std::string(start + 1, stop - 1);
  }
  const auto ends = [](char c) { return is_space(c) || std::string_view("\"';{}/").find(c) != std::string_view::npos; };
  p_ = std::find_if(p_, end_, ends);
  if (p_ == start) fail_wanted(start, wanted);
  return std::string(start, p_);
}

std::string_view FoamFile::value(const std::string& key) {
  skip();
  const char* const start = p_;
  int depth = 0;
  while (!at_end() && !(*p_ == ';' && depth == 0)) {
    if (const char* const after = skip_comment(p_, end_); after != p_) {
      p_ = after;
    } else if (*p_ == '"') {
      const char* const stop = skip_quoted(p_, end_);
      if (!stop) fail(p_, "a quotation mark opens here and none closes it");
      p_ = stop;
    } else {
      if (openings.find(*p_) != std::string_view::npos) ++depth;
      if (closings.find(*p_) != std::string_view::npos && --depth < 0) break;
      ++p_;
    }
  }
  if (at_end() || *p_ != ';') fail(start, fmt::format("the entry {} does not end with ';'", io::in_quotes(key)));
  const char* stop = p_++;
  while (stop != start && is_space(stop[-1])) --stop;
  return {start, static_cast<std::size_t>(stop - start)};
}

void FoamFile::skip_dictionary() {
  const char* const start = p_;
  int depth = 0;
  do {
    skip();
    if (at_end()) fail(start, "a dictionary opens here and does not end");
    if (*p_ == '"') {
      const char* const stop = skip_quoted(p_, end_);
      if (!stop) fail(p_, "a quotation mark opens here and none closes it");
      p_ = stop;
      continue;
    }
    if (*p_ == '{') ++depth;
    if (*p_ == '}') --depth;
    ++p_;
  } while (depth > 0);
}

template <class F>
void FoamFile::entries(F f) {
  for (;;) {
    skip();
    const char* const at = p_;
    if (!at_end() && *p_ == '}') {
      ++p_;
      return;
    }
    constexpr const char* wanted = "an entry or the '}' of a dictionary";
    if (!at_end() && closings.find(*p_) != std::string_view::npos) fail_wanted(at, wanted);
    const std::string key = word(wanted);
    skip();
    if (!at_end() && *p_ == '{') {
      skip_dictionary();
    } else {
      f(key, value(key), at);
    }
  }
}

void FoamFile::read_header() {
  skip();
  const char* const start = p_;
  constexpr std::string_view name = "FoamFile";
  if (!std::string_view(p_, static_cast<std::size_t>(end_ - p_)).starts_with(name))
    fail(start, fmt::format("{} stands where an OpenFOAM file has its header, FoamFile {{ ... }}", seen(start)));
  p_ += name.size();
  take('{', "the '{' of the header FoamFile");
  entries([&](const std::string& key, std::string_view value, const char* at) {
    if (key == "format") {
      if (value != "ascii" && value != "binary")
        fail(at, fmt::format("the format {} is neither ascii nor binary", io::in_quotes(value)));
      header_.binary = value == "binary";
    } else if (key == "class") {
      header_.class_name = unquoted(value);
      class_at_ = at;
    } else if (key == "arch") {
      const std::string arch = unquoted(value);
      const bool foreign = arch.find(std::endian::native == std::endian::little ? "MSB" : "LSB") != std::string::npos;
      const int label = bits_in(arch, "label=", 32), scalar = bits_in(arch, "scalar=", 64);
      const auto is_known = [](int bits) { return bits == 32 || bits == 64; };
      if (foreign || !is_known(label) || !is_known(scalar))
        fail(at, fmt::format("the arch {} is not one that this machine reads: labels and scalars have 32 or 64 bits, "
                             "in its own order of bytes; write the mesh as ASCII (foamFormatConvert)",
                             io::in_quotes(arch)));
      header_.label_bytes = label / 8;
      header_.scalar_bytes = scalar / 8;
    }
  });
  if (header_.class_name == "decomposedBlockData")
    fail(start, "the file is collated, all processors in one; write it with -fileHandler uncollated");
  count_bytes_ = header_.binary;
}

std::vector<FoamPatch> FoamFile::patches() {
  count_bytes_ = false;  // dictionaries are text whatever the format
  skip();
  const char* const start = p_;
  std::int64_t count = -1;
  if (!at_end() && *p_ != '(') {
    const char* const after = scan_integer(p_, end_, count);
    if (!after || count < 0) fail_wanted(p_, "the number of patches");
    p_ = after;
  }
  take('(', "the '(' of the patches");
  std::vector<FoamPatch> out;
  for (;;) {
    skip();
    if (!at_end() && *p_ == ')') break;
    FoamPatch patch;
    patch.at = p_;
    patch.name = word("the name of a patch or the ')' behind the last");
    take('{', fmt::format("the '{{' of the patch {}", io::in_quotes(patch.name)));
    patch.faces = patch.first = -1;
    entries([&](const std::string& key, std::string_view value, const char* at) {
      if (key == "type") patch.type = unquoted(value);
      if (key != "nFaces" && key != "startFace") return;
      std::int64_t& number = key == "nFaces" ? patch.faces : patch.first;
      const char* const end = value.data() + value.size();
      if (scan_integer(value.data(), end, number) != end || number < 0 || number > std::numeric_limits<Index>::max())
        fail(at, fmt::format("{} {} of the patch {} is not a number of faces", key, io::in_quotes(value),
                             io::in_quotes(patch.name)));
    });
    for (const auto& [missing, key] :
         {std::pair(patch.type.empty(), "type"), {patch.faces < 0, "nFaces"}, {patch.first < 0, "startFace"}})
      if (missing) fail(patch.at, fmt::format("the patch {} has no entry {}", io::in_quotes(patch.name), key));
    out.push_back(std::move(patch));
  }
  if (count >= 0 && count != static_cast<std::int64_t>(out.size()))
    fail(start, fmt::format("the file says {} patches and has {}", count, out.size()));
  ++p_;
  return out;
}

}  // namespace krilu::io
