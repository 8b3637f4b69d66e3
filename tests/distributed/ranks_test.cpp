// SPDX-License-Identifier: Apache-2.0
// Threads as ranks: what each call brings, in the same bits on every rank; what ends when one rank fails or leaves; and
// calls that do not fit one another. More ranks than cores are among them.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "krilu/communicator.hpp"
#include "support/refusal.hpp"

namespace krilu {
namespace {

using test::expect_words;
using test::refusal;

/// What rank r says in a round: a number that no other rank or round has.
std::uint64_t said(int rank, int round, std::size_t k) {
  return random_bits(std::uint64_t(rank) * 1000003 + std::uint64_t(round) * 7919 + k);
}

/// Only what Ranks asks for, over another one: Ranks::sum as it stands.
class OnlyGather final : public Ranks {
 public:
  explicit OnlyGather(Ranks& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void all_gather(const void* mine, std::size_t bytes, void* all) override { inner_.all_gather(mine, bytes, all); }

 private:
  Ranks& inner_;
};

TEST(RunRanks, EachThreadIsARankOfItsOwn) {
  for (int ranks : {1, 2, 3, 5}) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(ranks));
    run_ranks(ranks, [&](auto c) {
      EXPECT_EQ(c->size(), ranks);
      ++seen[std::size_t(c->rank())];
    });
    for (const auto& s : seen) EXPECT_EQ(s, 1);
  }
}

TEST(RunRanks, NoRanksAreRefused) {
  expect_words(refusal([] { run_ranks(0, [](auto) {}); }), {"0 ranks"});
}

TEST(RunRanks, AllGatherBringsEachRanksBytesInOrderForShortAndLongOnesInTurn) {
  for (int ranks : {1, 2, 3, 7}) {
    run_ranks(ranks, [&](auto c) {
      int round = 0;
      for (std::size_t n : {1, 3, 60, 61, 1000, 0, 2, 70000, 5}) {
        for (int again = 0; again < 5; ++again, ++round) {
          std::vector<std::uint64_t> mine(n), all(n * std::size_t(ranks));
          for (std::size_t k = 0; k < n; ++k) mine[k] = said(c->rank(), round, k);
          c->all_gather(mine.data(), n * sizeof mine[0], all.data());
          std::fill(mine.begin(), mine.end(), 0);  // the others have theirs by now
          for (int r = 0; r < ranks; ++r)
            for (std::size_t k = 0; k < n; ++k)
              ASSERT_EQ(all[std::size_t(r) * n + k], said(r, round, k)) << n << " numbers of rank " << r;
        }
      }
    });
  }
}

TEST(RunRanks, SumsAreThoseInTheOrderOfRanksBitForBit) {
  for (int ranks : {1, 2, 3, 6}) {
    for (std::size_t n : {1, 2, 30, 60, 61, 200, 1000}) {
      const auto value = [&](int r, std::size_t k) {
        return std::ldexp(unit_random(std::uint64_t(r) * 1000 + k) - 0.5, (r * 37 + int(k)) % 80 - 40);
      };
      std::vector<double> expected(n);
      for (std::size_t k = 0; k < n; ++k) {
        expected[k] = value(0, k);
        for (int r = 1; r < ranks; ++r) expected[k] += value(r, k);
      }
      run_ranks(ranks, [&](auto c) {
        std::vector<double> mine(n);
        for (std::size_t k = 0; k < n; ++k) mine[k] = value(c->rank(), k);
        std::vector<double> again = mine;
        c->sum(mine);
        OnlyGather(*c).sum(again);
        for (std::size_t k = 0; k < n; ++k) {
          ASSERT_EQ(std::memcmp(&mine[k], &expected[k], sizeof(double)), 0) << k << " of " << n;
          ASSERT_EQ(std::memcmp(&again[k], &expected[k], sizeof(double)), 0) << k << " of " << n;
        }
      });
    }
  }
}

TEST(RunRanks, ThousandsOfSumsInARowAreAllRight) {
  constexpr int rounds = 3000;
  for (int ranks : {2, 3}) {
    run_ranks(ranks, [&](auto c) {
      for (int round = 0; round < rounds; ++round) {
        double v = double(c->rank() + 1) * round;
        c->sum({&v, 1});
        ASSERT_EQ(v, double(ranks * (ranks + 1) / 2) * round);
      }
    });
  }
}

/// Every rank sends to those for which talks(from, to, round) holds, `length(from, to, round)` numbers.
template <class Talks, class Length>
void exchange_rounds(Communicator& c, int rounds, Talks talks, Length length) {
  const int me = c.rank(), ranks = c.size();
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::vector<std::uint64_t>> out(static_cast<std::size_t>(ranks)), in(out);
    std::vector<Communicator::Sent> sends;
    std::vector<Communicator::Received> receives;
    for (int r = ranks - 1; r >= 0; --r) {
      if (r == me) continue;
      auto &o = out[std::size_t(r)], &i = in[std::size_t(r)];
      if (talks(me, r, round)) {
        o.resize(length(me, r, round));
        for (std::size_t k = 0; k < o.size(); ++k) o[k] = said(me * 100 + r, round, k);
        sends.push_back({r, o.data(), o.size() * 8});
      }
      if (talks(r, me, round)) {
        i.resize(length(r, me, round));
        receives.push_back({r, i.data(), i.size() * 8});
      }
    }
    c.start(sends, receives);
    c.finish();
    for (int r = 0; r < ranks; ++r)
      for (std::size_t k = 0; k < in[std::size_t(r)].size(); ++k)
        ASSERT_EQ(in[std::size_t(r)][k], said(r * 100 + me, round, k)) << "from " << r << " in round " << round;
  }
}

