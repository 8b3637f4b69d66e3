// SPDX-License-Identifier: Apache-2.0
// KRILU_REQUIRE_GPU(): opens a test that needs a GPU, and skips it where there is none. Included by .cu files only.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace krilu::test {

inline bool have_gpu() {
  int count = 0;
  const bool had = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  cudaGetLastError();
  return had;
}
#define KRILU_REQUIRE_GPU() \
  if (!krilu::test::have_gpu()) GTEST_SKIP() << "this machine has no GPU that CUDA can use"

}  // namespace krilu::test
