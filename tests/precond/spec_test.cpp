// SPDX-License-Identifier: Apache-2.0
// Preconditioners' names with arguments: what each form means, what is left out, and every refusal in its words; what
// the registry and the public Solver make of them.
#include "precond/spec.hpp"

#include <fmt/format.h>

#include "krilu/solver.hpp"
#include "precond/factored.hpp"

namespace krilu::test {
namespace {

using precond::parse_spec;
using precond::Spec;

void expect_spec(const std::string& name, const Spec& expected) {
  SCOPED_TRACE(name);
  const Spec s = parse_spec(name);
  EXPECT_EQ(s.kind, expected.kind);
  EXPECT_EQ(s.local, expected.local);
  EXPECT_EQ(s.level, expected.level);
  EXPECT_EQ(s.most, expected.most);
  EXPECT_EQ(s.tolerance, expected.tolerance);
  EXPECT_EQ(s.parts, expected.parts);
  EXPECT_EQ(s.overlap, expected.overlap);
  EXPECT_NO_THROW(precond::require_known(name));
}

TEST(Spec, IlukTakesALevel) {
  expect_spec("iluk", {.kind = "iluk", .local = "iluk", .level = 1, .parts = 1});
  expect_spec("iluk:0", {.kind = "iluk", .local = "iluk", .level = 0, .parts = 1});
  expect_spec("iluk:2147483647", {.kind = "iluk", .local = "iluk", .level = 2147483647, .parts = 1});
}

TEST(Spec, IlutTakesEntriesAndATolerance) {
  expect_spec("ilut", {.kind = "ilut", .local = "ilut", .most = 10, .tolerance = 0.01, .parts = 1});
  expect_spec("ilut:0,0", {.kind = "ilut", .local = "ilut", .most = 0, .tolerance = 0, .parts = 1});
  expect_spec("ilut:25,1e-4", {.kind = "ilut", .local = "ilut", .most = 25, .tolerance = 1e-4, .parts = 1});
  expect_spec("ilut:5,.5", {.kind = "ilut", .local = "ilut", .most = 5, .tolerance = 0.5, .parts = 1});
}

TEST(Spec, BlockIluTakesPartsAndWhatIsDoneInThem) {
  expect_spec("block-ilu", {.kind = "block-ilu", .local = "ilu0", .parts = 0});
  expect_spec("block-ilu:0", {.kind = "block-ilu", .local = "ilu0", .parts = 0});
  expect_spec("block-ilu:64", {.kind = "block-ilu", .local = "ilu0", .parts = 64});
  expect_spec("block-ilu:64,ilu0", {.kind = "block-ilu", .local = "ilu0", .parts = 64});
  expect_spec("block-ilu:40,dilu", {.kind = "block-ilu", .local = "dilu", .parts = 40});
  expect_spec("block-ilu:0,iluk", {.kind = "block-ilu", .local = "iluk", .level = 1, .parts = 0});
  expect_spec("block-ilu:9,iluk:3", {.kind = "block-ilu", .local = "iluk", .level = 3, .parts = 9});
  expect_spec("block-ilu:9,ilut", {.kind = "block-ilu", .local = "ilut", .parts = 9});
  expect_spec("block-ilu:9,ilut:7,0.2",
              {.kind = "block-ilu", .local = "ilut", .most = 7, .tolerance = 0.2, .parts = 9});
}

TEST(Spec, RasTakesPartsOverlapAndWhatIsDoneInThem) {
  expect_spec("ras", {.kind = "ras", .local = "ilu0", .parts = 0, .overlap = 1});
  expect_spec("ras:8", {.kind = "ras", .local = "ilu0", .parts = 8, .overlap = 1});
  expect_spec("ras:8,0", {.kind = "ras", .local = "ilu0", .parts = 8, .overlap = 0});
  expect_spec("ras:0,3", {.kind = "ras", .local = "ilu0", .parts = 0, .overlap = 3});
  expect_spec("ras:8,2,dilu", {.kind = "ras", .local = "dilu", .parts = 8, .overlap = 2});
  expect_spec("ras:8,2,iluk:0", {.kind = "ras", .local = "iluk", .level = 0, .parts = 8, .overlap = 2});
  expect_spec("ras:8,2,ilut:6,0.01",
              {.kind = "ras", .local = "ilut", .most = 6, .tolerance = 0.01, .parts = 8, .overlap = 2});
}

/// name, and what is wrong with it.
void expect_refusal(const std::string& name, const std::string& why) {
  const std::string sentence = fmt::format(
      "preconditioner '{}': {}; the forms are iluk[:LEVEL], ilut[:MOST,TOLERANCE], "
      "block-ilu[:PARTS[,LOCAL]], ras[:PARTS[,OVERLAP[,LOCAL]]]",
      name, why);
  EXPECT_EQ(complaint([&] { parse_spec(name); }), sentence);
  EXPECT_EQ(complaint([&] { precond::require_known(name); }), sentence);
  Options options;
  options.precond = name;
  EXPECT_EQ(complaint([&] { Solver solver(options); }), sentence);
}

TEST(Spec, RefusesWhatIsNoNumber) {
  for (const char* level : {"-1", "x", "1.5", "2x", " 2", "2 ", "+2", "2147483648", "99999999999999999999", "1:2"})
    expect_refusal(fmt::format("iluk:{}", level),
                   fmt::format("'{}' is not a level of fill, a whole number from 0", level));
  for (const char* most : {"-1", "many", "0.5"})
    expect_refusal(fmt::format("ilut:{},0.1", most),
                   fmt::format("'{}' is not the most entries of a row, a whole number from 0", most));
  for (const char* tolerance : {"-0.1", "nan", "inf", "small", "0.1x", "1e999", "0.1:2"})
    expect_refusal(fmt::format("ilut:5,{}", tolerance),
                   fmt::format("'{}' is not a drop tolerance, a number from 0", tolerance));
  for (const char* kind : {"block-ilu", "ras"})
    for (const char* parts : {"-4", "few", "3.5", "dilu"})
      expect_refusal(fmt::format("{}:{}", kind, parts),
                     fmt::format("'{}' is not a number of parts, a whole number from 0", parts));
  for (const char* overlap : {"-1", "one", "dilu"})
    expect_refusal(fmt::format("ras:8,{}", overlap),
                   fmt::format("'{}' is not layers of overlap, a whole number from 0", overlap));
}

TEST(Spec, RefusesWhatIsMissing) {
  for (const char* name : {"iluk:", "ilut:", "block-ilu:", "ras:"})
    expect_refusal(name, "nothing stands after the colon");
  for (const char* name : {"iluk:1,", "ilut:,0.1", "ilut:5,", "ilut:5,0.1,", "block-ilu:,dilu", "block-ilu:7,",
                           "ras:,1", "ras:8,", "ras:8,,dilu", "ras:8,1,"})
    expect_refusal(name, "an argument is missing");
  // Of a local factorisation too; a tolerance is needed.
  for (const char* name : {"block-ilu:7,iluk:", "ras:8,1,ilut:5,", "ras:8,1,ilut:", "ilut:5", "block-ilu:7,ilut:5"})
    expect_refusal(name, "an argument is missing");
}

TEST(Spec, RefusesWhatIsTooMuch) {
  expect_refusal("iluk:1,2", "'2' is too much");
  expect_refusal("ilut:5,0.1,7,8", "'7,8' is too much");
  expect_refusal("block-ilu:7,iluk:1,2", "'2' is too much");
  expect_refusal("ras:7,1,ilut:5,0.1,3", "'3' is too much");
}

TEST(Spec, RefusesLocalFactorisationsThatAreNone) {
  for (const char* local : {"ilu", "jacobi", "dic", "ras", "ras:2", "block-ilu:3", "1", "dilu,3", " dilu", ":1"}) {
    const std::string why = fmt::format("'{}' is not dilu, ilu0, iluk[:LEVEL] or ilut[:MOST,TOLERANCE]", local);
    expect_refusal(fmt::format("block-ilu:7,{}", local), why);
    expect_refusal(fmt::format("ras:7,1,{}", local), why);
  }
  for (const char* local : {"dilu", "ilu0"}) {
    expect_refusal(fmt::format("block-ilu:7,{}:1", local), fmt::format("{} takes no arguments", local));
    expect_refusal(fmt::format("ras:7,1,{}:", local), fmt::format("{} takes no arguments", local));
  }
}

TEST(Spec, RefusesOtherKindsWithTheNearest) {
  EXPECT_EQ(complaint([] { parse_spec("rass:8"); }),
            "unknown preconditioner 'rass': did you mean 'ras'? It is one of iluk, ilut, block-ilu, ras");
  EXPECT_EQ(complaint([] { precond::require_known("block_ilu:8"); }),
            "unknown preconditioner 'block_ilu': did you mean 'block-ilu'? It is one of none, jacobi, dilu, dic, ilu0, "
            "ic0, iluk, ilut, block-ilu, ras");
  for (const std::string name : {"none", "jacobi", "dilu", "dic", "ilu0", "ic0"}) {
    EXPECT_EQ(complaint([&] { precond::require_known(name + ":3"); }),
              fmt::format("preconditioner '{0}:3': {0} takes no arguments", name));
    EXPECT_EQ(complaint([&] { precond::require_known(name + ":"); }),
              fmt::format("preconditioner '{0}:': {0} takes no arguments", name));
  }
  EXPECT_NE(complaint([] { parse_spec(""); }), "");
  EXPECT_NE(complaint([] { parse_spec(":3"); }), "");
}

TEST(Spec, TheRegistryKnowsNamesWithArgumentsByTheirKind) {
  for (const char* name : {"iluk:2", "ilut:5,0.1", "block-ilu:7,dilu", "ras:8,1,iluk:1"}) {
    EXPECT_EQ(precond::sweeps_of(name), precond::Sweeps::of_its_own) << name;
    EXPECT_FALSE(precond::is_triangular(name)) << name;
    EXPECT_EQ(precond::kind_of(name), std::string(name).substr(0, std::string(name).find(':')));
  }
  EXPECT_EQ(precond::sweeps_of("dilu"), precond::Sweeps::over_a);
  EXPECT_EQ(precond::sweeps_of("jacobi"), precond::Sweeps::none);
  EXPECT_EQ(precond::spec_forms().size(), 4u);
}

}  // namespace
}  // namespace krilu::test
