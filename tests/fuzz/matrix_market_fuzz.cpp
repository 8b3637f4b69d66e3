// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no text may crash the Matrix Market reader, make it ask for memory out of proportion, or give anything but
// valid rows; and the number of pieces that the text is cut into must not change the outcome.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/matrix_market_fuzz.cpp \
//     src/io/{scan,text_file,coordinates,matrix_market,matrix_market_header}.cpp src/exec/host.cpp src/base/buffer.cpp
//     \ -lfmt -o matrix_market_fuzz && ./matrix_market_fuzz -max_total_time=60 tests/fuzz/corpus
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "krilu/error.hpp"
#include "krilu/io.hpp"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

struct Outcome {
  krilu::ReadMatrix read;
  std::string error;
};

Outcome parse(std::string_view text, int threads) {
  Outcome out;
  try {
    out.read = krilu::parse_matrix_market(text, "fuzz", threads);
  } catch (const krilu::Error& e) {
    out.error = e.what();
    require(!out.error.empty() && out.error.find('\n') == std::string::npos, "an error is not one sentence");
    return out;
  }
  const krilu::CsrMatrix& a = out.read.matrix;
  require(a.rows >= 0 && a.cols >= 0, "negative sizes");
  require(a.offsets.size() == static_cast<std::size_t>(a.rows) + 1 && a.offsets[0] == 0, "offsets");
  require(a.columns.size() == static_cast<std::size_t>(a.nnz()) && a.values.size() == a.columns.size(), "lengths");
  for (krilu::Index i = 0; i < a.rows; ++i) {
    require(a.offsets[i] <= a.offsets[i + 1], "offsets descend");
    for (krilu::Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      require(a.columns[k] >= 0 && a.columns[k] < a.cols, "a column is out of range");
      require(k == a.offsets[i] || a.columns[k - 1] < a.columns[k], "columns do not ascend");
      require(a.values[k] - a.values[k] == 0, "a value is not finite");
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Outcome one = parse(text, 1);
  if (size % 2 == 0) return 0;
  const Outcome three = parse(text, 3);
  require(one.error == three.error, "errors differ with the number of pieces");
  const krilu::CsrMatrix &a = one.read.matrix, &b = three.read.matrix;
  require(a.offsets == b.offsets && a.columns == b.columns, "patterns differ with the number of pieces");
  require(a.values.empty() || std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)) == 0,
          "values differ with the number of pieces");
  require(one.read.facts.duplicates == three.read.facts.duplicates, "duplicates differ with the number of pieces");
  return 0;
}
