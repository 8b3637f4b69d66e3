// SPDX-License-Identifier: Apache-2.0
// What the solvers that krilu is measured against have in common: the record of one run, the true residual, the rule
// for "the same tolerance", and the file in which a system is handed to a peer that must be a process of its own.
//
// Header only and free of krilu's library, so that a peer's figures cannot depend on krilu's code. A peer's own
// stopping test is not trusted: a run counts once ||b - A x||_2 <= rtol ||b||_2 holds for the residual computed here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "krilu/error.hpp"
#include "krilu/matrix.hpp"

namespace krilu::bench {

/// One method of one peer on one system, from a zero initial guess.
struct PeerRun {
  std::string name;    // the library
  std::string method;  // Krylov method + preconditioner, in the peer's own words
  int threads_or_ranks = 1;
  bool converged = false;  // the true residual meets the tolerance
  int iterations = 0;
  double setup_seconds = 0;  // preconditioner formed from an assembled matrix, symbolic and numeric part; median
  double solve_seconds = 0;  // median of the repeats
  double relative_residual = std::numeric_limits<double>::quiet_NaN();  // ||b - A x||_2 / ||b||_2, the true one
  std::string version;

  double solve_seconds_min = 0;
  int repeats = 0;
  double asked_rtol = 0;  // given to the peer: below the benchmark's where the peer's own test stopped too early
  std::string note;       // what was done differently, or why it failed

  double seconds_per_iteration() const { return iterations > 0 ? solve_seconds / iterations : 0; }
};

/// One solve, as a peer reports it to measure().
struct Attempt {
  double seconds = 0;
  int iterations = 0;
  bool stopped_by_test = false;  // the peer believes that it converged
  double true_residual = std::numeric_limits<double>::quiet_NaN();
};

inline void add_note(PeerRun& run, const std::string& text) { run.note += (run.note.empty() ? "" : "; ") + text; }

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n == 0 ? 0 : n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/// Fills the setup's part of `run`. setup() forms everything anew and returns its seconds. Repeated because the first
/// setup of a process pays for memory that later ones find ready; no further once ten seconds have gone.
template <class Setup>
void measure_setup(PeerRun& run, int repeat, Setup&& setup) {
  std::vector<double> seconds;
  double sum = 0;
  do {
    seconds.push_back(setup());
    sum += seconds.back();
  } while (static_cast<int>(seconds.size()) < repeat && sum < 10);
  run.setup_seconds = median(seconds);
}

/// Fills the solve's part of `run`. solve(rtol) performs one solve from zero. Where the peer stops although the true
/// residual is above rtol, the tolerance given to it shrinks tenfold, four times at most. Only the first setting that
/// satisfies rtol is timed, `repeat` times; a peer that gave up (iteration limit, breakdown) is not asked again.
template <class Solve>
void measure(PeerRun& run, double rtol, int repeat, Solve&& solve) {
  constexpr int most_tightenings = 4;
  double asked = rtol;
  Attempt attempt = solve(asked);
  for (int i = 0; i < most_tightenings && attempt.stopped_by_test && !(attempt.true_residual <= rtol); ++i) {
    asked /= 10;
    attempt = solve(asked);
  }
  run.asked_rtol = asked;
  run.iterations = attempt.iterations;
  run.relative_residual = attempt.true_residual;
  run.converged = attempt.true_residual <= rtol;
  std::vector<double> seconds{attempt.seconds};
  while (run.converged && static_cast<int>(seconds.size()) < repeat) {
    attempt = solve(asked);
    seconds.push_back(attempt.seconds);
    run.relative_residual = std::max(run.relative_residual, attempt.true_residual);
    run.converged = attempt.true_residual <= rtol;  // a parallel sum may differ from one run to the next
  }
  run.solve_seconds = median(seconds);
  run.solve_seconds_min = *std::min_element(seconds.begin(), seconds.end());
  run.repeats = static_cast<int>(seconds.size());
  if (asked < rtol) add_note(run, "own test stopped early, its tolerance was tightened");
  if (run.converged && !attempt.stopped_by_test) add_note(run, "did not see its own convergence");
}

/// Sum over the rows of `a` of (b - A x)^2. The columns of `a` may reach beyond its rows (one rank's share). Serial on
/// purpose: threads that OpenMP leaves spinning would disturb whatever is timed next.
inline double squared_residual(const CsrView& a, std::span<const double> b, std::span<const double> x) {
  double sum = 0;
  for (Index i = 0; i < a.rows; ++i) {
    double r = b[static_cast<std::size_t>(i)];
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      r -= a.values[k] * x[static_cast<std::size_t>(a.columns[k])];
    }
    sum += r * r;
  }
  return sum;
}

