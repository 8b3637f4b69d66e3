// SPDX-License-Identifier: Apache-2.0
// NVIDIA's NCCL, found at run time: builds need none, and where it is missing only what asks for it does without. What
// krilu calls is declared here after NCCL's documented interface, which is the same in all versions from 2.7 on.
#pragma once

#include <cstddef>
#include <string>

struct CUstream_st;  // what a cudaStream_t points to

namespace krilu::exec {

class NcclLibrary {
 public:
  struct Communicator;  // NCCL's own
  struct Id {
    char bytes[128];
  };
  using Result = int;
  using Stream = CUstream_st*;
  static constexpr Result success = 0, in_progress = 7;
  static constexpr int float64 = 8;

  /// Throws krilu::Error, which names the file or the function, where the library or one of its functions is missing.
  explicit NcclLibrary(const std::string& file = "libnccl.so.2");
  /// The usual one, for the rest of the process.
  static const NcclLibrary& get();

  int version_number() const { return version_; }  // as NCCL counts: 22809
  std::string version() const;                     // "2.28.9"
  /// Throws krilu::Error with NCCL's own words and what krilu was doing.
  void require(Result result, const char* doing) const;

  // NCCL's functions, without the prefix.
  Result (*GetVersion)(int* version);
  const char* (*GetErrorString)(Result result);
  Result (*GetUniqueId)(Id* id);
  Result (*CommInitRank)(Communicator** made, int ranks, Id id, int rank);
  Result (*CommAbort)(Communicator* communicator);
  Result (*CommGetAsyncError)(Communicator* communicator, Result* result);
  Result (*AllGather)(const void* mine, void* all, std::size_t count, int type, Communicator* c, Stream stream);
  Result (*Send)(const void* from, std::size_t count, int type, int rank, Communicator* c, Stream stream);
  Result (*Recv)(void* to, std::size_t count, int type, int rank, Communicator* c, Stream stream);
  Result (*GroupStart)();
  Result (*GroupEnd)();

 private:
  int version_ = 0;
};

}  // namespace krilu::exec