TEST(RunRanks, MessagesArriveWholeBetweenAllPairs) {
  for (int ranks : {1, 2, 3, 5})
    run_ranks(ranks, [&](auto c) {
      exchange_rounds(
          *c, 40, [](int, int, int) { return true; },
          [](int from, int to, int round) { return std::size_t((from * 31 + to * 17 + round * 41) % 200); });
    });
}

TEST(RunRanks, ASenderThatHearsNothingBackDoesNotOvertakeItsReceiver) {
  run_ranks(3, [&](auto c) {
    exchange_rounds(
        *c, 500, [](int from, int to, int) { return to == (from + 1) % 3 && from != 1; },
        [](int, int, int round) { return std::size_t(1 + round % 3); });
  });
}

TEST(RunRanks, WhoTalksToWhomMayChangeFromRoundToRound) {
  run_ranks(4, [&](auto c) {
    exchange_rounds(
        *c, 200, [](int from, int to, int round) { return said(from, round, std::size_t(to)) % 3 == 0; },
        [](int from, int, int) { return std::size_t(from) * 7; });
  });
}

TEST(RunRanks, MegabytesArriveToo) {
  run_ranks(2, [&](auto c) {
    exchange_rounds(
        *c, 4, [](int, int, int) { return true; },
        [](int, int, int round) { return std::size_t(round % 2 ? 3 : 1'000'000); });
  });
}

