// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no text may crash the reader of SU2 meshes, make it ask for memory out of proportion, or give anything but
// faces between cells that exist; and what it takes becomes a mesh or is refused in one sentence.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/su2_mesh_fuzz.cpp \
//     src/io/{su2_mesh,scan,text_file,coordinates,matrix_market,matrix_market_header}.cpp \
//     src/mesh/{elements,polyhedra,mesh}.cpp src/exec/host.cpp src/base/buffer.cpp -lfmt -o su2_mesh_fuzz
//   ./su2_mesh_fuzz -max_total_time=60 tests/fuzz/corpus_su2
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "io/su2_mesh.hpp"
#include "krilu/error.hpp"
#include "krilu/mesh.hpp"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void require_faces(const krilu::mesh::Polyhedra& p) {
  const auto faces = std::size_t(p.faces()), within = p.neighbour.size();
  require(p.cells > 0 && p.owner.size() == faces && within <= faces, "the numbers of cells and faces");
  for (std::size_t f = 0; f < faces; ++f) {
    require(p.owner[f] >= 0 && p.owner[f] < p.cells, "an owner is out of range");
    require(f >= within || (p.neighbour[f] > p.owner[f] && p.neighbour[f] < p.cells), "a neighbour is out of range");
    require(p.offsets[f + 1] - p.offsets[f] >= 3, "a face is too short");
  }
  for (const krilu::Index c : p.corners)
    require(c >= 0 && std::size_t(c) < p.points.size(), "a corner is out of range");
  std::size_t next = 0;  // of the boundary
  for (const krilu::Patch& patch : p.patches) {
    require(std::size_t(patch.first) == next && patch.faces >= 0 && !patch.name.empty(),
            "patches do not follow one another");
    next += std::size_t(patch.faces);
  }
  require(within + next == faces, "patches do not cover the boundary");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    krilu::mesh::Polyhedra p =
        krilu::io::parse_su2(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    require_faces(p);
    const krilu::Mesh mesh = krilu::mesh::to_mesh(krilu::exec::Host(1), std::move(p));
    for (const double v : mesh.volume) require(v > 0 && std::isfinite(v), "a volume is not positive");
  } catch (const krilu::Error& e) {
    const std::string words = e.what();
    require(!words.empty() && words.find('\n') == std::string::npos, "an error is not one sentence");
  }
  return 0;
}
