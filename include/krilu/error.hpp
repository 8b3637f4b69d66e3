// SPDX-License-Identifier: Apache-2.0
// The one family of exceptions that krilu throws for bad input or bad use.
//
// The text names the file, line, row or option that is at fault and what would mend it. Not converging is a status
// (see krilu/solver.hpp) and never an exception.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace krilu {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what) : std::runtime_error(what) {}
};

/// A factorisation met a pivot that it cannot divide by.
class ZeroPivot : public Error {
 public:
  explicit ZeroPivot(const std::string& what, std::int64_t row = -1) : Error(what), row_(row) {}
  /// The caller's row, from 0; -1 where it is not known.
  std::int64_t row() const { return row_; }

 private:
  std::int64_t row_;
};

/// What is for symmetric matrices was given another one.
class NotSymmetric : public Error {
 public:
  using Error::Error;
};

/// Rows that cannot each be given a column of their own in which they have an entry: a square matrix with such a
/// pattern is singular, whatever its values.
class StructurallySingular : public Error {
 public:
  using Error::Error;
};

}  // namespace krilu