inline double squared_norm(std::span<const double> v) {
  double sum = 0;
  for (std::size_t i = 0; i < v.size(); ++i) sum += v[i] * v[i];
  return sum;
}

/// ||b - A x||_2 / ||b||_2; the residual itself where b is zero.
inline double relative_residual(const CsrView& a, std::span<const double> b, std::span<const double> x) {
  const double bb = squared_norm(b);
  return std::sqrt(squared_residual(a, b, x) / (bb > 0 ? bb : 1));
}

/// Whether every row has a diagonal entry and all of them are negative, as OpenFOAM's pressure equations have.
/// `first` is the global number of the first row of `a`.
inline bool all_diagonals_negative(const CsrView& a, Index first = 0) {
  for (Index i = 0; i < a.rows; ++i) {
    const Index* begin = a.columns + a.offsets[i];
    const Index* end = a.columns + a.offsets[i + 1];
    const Index* d = std::lower_bound(begin, end, first + i);
    if (d == end || *d != first + i || !(a.values[d - a.columns] < 0)) return false;
  }
  return true;
}

/// Symmetric to rounding (1e-12 of the two entries).
inline bool is_symmetric(const CsrView& a) {
  for (Index i = 0; i < a.rows; ++i) {
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      const Index j = a.columns[k];
      const Index* begin = a.columns + a.offsets[j];
      const Index* end = a.columns + a.offsets[j + 1];
      const Index* t = std::lower_bound(begin, end, i);
      const double mirrored = t != end && *t == i ? a.values[t - a.columns] : 0;
      if (!(std::abs(a.values[k] - mirrored) <= 1e-12 * (std::abs(a.values[k]) + std::abs(mirrored)))) return false;
    }
  }
  return true;
}

/// The run as one line of JSON.
inline std::string to_json(const PeerRun& r) {
  const auto text = [](const std::string& s) {
    std::string out = "\"";
    for (const char c : s) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + '"';
  };
  const auto number = [](double v) -> std::string {
    if (!std::isfinite(v)) return "null";
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.6g", v);
    return buffer;
  };
  return "{\"name\":" + text(r.name) + ",\"method\":" + text(r.method) +
         ",\"threads_or_ranks\":" + std::to_string(r.threads_or_ranks) +
         ",\"converged\":" + (r.converged ? "true" : "false") + ",\"iterations\":" + std::to_string(r.iterations) +
         ",\"setup_seconds\":" + number(r.setup_seconds) + ",\"solve_seconds\":" + number(r.solve_seconds) +
         ",\"solve_seconds_min\":" + number(r.solve_seconds_min) +
         ",\"seconds_per_iteration\":" + number(r.seconds_per_iteration()) +
         ",\"relative_residual\":" + number(r.relative_residual) + ",\"asked_rtol\":" + number(r.asked_rtol) +
         ",\"repeats\":" + std::to_string(r.repeats) + ",\"version\":" + text(r.version) + ",\"note\":" + text(r.note) +
         "}";
}

// The file of a system, in the machine's own byte order:
//   int64 rows, int64 nnz, int32 offsets[rows + 1], int32 columns[nnz], double values[nnz], double b[rows].

namespace detail {
struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;
}  // namespace detail

