// SPDX-License-Identifier: Apache-2.0
// The memory bandwidth that a machine gives, as a yardstick for the solvers: STREAM's triad a[i] = b[i] + s c[i] and
// its copy a[i] = b[i], 20 passes each, or as many, 5 at least, as three seconds hold. Three arrays, each four times
// the last-level cache, 64 Mi doubles at most (a virtual machine may report its host's whole cache). Triad counts 24
// bytes an element and copy 16, as STREAM does: the lines that a plain store reads before it writes are not counted.
// Source: McCalpin, "Memory bandwidth and machine balance in current high performance computers", 1995.
#pragma once

#include <omp.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace krilu::bench {

/// GB/s, 1 GB = 1e9 bytes.
struct Bandwidth {
  double triad_best = 0, triad_median = 0;
  double copy_best = 0, copy_median = 0;
  int threads = 0;
  std::size_t elements = 0;  // of each of the three arrays
  bool checked = false;      // the arrays hold what they should afterwards
};

/// Bytes of the last-level cache, as the system tells; 32 MiB where it does not.
inline std::size_t last_level_cache() {
  std::size_t bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  bytes = static_cast<std::size_t>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)));
#endif
  for (int index = 3; bytes == 0 && index >= 2; --index) {  // Arm machines tell it here only
    char path[96];
    std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    if (std::FILE* f = std::fopen(path, "r")) {
      unsigned long long size = 0;
      char unit = 0;
      if (std::fscanf(f, "%llu%c", &size, &unit) >= 1) bytes = size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
      std::fclose(f);
    }
  }
  return bytes ? bytes : std::size_t{32} << 20;
}

/// Measures with `threads` OpenMP threads. Throws std::bad_alloc where the arrays do not fit.
inline Bandwidth measure_bandwidth(int threads) {
  constexpr int fewest_passes = 5, passes = 20;
  constexpr double patience = 3;
  constexpr std::size_t page = std::size_t{2} << 20;
  const std::size_t n = std::clamp(4 * last_level_cache() / sizeof(double), std::size_t{1} << 22, std::size_t{1} << 26);

  // Uninitialised and in huge pages where the system gives them, as krilu's own arrays are; the threads that use the
  // pages touch them first.
  struct Free {
    void operator()(double* p) const { std::free(p); }
  };
  const auto array = [&] {
    const std::size_t bytes = (n * sizeof(double) + page - 1) / page * page;
    void* p = std::aligned_alloc(page, bytes);
    if (!p) throw std::bad_alloc();
#ifdef __linux__
    madvise(p, bytes, MADV_HUGEPAGE);
#endif
    return std::unique_ptr<double, Free>(static_cast<double*>(p));
  };
  const auto owned_a = array(), owned_b = array(), owned_c = array();
  double* const a = owned_a.get();
  double* const b = owned_b.get();
  double* const c = owned_c.get();
  const auto count = static_cast<std::ptrdiff_t>(n);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    a[i] = 0;
    b[i] = 1;
    c[i] = 2;
  }

  Bandwidth result;
  result.threads = threads;
  result.elements = n;
  const auto rates = [&](double bytes_per_element, double& best, double& median, auto&& pass) {
    std::vector<double> rate;
    pass();  // not counted: threads wake, pages settle
    const double begin = omp_get_wtime();
    for (int i = 0; i < passes && (i < fewest_passes || omp_get_wtime() - begin < patience); ++i) {
      const double start = omp_get_wtime();
      pass();
      rate.push_back(bytes_per_element * static_cast<double>(n) / (omp_get_wtime() - start) * 1e-9);
    }
    std::sort(rate.begin(), rate.end());
    best = rate.back();
    median = 0.5 * (rate[(rate.size() - 1) / 2] + rate[rate.size() / 2]);
  };
  rates(16, result.copy_best, result.copy_median, [&] {
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (std::ptrdiff_t i = 0; i < count; ++i) a[i] = b[i];
  });
  const bool copied = a[0] == 1 && a[count - 1] == 1;
  const double scale = 3;
  rates(24, result.triad_best, result.triad_median, [&] {
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (std::ptrdiff_t i = 0; i < count; ++i) a[i] = b[i] + scale * c[i];
  });
  result.checked = copied && a[0] == 7 && a[count - 1] == 7;
  return result;
}

}  // namespace krilu::bench
