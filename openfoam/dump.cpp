// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump.hpp"

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "OSspecific.H"
#include "Time.H"
#include "krilu/error.hpp"
#include "krilu/io.hpp"

namespace Foam {

namespace {

/// Coordinate, real, 17 digits, rows and columns from 1: of a symmetric matrix the lower triangle.
void writeMatrix(const std::string& path, const krilu::CsrView& a, bool symmetric) {
  if (!symmetric) return krilu::write_matrix_market(path, a);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
  if (!file) throw krilu::Error("cannot write " + path);
  krilu::Offset entries = 0;
  for (krilu::Index i = 0; i < a.rows; ++i)
    for (krilu::Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) entries += a.columns[k] <= i;
  std::fprintf(file.get(), "%%%%MatrixMarket matrix coordinate real symmetric\n%d %d %d\n", a.rows, a.cols, entries);
  for (krilu::Index i = 0; i < a.rows; ++i)
    for (krilu::Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
      if (a.columns[k] <= i) std::fprintf(file.get(), "%d %d %.17g\n", i + 1, a.columns[k] + 1, a.values[k]);
  if (std::fflush(file.get()) != 0 || std::ferror(file.get())) throw krilu::Error("cannot write the whole of " + path);
}

}  // namespace

void kriluDump(const lduMatrix& matrix, bool coupled, const word& fieldName, const scalarField& psi,
               const scalarField& source, const krilu::CsrView& a) {
  if (coupled || !matrix.mesh().hasDb()) {
    static bool warned = false;
    if (!warned)
      WarningInFunction << "krilu: dump: " << fieldName << " is not written, since its matrix is "
                        << (coupled ? "coupled by interfaces: run the case serial and without cyclic patches"
                                    : "of no mesh with a registry")
                        << endl;
    warned = true;
    return;
  }
  const Time& time = matrix.mesh().thisDb().time();
  const fileName folder = time.path() / "krilu" / time.timeName();
  static std::map<std::string, int> solves;
  const int number = ++solves[folder + "/" + fieldName];
  mkDir(folder);
  const std::string base = folder + "/" + fieldName + "_" + std::to_string(number);
  writeMatrix(base + ".mtx", a, matrix.symmetric());
  krilu::write_vector(base + "_b.mtx", {source.begin(), source.end()});
  krilu::write_vector(base + "_x0.mtx", {psi.begin(), psi.end()});
}

}  // namespace Foam
