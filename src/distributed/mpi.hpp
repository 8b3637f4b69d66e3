// SPDX-License-Identifier: Apache-2.0
// What the MPI communicator takes for granted, to be set otherwise by its tests. mpi.h stands before this header.
#pragma once

#include <cstddef>
#include <memory>

#include "krilu/communicator.hpp"

namespace krilu::distributed {

struct MpiTuning {
  std::size_t longest = std::size_t(1) << 30;  // bytes of one message; MPI 3 counts in int
  int gathered = 64;                           // ranks whose sums are gathered
};
std::shared_ptr<Communicator> mpi_communicator(MPI_Comm comm, const MpiTuning& tuning);

}  // namespace krilu::distributed
