// SPDX-License-Identifier: Apache-2.0
// What the factorisations that krilu's are measured against give: PETSc's ILU(k) in petsc_factorisation.cpp, Eigen's
// ILUT in eigen_factorisation.cpp. Each is an object with the matrix in it; run() factors once more, so that the sides
// can take turns. Processor time of one thread, so that others on the machine disturb less.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <span>
#include <string>

#include "krilu/matrix.hpp"

namespace krilu::bench {

/// Seconds of processor time of this process so far.
inline double processor_seconds() {
  std::timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

template <class Work>
double timed(Work&& work) {
  const double start = processor_seconds();
  work();
  return processor_seconds() - start;
}

struct PeerFactorisation {
  virtual ~PeerFactorisation() = default;
  /// Seconds of the part that depends on values.
  virtual double run() = 0;
  /// x = M^-1 b with the factors of the last run.
  virtual void apply(std::span<const double> b, std::span<double> x) = 0;

  std::string version;
  std::int64_t entries = 0;     // kept, pivots among them; after run()
  double symbolic_seconds = 0;  // what went before and depends on the pattern alone
  double copy_seconds = 0;      // of a run: spent on copying the matrix before the factorisation begins
};

/// ILU with levels of fill, natural order, no shifts. `entries`: what it will keep, so that PETSc need not guess. The
/// matrix must outlive the result. Throws krilu::Error in PETSc's words.
std::unique_ptr<PeerFactorisation> petsc_iluk(const CsrMatrix& a, int level, std::int64_t entries);

/// ILUT in natural order, with the least fill factor that gives L its p entries a row (U: p - 1). The matrix must
/// outlive the result.
std::unique_ptr<PeerFactorisation> eigen_ilut(const CsrMatrix& a, int most, double tolerance);

}  // namespace krilu::bench
