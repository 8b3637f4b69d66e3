// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine and for any number of threads: a function of a number, not a
// sequence.
#pragma once

#include <cstdint>

namespace krilu {

/// splitmix64 [Steele, Lea, Flood 2014] of a state: 64 random bits.
inline std::uint64_t random_bits(std::uint64_t state) {
  std::uint64_t z = state + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// The same as a number in [0, 1) with 53 random bits.
inline double unit_random(std::uint64_t state) { return double(random_bits(state) >> 11) * 0x1.0p-53; }

}  // namespace krilu
