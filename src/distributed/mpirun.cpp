// SPDX-License-Identifier: Apache-2.0
// Whether an MPI launcher started this process. Needs no MPI: a build without it asks too, to say what is missing.
#include <cstdlib>

#include "krilu/mpi.hpp"

namespace krilu {

bool started_by_mpirun() {
  // Open MPI; PMIx (srun, prterun); MPICH, Intel MPI and srun with PMI; MVAPICH.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE", "PMI_RANK", "MV2_COMM_WORLD_SIZE"})
    if (std::getenv(name)) return true;
  return false;
}

}  // namespace krilu
