// SPDX-License-Identifier: Apache-2.0
// What the public solvers share: checks of what they are asked and given, and how an outcome becomes a Result.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "exec/host.hpp"
#include "krilu/ranks.hpp"
#include "krilu/solver.hpp"
#include "krylov/driver.hpp"

namespace krilu::solver {

/// N of "cuda:N"; 0 of "cuda".
int gpu_number(const std::string& device);
/// Throws krilu::Error for a device that has no such name.
void require_device(const std::string& device);
/// Throws krilu::Error for tolerances, restart, iterations and threads that are no such numbers.
void require_numbers(const Options& options);
/// Throws krilu::Error where the solver that is named does not know its residual in the norm.
void require_norm(const Options& options);

/// Whether something is asked for that only the host has, so that `auto` takes no GPU.
bool wants_host(const Options& options);

/// What messages count: rows from 1, cells and faces from 0.
struct Counted {
  const char* name;   // "row"
  const char* names;  // of a system: "the matrix {} rows"
  int from;
};
inline constexpr Counted rows_from_1{"row", "the matrix {} rows", 1}, cells_from_0{"cell", "the mesh {} cells", 0},
    faces_from_0{"face", "the mesh {} faces", 0};

/// Largest magnitude. Throws krilu::Error for NaN and infinity.
double largest_of(const exec::Host& host, std::span<const double> v, const char* what,
                  const Counted& counted = rows_from_1);

/// Throws krilu::Error for vectors that are no right-hand side and guess of n entries. Where b is zero in norm true2, x
/// becomes zero: A x = 0 is met by x = 0 alone, and no relative tolerance says when something else is near enough.
/// True where x holds zeros. With ranks it is collective, and said of all of them.
bool begin_from(const exec::Host& host, std::size_t n, Norm norm, std::span<const double> b, std::span<double> x,
                const Counted& counted = rows_from_1, Ranks* ranks = nullptr);

/// What the outcome itself says; the rest is the solver's.
Result result_of(krylov::Outcome& outcome, std::size_t rows);

struct Timer {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }
};

/// Everything of the options that has to be the same on all ranks of a team.
std::string common_text(const Options& o);

}  // namespace krilu::solver
