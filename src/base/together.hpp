// SPDX-License-Identifier: Apache-2.0
// What one rank finds wrong, all ranks throw: else the others would wait for it. Cost: an all_gather of a few bytes.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "krilu/ranks.hpp"

namespace krilu {

/// Collective. Where `mine` is an exception on any rank, all ranks throw the first such rank's sentence (the first
/// NotSymmetric's, where there is one), after
/// "rank R of N: " where there are several ranks: as krilu::ZeroPivot, which says that rows are the rank's own,
/// NotSymmetric or StructurallySingular where it was one, else as krilu::Error.
void agree(Ranks& ranks, const std::exception_ptr& mine);

/// f() on each rank, and then agree() on whether it threw. f makes no collective calls, which the ranks that fail would
/// miss, or sees to it that they do not, as EngineOn::form does.
template <class F>
auto together(Ranks& ranks, F&& f) {
  std::exception_ptr thrown;
  if constexpr (std::is_void_v<decltype(f())>) {
    try {
      f();
    } catch (...) {
      thrown = std::current_exception();
    }
    agree(ranks, thrown);
  } else {
    std::decay_t<decltype(f())> result{};
    try {
      result = f();
    } catch (...) {
      thrown = std::current_exception();
    }
    agree(ranks, thrown);
    return result;
  }
}

/// Collective: rank 0's on all ranks; `mine` where there are no others. For numbers that decide and are each rank's
/// own.
template <class T>
T of_first(Ranks* ranks, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (!ranks || ranks->size() == 1) return mine;
  std::vector<T> all(std::size_t(ranks->size()), mine);
  ranks->all_gather(&mine, sizeof mine, all.data());
  return all.front();
}

/// Collective. Throws krilu::Error on all ranks, naming `what` and the ranks that differ from rank 0, unless all were
/// given the same.
void require_same(Ranks& ranks, const std::string& what, std::int64_t number);
void require_same(Ranks& ranks, const std::string& what, std::string_view bytes);

}  // namespace krilu