TEST(RunRanks, TheFirstExceptionEndsTheOthersInWhateverCallTheyWait) {
  for (const std::string waiting : {"gather", "large gather", "sum", "exchange"}) {
    std::atomic<int> others{0};
    try {
      run_ranks(3, [&](auto c) {
        double v = 1;
        c->sum({&v, 1});
        if (c->rank() == 1) throw std::out_of_range("row 7 is missing");
        try {
          std::vector<double> mine(5000), all(15000);
          if (waiting == "gather") c->all_gather(mine.data(), 8, all.data());
          if (waiting == "large gather") c->all_gather(mine.data(), 40000, all.data());
          if (waiting == "sum") c->sum(mine);
          if (waiting == "exchange") {
            const Communicator::Received r{1, all.data(), 8};
            c->start({}, {&r, 1});
            c->finish();
          }
        } catch (const Error& e) {
          expect_words(e.what(), {"rank 1 of 3"});
          ++others;
          throw;
        }
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::out_of_range& e) {
      EXPECT_STREQ(e.what(), "row 7 is missing");
    }
    EXPECT_EQ(others, 2) << waiting;
  }
}

TEST(RunRanks, ARankThatLeavesEarlyEndsThoseThatWaitForIt) {
  expect_words(refusal([] {
                 run_ranks(3, [](auto c) {
                   if (c->rank() == 2) return;
                   double v = 1;
                   c->sum({&v, 1});
                 });
               }),
               {"rank 2 of 3 has ended"});
}

TEST(RunRanks, WhatARankSaidBeforeItEndedStillArrives) {
  for (int again = 0; again < 50; ++again)
    run_ranks(2, [](auto c) {
      double mine = c->rank() + 1, other = 0;
      const Communicator::Sent s{1 - c->rank(), &mine, 8};
      const Communicator::Received r{1 - c->rank(), &other, 8};
      if (c->rank() == 0) {
        c->start({&s, 1}, {});
        c->finish();
      } else {
        c->start({}, {&r, 1});
        c->finish();
        EXPECT_EQ(other, 1);
      }
    });
}

TEST(RunRanks, DifferentLengthsAreRefusedOnAllRanks) {
  for (std::size_t n : {8, 40000}) {
    std::atomic<int> refused{0};
    expect_words(refusal([&] {
                   run_ranks(3, [&](auto c) {
                     std::vector<std::byte> mine(n + 8), all(3 * n + 24);
                     try {
                       c->all_gather(mine.data(), c->rank() == 2 ? n + 8 : n, all.data());
                     } catch (const Error&) {
                       ++refused;
                       throw;
                     }
                   });
                 }),
                 {"rank 2", "all_gather"});
    EXPECT_EQ(refused, 3);
  }
}

TEST(RunRanks, DifferentCallsAreRefused) {
  expect_words(refusal([] {
                 run_ranks(2, [](auto c) {
                   double v = 1, all[2];
                   if (c->rank() == 0) c->sum({&v, 1});
                   if (c->rank() == 1) c->all_gather(&v, sizeof v, all);
                 });
               }),
               {"sum", "all_gather"});
}

TEST(RunRanks, AMessageOfAnotherLengthIsRefused) {
  expect_words(refusal([] {
                 run_ranks(2, [](auto c) {
                   double v[2] = {};
                   const Communicator::Sent s{1, v, 16};
                   const Communicator::Received r{0, v, 8};
                   if (c->rank() == 0) c->start({&s, 1}, {});
                   if (c->rank() == 1) c->start({}, {&r, 1});
                   c->finish();
                 });
               }),
               {"rank 0 sent 16 bytes", "expected 8"});
}

TEST(RunRanks, WrongUseOfAnExchangeIsRefused) {
  run_ranks(1, [](auto c) {
    double v = 0;
    const Communicator::Sent to_itself{0, &v, 8}, to_nobody{1, &v, 8};
    expect_words(refusal([&] { c->start({&to_itself, 1}, {}); }), {"rank 0 of 1", "with rank 0"});
    expect_words(refusal([&] { c->start({&to_nobody, 1}, {}); }), {"with rank 1"});
    expect_words(refusal([&] { c->finish(); }), {"start()"});
    c->start({}, {});
    expect_words(refusal([&] { c->start({}, {}); }), {"finish()"});
    c->finish();
  });
}

TEST(RunRanks, RanksMayHaveRanksOfTheirOwn) {
  run_ranks(2, [](auto outer) {
    run_ranks(2, [&](auto inner) {
      double v = 1;
      inner->sum({&v, 1});
      EXPECT_EQ(v, 2);
    });
    double v = 3;
    outer->sum({&v, 1});
    EXPECT_EQ(v, 6);
  });
}

}  // namespace
}  // namespace krilu
