// SPDX-License-Identifier: Apache-2.0
// MpiSession in a build without MPI.
#include <cstdlib>

#include "krilu/error.hpp"
#include "krilu/mpi.hpp"

namespace krilu {

struct MpiSession::Body {};

MpiSession::MpiSession(int&, char**&) {
  throw Error("this krilu was built without MPI: build it with -DKRILU_MPI=ON, or run it without mpirun");
}
MpiSession::~MpiSession() = default;
std::shared_ptr<Communicator> MpiSession::communicator() const { return nullptr; }
void MpiSession::abort(const std::string&, int status) { std::_Exit(status); }

}  // namespace krilu
