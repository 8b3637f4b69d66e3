// SPDX-License-Identifier: Apache-2.0
// Loads on a condition that are on their way together. Of `v[j] = wanted ? *p : 0` for several j the compiler keeps
// each result in a register of its own and merges it with the zero at once, so that the first load is waited for before
// the third is asked for; here the zero stands in the register before the load does. Columns, values and the x that
// they point at so cost three trips to memory whatever the number of entries, where they took up to three each. And how
// the second-level cache is told what passes through it once, so that what an iteration comes back to may stay.
#pragma once

#include <cstdint>

namespace krilu::exec {

#if defined(__CUDACC__)

/// name(p, wanted, otherwise): *p if `wanted`, else `otherwise`, and p need not be an address then.
#define KRILU_ASK(name, load, type, suffix, letter, ...)                                                         \
  __device__ __forceinline__ type name(const type* p, bool wanted, type otherwise = 0) {                         \
    type v;                                                                                                      \
    asm volatile("{.reg .pred q; setp.ne.s32 q, %3, 0; mov." suffix " %0, %1; @q " load "." suffix " %0, [%2];}" \
                 : "=" letter(v)                                                                                 \
                 : letter(otherwise), "l"(p), "r"(int(wanted))                                                   \
                 : __VA_ARGS__);                                                                                 \
    return v;                                                                                                    \
  }
#define KRILU_ASK_ALL(name, load, ...)                         \
  KRILU_ASK(name, load, std::int32_t, "s32", "r", __VA_ARGS__) \
  KRILU_ASK(name, load, float, "f32", "f", __VA_ARGS__)        \
  KRILU_ASK(name, load, double, "f64", "d", __VA_ARGS__)

KRILU_ASK_ALL(ask, "ld.global")
KRILU_ASK_ALL(ask_streamed, "ld.global.cs")  // what is read once
KRILU_ASK(ask_streamed, "ld.global.cs", std::uint16_t, "u16", "h")
KRILU_ASK_ALL(ask_past_l1, "ld.global.cg")                     // past the first-level cache
KRILU_ASK_ALL(ask_relaxed, "ld.relaxed.gpu.global", "memory")  // what other multiprocessors may be writing

#undef KRILU_ASK_ALL
#undef KRILU_ASK

/// A policy of the second-level cache: what is loaded by it leaves before all else.
__device__ __forceinline__ unsigned long long first_to_leave() {
  unsigned long long policy = 0;
#if __CUDA_ARCH__ >= 800
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

#endif

}  // namespace krilu::exec
