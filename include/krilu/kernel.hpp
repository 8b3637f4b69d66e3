// SPDX-License-Identifier: Apache-2.0
// What a text says so that CUDA can compile it too: KRILU_FN opens a kernel, which captures by value; KRILU_INLINE
// marks small functions that kernels and the host call.
#pragma once

#if defined(__CUDACC__)
#define KRILU_FN [=] __device__
#define KRILU_INLINE __host__ __device__ __forceinline__
#else
#define KRILU_FN [=]
#define KRILU_INLINE inline
#endif
