// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no bytes may crash the reader of OpenFOAM files, make it ask for memory out of proportion, or give
// anything but what was asked for; and the number of pieces that a list is cut into must not change the outcome. The
// first byte says what the rest is read as.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/foam_file_fuzz.cpp \
//     src/io/{foam_file,foam_list,scan,text_file,coordinates,matrix_market,matrix_market_header}.cpp \
//     src/exec/host.cpp src/base/buffer.cpp -lfmt -o foam_file_fuzz
//   ./foam_file_fuzz -max_total_time=60 tests/fuzz/corpus_foam
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "io/foam_file.hpp"
#include "krilu/error.hpp"

namespace {

using krilu::io::FoamFile;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

struct Outcome {
  krilu::Buffer<krilu::Index> labels;
  krilu::Buffer<krilu::Vector3> points;
  krilu::io::FoamFaces faces;
  std::vector<krilu::io::FoamPatch> patches;
  std::string error;
};

Outcome read(char what, std::string_view text, int threads) {
  constexpr std::size_t points = 100;
  constexpr std::int64_t most = 1000;
  Outcome out;
  try {
    FoamFile file(text, "fuzz", threads);
    if (what % 4 == 0) {
      out.labels = file.labels(most);
      require(out.labels.size() <= std::max<std::size_t>(text.size(), most), "more labels than the text can hold");
      for (const krilu::Index v : out.labels) require(v >= -1, "a label is below -1");
    } else if (what % 4 == 1) {
      out.points = file.points();
      for (const krilu::Vector3& v : out.points)
        require(std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z), "a point is not finite");
    } else if (what % 4 == 2) {
      out.faces = file.faces(points);
      const auto& [offsets, corners] = out.faces;
      require(!offsets.empty() && offsets.front() == 0, "the faces' first offset");
      require(static_cast<std::size_t>(offsets.back()) == corners.size(), "the faces' last offset");
      for (std::size_t f = 1; f < offsets.size(); ++f) require(offsets[f] - offsets[f - 1] >= 3, "a face is too short");
      for (const krilu::Index c : corners) require(c >= 0 && std::size_t(c) < points, "a corner is out of range");
    } else {
      out.patches = file.patches();
      for (const auto& p : out.patches) require(p.first >= 0 && p.faces >= 0 && !p.name.empty(), "a patch");
    }
    file.require_end();
    // Wherever an element stands, there is a place to name.
    const std::size_t n = what % 4 == 0 ? out.labels.size() : what % 4 == 1 ? out.points.size() : 0;
    if (n > 0) file.fail_at(n - 1, "last");
  } catch (const krilu::Error& e) {
    out.error = e.what();
    require(!out.error.empty() && out.error.find('\n') == std::string::npos, "an error is not one sentence");
  }
  return out;
}

template <class T>
bool same(const krilu::Buffer<T>& a, const krilu::Buffer<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const char what = static_cast<char>(data[0] % 4);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome one = read(what, text, 1), three = read(what, text, 3);
  require(one.error == three.error, "errors differ with the number of pieces");
  require(same(one.labels, three.labels) && same(one.points, three.points), "lists differ with the number of pieces");
  require(same(one.faces.offsets, three.faces.offsets) && same(one.faces.corners, three.faces.corners),
          "faces differ with the number of pieces");
  require(one.patches.size() == three.patches.size(), "patches differ with the number of pieces");
  return 0;
}
