// SPDX-License-Identifier: Apache-2.0
// Names: the nearest one against distances counted by hand (one insertion, deletion or replacement each costs 1), and
// the sentences of require_name word for word.
#include "base/names.hpp"

#include <gtest/gtest.h>

#include "krilu/error.hpp"

namespace {

using krilu::nearest_name;
using krilu::require_name;

const std::vector<std::string> preconds{"none", "jacobi", "dilu", "dic", "ilu0", "ic0"};

std::string sentence(const std::string& given, const std::vector<std::string>& known) {
  try {
    require_name("preconditioner", given, known);
  } catch (const krilu::Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(NearestName, OneEditOfEachKind) {
  EXPECT_EQ(nearest_name("jacobbi", preconds), "jacobi");
  EXPECT_EQ(nearest_name("jacoi", preconds), "jacobi");
  EXPECT_EQ(nearest_name("jacoby", preconds), "jacobi");
  EXPECT_EQ(nearest_name("xjacobi", preconds), "jacobi");
}

TEST(NearestName, TheLeastDistanceWinsWhereverItStands) {
  // "dili": 1 from dilu, 2 from dic, 3 from ilu0.
  EXPECT_EQ(nearest_name("dili", preconds), "dilu");
  EXPECT_EQ(nearest_name("dili", {"ilu0", "dic", "dilu"}), "dilu");
  EXPECT_EQ(nearest_name("ilu", {"dilu", "ilu0"}), "dilu") << "of two at the same distance the first is offered";
}

TEST(NearestName, FarNamesAreNotOffered) {
  // Half of the given name may differ, and two letters of a short one.
  EXPECT_EQ(nearest_name("abcd", {"abxy"}), "abxy");
  EXPECT_EQ(nearest_name("abcd", {"axyz"}), "");
  EXPECT_EQ(nearest_name("ab", {"xy"}), "xy");
  EXPECT_EQ(nearest_name("ab", {"xyz"}), "");
  EXPECT_EQ(nearest_name("abcdefgh", {"abcdwxyz"}), "abcdwxyz");
  EXPECT_EQ(nearest_name("abcdefgh", {"abcvwxyz"}), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
}

TEST(RequireName, KnownNamesPass) {
  for (const std::string& name : preconds) EXPECT_NO_THROW(require_name("preconditioner", name, preconds));
}

TEST(RequireName, UnknownOnesGetASentence) {
  EXPECT_EQ(sentence("jacoby", preconds),
            "unknown preconditioner 'jacoby': did you mean 'jacobi'? It is one of none, jacobi, dilu, dic, ilu0, ic0");
  EXPECT_EQ(sentence("multigrid", preconds),
            "unknown preconditioner 'multigrid': one of none, jacobi, dilu, dic, ilu0, ic0");
}

TEST(RequireName, CapitalsAndPartsOfNamesAreOtherNames) {
  EXPECT_NE(sentence("DILU", preconds), "accepted");
  EXPECT_NE(sentence("jacob", preconds), "accepted");
  EXPECT_NE(sentence("", preconds), "accepted");
  EXPECT_EQ(sentence("dilu", preconds), "accepted");
}

}  // namespace
