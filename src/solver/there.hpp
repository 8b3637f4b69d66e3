// SPDX-License-Identifier: Apache-2.0
// What an engine does with arrays that callers have in its own memory: by their addresses, in the caller's order of
// rows and entries. For a GPU they are krilu/device_span.hpp's; Newton's method has its own.
#pragma once

#include <cstddef>

#include "krilu/matrix.hpp"
#include "krylov/driver.hpp"
#include "solver/plan.hpp"

namespace krilu::solver {

class There {
 public:
  virtual ~There() = default;
  /// Its number; -1 of a device that is none.
  virtual int gpu() const = 0;
  /// Throws krilu::Error where the array is not in this memory. What is done next waits for what the caller's stream
  /// holds now.
  virtual void admit(const void* array, const char* what, void* stream) = 0;

  /// Engine::look. values: null where none are looked at.
  virtual Facts look_there(const CsrView& pattern, const double* values) = 0;
  /// Whether CSR arrays of the lengths of `pattern`, the analysed one, are equal to it.
  virtual bool same_pattern_there(const CsrView& pattern, const Offset* offsets, const Index* columns) = 0;
  /// After Engine::analyse: the preconditioner is formed from values in host memory, and factor_there brings them.
  virtual bool wants_values_here() const = 0;
  /// Engine::factor, with values in the order of the pattern's entries. `seen`: they are those that look_there saw.
  virtual void factor_there(const CsrView& pattern, const double* values, bool seen) = 0;

  struct Sides {
    bool odd =
        false;  // the host has to say what is wrong with them: NaN, infinity, or numbers in b that are huge or all tiny
    bool zero_b = true, zero_x = true;
  };
  virtual Sides examine_there(const double* b, const double* x) = 0;
  /// A x = b from x, as Engine::solve has it.
  virtual krylov::Outcome solve_there(const double* b, double* x, bool from_zero, Monitor& monitor) = 0;
  /// z = M^-1 r
  virtual void apply_there(const double* r, double* z) = 0;

  /// Between this memory and the host's.
  virtual void bring(double* here, const double* there, std::size_t n) = 0;
  virtual void send(double* there, const double* here, std::size_t n) = 0;
};

/// The GPU in whose memory p lies, or -1.
int gpu_of(const void* p);

}  // namespace krilu::solver
