// SPDX-License-Identifier: Apache-2.0
#include "exec/nccl_library.hpp"

#include <dlfcn.h>

#include <type_traits>

#include "krilu/error.hpp"

namespace krilu::exec {

NcclLibrary::NcclLibrary(const std::string& file) {
  // Never closed: NCCL has threads of its own.
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const why = dlerror();
    throw Error("NCCL cannot be loaded (" + std::string(why ? why : file) +
                "): install it, or name its folder in LD_LIBRARY_PATH");
  }
  const auto find = [&](auto& function, const char* name) {
    void* const found = dlsym(library, name);
    if (!found) throw Error(file + " has no function " + name + ": krilu needs NCCL 2.7 or later, install it");
    function = reinterpret_cast<std::decay_t<decltype(function)>>(found);
  };
  find(GetVersion, "ncclGetVersion");
  find(GetErrorString, "ncclGetErrorString");
  find(GetUniqueId, "ncclGetUniqueId");
  find(CommInitRank, "ncclCommInitRank");
  find(CommAbort, "ncclCommAbort");
  find(CommGetAsyncError, "ncclCommGetAsyncError");
  find(AllGather, "ncclAllGather");
  find(Send, "ncclSend");
  find(Recv, "ncclRecv");
  find(GroupStart, "ncclGroupStart");
  find(GroupEnd, "ncclGroupEnd");
  require(GetVersion(&version_), "asking for its version");
}

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary library;  // where this throws, the next call tries again
  return library;
}

std::string NcclLibrary::version() const {
  const int major = version_ >= 10000 ? version_ / 10000 : version_ / 1000;  // counted otherwise until 2.8
  return std::to_string(major) + "." + std::to_string(version_ / 100 - major * (version_ >= 10000 ? 100 : 10)) + "." +
         std::to_string(version_ % 100);
}

void NcclLibrary::require(Result result, const char* doing) const {
  if (result != success)
    throw Error(std::string("NCCL failed while ") + doing + ": " + GetErrorString(result) +
                "; NCCL_DEBUG=INFO makes it say more");
}

}  // namespace krilu::exec
