// SPDX-License-Identifier: Apache-2.0
// What one rank finds wrong all ranks throw, with the sentence and the kind of the first one; and ranks that were given
// different things are named.
#include "base/together.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>

#include "krilu/communicator.hpp"
#include "support/refusal.hpp"

namespace krilu::distributed {
namespace {

using test::expect_words;
using test::refusal;

TEST(Together, ReturnsWhatEachRankMade) {
  for (int ranks : {1, 2, 3})
    run_ranks(ranks, [](auto c) {
      int calls = 0;
      EXPECT_EQ(together(*c, [&] { return 10 + c->rank(); }), 10 + c->rank());
      together(*c, [&] { ++calls; });
      EXPECT_EQ(calls, 1);
    });
}

TEST(Together, AllRanksThrowTheFirstFailingRanksSentenceAndGoOnAfterwards) {
  run_ranks(4, [](auto c) {
    for (int again = 0; again < 20; ++again) {
      const std::string sentence = refusal([&] {
        together(*c, [&] {
          if (c->rank() == 1) throw Error("row 7 is empty: give it an entry");
          if (c->rank() == 2) throw Error("a much longer sentence, of another rank, that is not the first that fails");
        });
      });
      EXPECT_EQ(sentence, "rank 1 of 4: row 7 is empty: give it an entry");
    }
    double v = 1;
    c->sum({&v, 1});
    EXPECT_EQ(v, 4);
  });
}

TEST(Together, OneRankAloneThrowsItsOwnException) {
  run_ranks(1, [](auto c) {
    EXPECT_EQ(refusal([&] { together(*c, [] { throw Error("alone"); }); }), "alone");
    EXPECT_THROW(together(*c, []() -> int { throw std::out_of_range("x"); }), std::out_of_range);
  });
}

TEST(Together, TheKindOfAnErrorSurvives) {
  run_ranks(3, [](auto c) {
    const auto fail = [&](auto make) {
      together(*c, [&] {
        if (c->rank() == 2) throw make();
      });
    };
    EXPECT_THROW(fail([] { return ZeroPivot("p"); }), ZeroPivot);
    EXPECT_THROW(fail([] { return StructurallySingular("s"); }), StructurallySingular);
    EXPECT_EQ(refusal([&] { fail([] { return ZeroPivot("no pivot in row 5", 4); }); }),
              "rank 2 of 3: no pivot in row 5; rows are counted within the rank");
    EXPECT_EQ(refusal([&] { fail([] { return ZeroPivot("no pivot"); }); }), "rank 2 of 3: no pivot");
    expect_words(refusal([&] { fail([] { return std::runtime_error("disk full"); }); }), {"rank 2 of 3: disk full"});
    expect_words(refusal([&] { fail([] { return std::bad_alloc(); }); }), {"rank 2 of 3", "memory"});
    expect_words(refusal([&] { fail([] { return 7; }); }), {"rank 2 of 3", "unknown"});
    expect_words(refusal([&] { fail([] { return Error(""); }); }), {"rank 2 of 3: "});
  });
}

TEST(RequireSame, TellsApartWhatDiffersAndNamesTheRanks) {
  run_ranks(1, [](auto c) { require_same(*c, "the options", "a"); });
  run_ranks(3, [](auto c) {
    require_same(*c, "the size", 5);
    require_same(*c, "the options", "solver=cg");
    const int r = c->rank();
    expect_words(refusal([&] { require_same(*c, "the size", r == 2 ? 7 : 5); }),
                 {"the size is 5 on rank 0 and 7 on rank 2"});
    expect_words(refusal([&] { require_same(*c, "the options", r == 1 ? "solver=cg" : "solver=gmres"); }),
                 {"the options: not the same on rank 0 and on rank 1 of 3"});
    expect_words(refusal([&] { require_same(*c, "the options", r == 0 ? "ab" : "ba"); }), {"ranks 1 and 2 of 3"});
    expect_words(refusal([&] { require_same(*c, "the options", std::string(std::size_t(r), '\0')); }),
                 {"ranks 1 and 2 of 3"});
  });
}

TEST(RequireSame, ManyRanksAreNotAllNamed) {
  run_ranks(14, [](auto c) {
    expect_words(refusal([&] { require_same(*c, "the options", c->rank() == 0 ? "a" : "b"); }),
                 {"ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 others"});
  });
}

}  // namespace
}  // namespace krilu::distributed
