// SPDX-License-Identifier: Apache-2.0
// Rows that move to other ranks. The new numbering makes each rank's rows consecutive again, in their old order among
// one another; columns are renumbered with them, so that the new matrix is P A P^T, and vectors are carried there and
// back.
// Cost: one question for the new numbers of outside columns, and each row is copied and sent once; while it moves the
// matrix is held twice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "distributed/ranges.hpp"
#include "krilu/communicator.hpp"
#include "krilu/distributed.hpp"

namespace krilu::distributed {

/// How entries of vectors go from the old distribution to the new one, and back.
class Carrier {
 public:
  Carrier() = default;
  /// Collective: new_rank of each of this rank's rows. Throws krilu::Error on all ranks where one is no rank, or a rank
  /// would have 2^31 - 1 rows or more.
  Carrier(std::shared_ptr<Communicator> c, const RowRanges& from, std::span<const int> new_rank);

  const RowRanges& from() const { return from_; }
  const RowRanges& to() const { return to_; }
  /// The new number of each of this rank's old rows.
  const Buffer<std::int64_t>& new_rows() const { return new_rows_; }

  /// Collective: an entry for each old row of this rank in, for each new row out; and the other way.
  void forward(const double* old_part, double* new_part) const;
  void back(const double* new_part, double* old_part) const;
  void forward(const std::int64_t* old_part, std::int64_t* new_part) const;

 private:
  template <class T>
  void carry(const T* in, T* out, bool forward) const;

  std::shared_ptr<Communicator> communicator_;
  RowRanges from_, to_;
  Buffer<std::int64_t> new_rows_;
  std::vector<std::size_t> send_offsets_, receive_offsets_;  // of each rank; ranks + 1
  Buffer<Index> send_;                                       // old local rows, by the rank that they go to
};

struct MovedRows {
  RowsMatrix rows;
  Buffer<std::int64_t> old_row;  // of each new row of this rank: its old number, ascending
};

/// Collective: this rank's rows of P A P^T. The same carrier moves other values of the same pattern, too. Throws
/// krilu::Error on all ranks where a rank would have 2^31 entries or more.
MovedRows redistribute(const std::shared_ptr<Communicator>& c, const RowsView& a, const Carrier& carrier);

}  // namespace krilu::distributed
