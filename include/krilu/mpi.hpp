// SPDX-License-Identifier: Apache-2.0
// Ranks over MPI. A program that has called MPI_Init itself includes mpi.h first and gives its communicator to
// mpi_communicator; one that knows nothing of MPI opens an MpiSession:
//
//   int main(int argc, char** argv) {
//     krilu::MpiSession session(argc, argv);
//     try {
//       krilu::DistributedSolver solver(options, session.communicator());
//       ...
//     } catch (const std::exception& e) {
//       session.abort(e.what(), 2);  // this rank's failure ends all of them
//     }
//   }
#pragma once

#include <memory>
#include <string>

#include "krilu/communicator.hpp"

namespace krilu {

/// Whether this process was started by an MPI launcher (mpirun, mpiexec, srun with PMI), even as its only one. Looks at
/// the environment, and needs no MPI.
bool started_by_mpirun();

/// MPI from here to the end of this object, which is made once in a program. Where the program has initialised MPI
/// already, it stays the program's to finalise.
class MpiSession {
 public:
  /// Throws krilu::Error where MPI cannot be initialised, or krilu was built without it.
  MpiSession(int& argc, char**& argv);
  /// Finalises MPI, which waits for the other ranks; not where an exception passes through, since they would wait for
  /// this rank: the launcher ends them when this process ends.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// All ranks of MPI_COMM_WORLD.
  std::shared_ptr<Communicator> communicator() const;

  /// Writes the sentence to stderr and ends all ranks with `status`, within a second or two. Where all ranks come here
  /// with the same sentence, it is written once; else with the rank's number before it.
  [[noreturn]] void abort(const std::string& sentence, int status);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

#if defined(MPI_VERSION)  // mpi.h stands before this header
/// The ranks of `comm`, by a duplicate of it; collective. Calls are made from one thread at a time. A sum is gathered
/// and added in the order of ranks up to 64 of them, and beyond that reduced on one and spread: the same bits on every
/// rank. Throws krilu::Error with MPI's own words where a call fails.
std::shared_ptr<Communicator> mpi_communicator(MPI_Comm comm);
#endif

}  // namespace krilu
