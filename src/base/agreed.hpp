// SPDX-License-Identifier: Apache-2.0
// What one rank of a team finds wrong, all ranks throw: none of them is left waiting for one that gave up.
#pragma once

#include <string>

#include "krilu/error.hpp"
#include "krilu/ranks.hpp"

namespace krilu {

enum class Trouble : int { none, error, zero_pivot, singular };

/// Collective. Throws on all ranks, with the first sentence in the order of ranks, where any has trouble.
void share_trouble(Ranks& ranks, Trouble own, const std::string& sentence);

/// f() on every rank, each its own: f must not be collective. Without ranks just f().
template <class F>
void agreed(Ranks* ranks, F f) {
  if (!ranks) return f();
  Trouble trouble = Trouble::none;
  std::string sentence;
  try {
    f();
  } catch (const ZeroPivot& e) {
    trouble = Trouble::zero_pivot;
    sentence = e.what();
  } catch (const StructurallySingular& e) {
    trouble = Trouble::singular;
    sentence = e.what();
  } catch (const std::exception& e) {
    trouble = Trouble::error;
    sentence = e.what();
  }
  share_trouble(*ranks, trouble, sentence);
}

/// Collective. Throws krilu::Error on all ranks where they do not all hold the same; `what` names it: "options".
void require_same(Ranks& ranks, const std::string& value, const char* what);

}  // namespace krilu