inline void write_system(const std::string& path, const CsrView& a, std::span<const double> b) {
  if (a.rows != a.cols || b.size() != static_cast<std::size_t>(a.rows)) {
    throw Error(path + ": a system has a square matrix and one right-hand side entry a row");
  }
  detail::File file(std::fopen(path.c_str(), "wb"));
  if (!file) throw Error(path + ": cannot be written");
  const std::int64_t head[2] = {a.rows, a.nnz()};
  const auto rows = static_cast<std::size_t>(a.rows);
  const auto nnz = static_cast<std::size_t>(a.nnz());
  bool good = std::fwrite(head, sizeof head[0], 2, file.get()) == 2;
  good = good && std::fwrite(a.offsets, sizeof *a.offsets, rows + 1, file.get()) == rows + 1;
  good = good && std::fwrite(a.columns, sizeof *a.columns, nnz, file.get()) == nnz;
  good = good && std::fwrite(a.values, sizeof *a.values, nnz, file.get()) == nnz;
  good = good && std::fwrite(b.data(), sizeof(double), rows, file.get()) == rows;
  if (std::fclose(file.release()) != 0) good = false;
  if (!good) throw Error(path + ": could not be written whole (disk full?)");
}

/// A block of consecutive rows of a system: offsets from 0, columns in global numbers.
struct SystemPart {
  Index total_rows = 0;
  Index first_row = 0;
  std::vector<Offset> offsets;
  std::vector<Index> columns;
  std::vector<double> values;
  std::vector<double> b;

  Index rows() const { return static_cast<Index>(b.size()); }
  CsrView view() const { return {rows(), total_rows, offsets.data(), columns.data(), values.data()}; }
};

/// Reads the share of `part` of `parts` ranks, rows evenly divided; by default the whole system.
inline SystemPart read_system(const std::string& path, int part = 0, int parts = 1) {
  detail::File file(std::fopen(path.c_str(), "rb"));
  if (!file) throw Error(path + ": cannot be read");
  const auto read = [&](auto* to, std::int64_t at, std::size_t n) {
    if (fseeko(file.get(), at, SEEK_SET) != 0 || std::fread(to, sizeof *to, n, file.get()) != n) {
      throw Error(path + ": ends before the system does");
    }
  };
  std::int64_t head[2];
  read(head, 0, 2);
  const std::int64_t rows = head[0], nnz = head[1];
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (rows < 0 || rows >= most || nnz < 0 || nnz > most) throw Error(path + ": is not a system's file");
  const std::int64_t first = rows * part / parts, last = rows * (part + 1) / parts;
  const std::int64_t offsets_at = 16, columns_at = offsets_at + 4 * (rows + 1), values_at = columns_at + 4 * nnz,
                     b_at = values_at + 8 * nnz;
  SystemPart s;
  s.total_rows = static_cast<Index>(rows);
  s.first_row = static_cast<Index>(first);
  s.offsets.resize(static_cast<std::size_t>(last - first + 1));
  read(s.offsets.data(), offsets_at + 4 * first, s.offsets.size());
  const Offset begin = s.offsets.front(), end = s.offsets.back();
  if (begin < 0 || end < begin || end > nnz) throw Error(path + ": its row offsets are damaged");
  for (Offset& o : s.offsets) o -= begin;
  s.columns.resize(static_cast<std::size_t>(end - begin));
  s.values.resize(s.columns.size());
  s.b.resize(static_cast<std::size_t>(last - first));
  read(s.columns.data(), columns_at + std::int64_t{4} * begin, s.columns.size());
  read(s.values.data(), values_at + std::int64_t{8} * begin, s.values.size());
  read(s.b.data(), b_at + 8 * first, s.b.size());
  return s;
}

/// Eigen, in eigen_peer.cpp. Methods: see eigen_methods(). Not converging, or a preconditioner that cannot be formed,
/// is a run with converged = false and a note; an unknown method throws krilu::Error. Restores Eigen's thread count.
std::vector<std::string> eigen_methods();
PeerRun run_eigen(const std::string& method, const CsrView& a, std::span<const double> b, double rtol,
                  int max_iterations, int threads, int repeat = 3);

}  // namespace krilu::bench
