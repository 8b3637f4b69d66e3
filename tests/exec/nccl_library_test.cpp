// SPDX-License-Identifier: Apache-2.0
// What NCCL's absence is called. That it works is shown where there are GPUs (distributed_solver_cuda_test.cu).
#include "exec/nccl_library.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "support/refusal.hpp"

namespace krilu::test {
namespace {

using exec::NcclLibrary;

TEST(NcclLibrary, AMissingLibraryIsNamed) {
  expect_words(refusal([] { NcclLibrary("libnccl-nowhere.so.2"); }),
               {"NCCL cannot be loaded", "libnccl-nowhere.so.2", "install"});
}

TEST(NcclLibrary, AMissingFunctionIsNamed) {
  expect_words(refusal([] { NcclLibrary("libc.so.6"); }), {"libc.so.6 has no function ncclGetVersion", "2.7"});
}

TEST(NcclLibrary, TheOneThatIsThereTellsItsVersion) {
  std::optional<NcclLibrary> library;
  try {
    library.emplace();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  EXPECT_GE(library->version_number(), 2700);
  EXPECT_EQ(library->version().substr(0, 2), "2.");
  expect_words(refusal([&] { library->require(4, "trying"); }), {"NCCL failed while trying: ", "argument"});
}

}  // namespace
}  // namespace krilu::test
