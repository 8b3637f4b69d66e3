// SPDX-License-Identifier: Apache-2.0
#include "base/agreed.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace krilu {

void share_trouble(Ranks& ranks, Trouble own, const std::string& sentence) {
  struct Said {
    Trouble trouble;
    char sentence[508];
  };
  Said mine{own, {}};
  std::strncpy(mine.sentence, sentence.c_str(), sizeof mine.sentence - 1);
  // The sentences only where there is one to read.
  double any = own != Trouble::none;
  ranks.sum({&any, 1});
  if (any == 0) return;
  std::vector<Said> all(std::size_t(ranks.size()));
  ranks.all_gather(&mine, sizeof mine, all.data());
  const auto first =
      std::find_if(all.begin(), all.end(), [](const Said& said) { return said.trouble != Trouble::none; });
  const std::string from =
      ranks.size() > 1 ? "rank " + std::to_string(first - all.begin()) + " of " + std::to_string(ranks.size()) + ": "
                       : std::string();
  const std::string text = from + first->sentence;
  switch (first->trouble) {
    case Trouble::zero_pivot: throw ZeroPivot(text);
    case Trouble::singular: throw StructurallySingular(text);
    default: throw Error(text);
  }
}

void require_same(Ranks& ranks, const std::string& value, const char* what) {
  const std::uint64_t mine = std::hash<std::string>{}(value);
  std::vector<std::uint64_t> all(std::size_t(ranks.size()));
  ranks.all_gather(&mine, sizeof mine, all.data());
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      throw Error(std::string("rank ") + std::to_string(r) + " was given other " + what +
                  " than rank 0: all ranks of a solve must be given the same");
}

}  // namespace krilu
