// SPDX-License-Identifier: Apache-2.0
#include "base/together.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <vector>

#include "base/random.hpp"
#include "krilu/error.hpp"

namespace krilu {

namespace {

enum class Kind : std::int64_t { none, error, zero_pivot, not_symmetric, structurally_singular };

struct Failure {
  Kind kind = Kind::none;
  std::string sentence;
};

Failure failure_of(const std::exception_ptr& thrown) {
  if (!thrown) return {};
  try {
    std::rethrow_exception(thrown);
  } catch (const ZeroPivot& e) {
    return {Kind::zero_pivot, std::string(e.what()) + (e.row() >= 0 ? "; rows are counted within the rank" : "")};
  } catch (const NotSymmetric& e) {
    return {Kind::not_symmetric, e.what()};
  } catch (const StructurallySingular& e) {
    return {Kind::structurally_singular, e.what()};
  } catch (const std::bad_alloc&) {
    return {Kind::error, "the memory of its machine does not suffice; use more ranks on more machines"};
  } catch (const std::exception& e) {
    return {Kind::error, e.what()};
  } catch (...) {
    return {Kind::error, "an exception of an unknown kind"};
  }
}

/// "ranks 1, 4 and 7"
std::string names_of(const std::vector<int>& ranks) {
  constexpr std::size_t most = 10;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  if (ranks.size() > most)
    return fmt::format("ranks {} and {} others", fmt::join(ranks.begin(), ranks.begin() + most, ", "),
                       ranks.size() - most);
  return fmt::format("ranks {} and {}", fmt::join(ranks.begin(), ranks.end() - 1, ", "), ranks.back());
}

std::vector<int> different_from_first(const std::vector<std::int64_t>& all) {
  std::vector<int> different;
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0]) different.push_back(int(r));
  return different;
}

}  // namespace

void agree(Ranks& ranks, const std::exception_ptr& mine) {
  if (ranks.size() == 1) {
    if (mine) std::rethrow_exception(mine);
    return;
  }
  const Failure failure = failure_of(mine);
  struct Notice {
    Kind kind;
    std::int64_t length;
  };
  const Notice notice{failure.kind, std::int64_t(failure.sentence.size())};
  const auto team = std::size_t(ranks.size());
  std::vector<Notice> all(team);
  ranks.all_gather(&notice, sizeof notice, all.data());
  const auto first_of = [&](auto says) { return std::find_if(all.begin(), all.end(), says) - all.begin(); };
  auto first = first_of([](const Notice& n) { return n.kind == Kind::not_symmetric; });  // the whole matrix is not
  if (std::size_t(first) == team) first = first_of([](const Notice& n) { return n.kind != Kind::none; });
  if (std::size_t(first) == team) return;
  // That one's sentence; the others send as many bytes of nothing.
  const auto length = std::size_t(all[std::size_t(first)].length);
  std::string sentence = failure.sentence;
  sentence.resize(length);
  std::string sentences(team * length, '\0');
  ranks.all_gather(sentence.data(), length, sentences.data());
  const std::string what =
      fmt::format("rank {} of {}: {}", first, team, sentences.substr(std::size_t(first) * length, length));
  switch (all[std::size_t(first)].kind) {
    case Kind::zero_pivot: throw ZeroPivot(what);
    case Kind::not_symmetric: throw NotSymmetric(what);
    case Kind::structurally_singular: throw StructurallySingular(what);
    default: throw Error(what);
  }
}

void require_same(Ranks& ranks, const std::string& what, std::int64_t number) {
  std::vector<std::int64_t> all(std::size_t(ranks.size()));
  ranks.all_gather(&number, sizeof number, all.data());
  const std::vector<int> different = different_from_first(all);
  if (different.empty()) return;
  throw Error(fmt::format("{} is {} on rank 0 and {} on rank {}: it must be the same on all {} ranks", what, all[0],
                          all[std::size_t(different[0])], different[0], ranks.size()));
}

void require_same(Ranks& ranks, const std::string& what, std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  for (const char c : bytes) hash = random_bits(hash ^ std::uint64_t(static_cast<unsigned char>(c)));
  const auto mine = std::int64_t(hash);
  std::vector<std::int64_t> all(std::size_t(ranks.size()));
  ranks.all_gather(&mine, sizeof mine, all.data());
  const std::vector<int> different = different_from_first(all);
  if (different.empty()) return;
  throw Error(fmt::format("{}: not the same on rank 0 and on {} of {}; give all ranks the same", what,
                          names_of(different), ranks.size()));
}

}  // namespace krilu
