// SPDX-License-Identifier: Apache-2.0
#include "solver/requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>

#include "base/names.hpp"
#include "base/together.hpp"
#include "krilu/error.hpp"

namespace krilu::solver {

int gpu_number(const std::string& device) {
  if (device == "cuda") return 0;
  int number = 0;
  const char *begin = device.data() + 5, *end = device.data() + device.size();
  const auto [stop, status] = std::from_chars(begin, end, number);
  if (status != std::errc() || stop != end || number < 0)
    throw Error(fmt::format("device '{}': N in cuda:N is the number of a GPU, counted from 0", device));
  return number;
}

void require_device(const std::string& device) {
  static const std::vector<std::string> devices{"auto", "host", "cuda", "emulated"};
  if (device.starts_with("cuda:"))
    gpu_number(device);
  else
    require_name("device", device, devices);
}

bool wants_host(const Options& o) { return o.triangular == "serial" || o.scaling != "none" || o.precond == "lu"; }

void require_numbers(const Options& o) {
  if (!(o.rtol >= 0) || !(o.atol >= 0)) throw Error("rtol and atol are numbers from 0");
  constexpr int most_vectors = 30000;
  if (o.restart < 1) throw Error(fmt::format("restart is {}: a basis holds at least 1 vector", o.restart));
  if (std::max(o.restart, o.inner_iterations) > most_vectors)
    throw Error(fmt::format("restart and inner-iters are at most {}: a basis of more vectors is not worth its memory",
                            most_vectors));
  if (o.max_iterations < 0) throw Error("max-iters is a whole number from 0");
  exec::require_threads(o.threads);
}

void require_norm(const Options& o) {
  if (o.norm == Norm::openfoam && (o.solver == "gmres" || o.solver == "fgmres"))
    throw Error(
        fmt::format("{} knows its residual in the 2-norm only: take cg or bicgstab with --norm openfoam", o.solver));
}

double largest_of(const exec::Host& host, std::span<const double> v, const char* what, const Counted& counted) {
  std::atomic<double> largest{0};
  std::atomic<bool> finite{true};
  host.for_each_range(v.size(), [&](Index begin, Index end) {
    // In lanes by hand, for vectors: none of them waits for the one before.
    constexpr Index lanes = 8;
    double most_of[lanes] = {}, differences[lanes] = {};
    const auto take = [&](Index i, Index lane) {
      const double of = std::abs(v[std::size_t(i)]);
      most_of[lane] = of > most_of[lane] ? of : most_of[lane];
      differences[lane] += of - of;
    };
    Index i = begin;
    for (; end - i >= lanes; i += lanes)
      for (Index lane = 0; lane < lanes; ++lane) take(i + lane, lane);
    for (; i < end; ++i) take(i, 0);
    double most = 0;
    for (Index lane = 0; lane < lanes; ++lane) {
      most = std::max(most, most_of[lane]);
      if (differences[lane] != 0) finite = false;
    }
    double seen = largest;
    while (most > seen && !largest.compare_exchange_weak(seen, most)) {
    }
  });
  for (std::size_t i = 0; !finite && i < v.size(); ++i)
    if (!std::isfinite(v[i]))
      throw Error(fmt::format("{} holds {} in {} {} (counting from {})", what, std::isnan(v[i]) ? "NaN" : "infinity",
                              counted.name, i + std::size_t(counted.from), counted.from));
  return largest;
}

bool begin_from(const exec::Host& host, std::size_t n, Norm norm, std::span<const double> b, std::span<double> x,
                const Counted& counted, Ranks* ranks) {
  const auto system = [&] { return fmt::format(fmt::runtime(counted.names), n); };
  double largest = 0, largest_guess = 0;
  const auto examine = [&] {
    if (b.size() != n) throw Error(fmt::format("the right-hand side has {} entries and {}", b.size(), system()));
    if (x.size() != n) throw Error(fmt::format("the initial guess has {} entries and {}", x.size(), system()));
    largest = largest_of(host, b, "the right-hand side", counted);
    largest_guess = largest_of(host, x, "the initial guess", counted);
  };
  ranks ? together(*ranks, examine) : examine();
  if (ranks) {
    const double mine[2] = {largest, largest_guess};
    std::vector<double> all(2 * std::size_t(ranks->size()));
    ranks->all_gather(mine, sizeof mine, all.data());
    for (std::size_t k = 0; k < all.size(); k += 2) {
      largest = std::max(largest, all[k]);
      largest_guess = std::max(largest_guess, all[k + 1]);
    }
  }
  constexpr double least = 1e-150, most = 1e149;  // sums of 2^31 squares are numbers
  if ((largest > 0 && largest < least) || largest > most)
    throw Error(fmt::format(
        "the largest entry of the right-hand side is {:.1e}: squares of such numbers are {}; scale the system", largest,
        largest < least ? "zero" : "more than a double holds"));
  const bool zero = norm == Norm::true2 && largest == 0;
  if (zero) std::fill(x.begin(), x.end(), 0.0);
  return zero || largest_guess == 0;
}

Result result_of(krylov::Outcome& out, std::size_t rows) {
  Result r;
  r.status = out.status;
  r.iterations = out.iterations;
  r.relative_residual = out.rhs > 0 ? out.residual / out.rhs : out.residual;
  r.rmse = rows > 0 ? out.residual / std::sqrt(double(rows)) : 0;
  r.initial_residual = out.initial;
  r.history = std::move(out.history);
  if (!out.precision.empty() && out.iterations > 0) r.precision = out.precision;
  r.outer_iterations = out.outer_iterations;
  r.values_lost = out.values_lost;
  return r;
}

std::string common_text(const Options& o) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", o.solver, o.precond, o.triangular, o.ordering,
                     o.scaling, o.restart, o.rtol, o.atol, int(o.norm), o.max_iterations, o.shift, o.precision, o.basis,
                     o.inner_iterations, o.outer_iterations, o.inner_tolerance);
}

}  // namespace krilu::solver
