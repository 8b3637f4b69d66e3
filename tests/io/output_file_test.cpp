// SPDX-License-Identifier: Apache-2.0
// Files that appear whole or not at all: what they replace, what lies beside them, and what is said, and left, where
// the system will not have them.
#include "io/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "krilu/io.hpp"
#include "support/refusal.hpp"
#include "support/support.hpp"

namespace krilu::test {
namespace {

namespace fs = std::filesystem;

const std::vector<double> one_two{1, 2};

class OutputFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator());
  }

  TemporaryFolder folder_;
};

TEST_F(OutputFiles, ReplaceFilesAndThoseThatLinksLeadTo) {
  const std::string old = file("x.mtx", "old");
  fs::create_symlink(old, path("link.mtx"));
  write_vector(path("link.mtx"), one_two);
  EXPECT_TRUE(fs::is_symlink(path("link.mtx")));
  EXPECT_EQ(read_vector(old), one_two);
  EXPECT_EQ(files(), 2);
}

TEST_F(OutputFiles, FailedWritesSayWhyAndLeaveNothing) {
  const std::string lost = path("no_such_folder/x.mtx");
  const std::string message = refusal([&] { write_vector(lost, {1}); });
  EXPECT_EQ(message.find("could not write " + lost + ": No such file or directory; "), 0u) << message;
  expect_words(refusal([&] { write_vector(folder_.path().string(), {1}); }), {"Is a directory"});
  EXPECT_EQ(files(), 0);
}

TEST_F(OutputFiles, FullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  for (const std::size_t n : {std::size_t(1), std::size_t(200000)}) {
    const std::vector<double> x(n, 1.0 / 3);
    const std::string message = refusal([&] { write_vector("/dev/full", x); });
    EXPECT_EQ(message.find("could not write /dev/full: No space left on device; "), 0u) << message;
  }
  EXPECT_TRUE(fs::exists("/dev/full"));
  EXPECT_FALSE(fs::exists("/dev/full.part"));
}

TEST_F(OutputFiles, ThatGrowTooLargeLeaveWhatWasThere) {
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  const std::string target = file("y.mtx", "old");
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{1000, usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const std::string message = refusal([&] { write_vector(target, std::vector<double>(1000, 1.0 / 3)); });
  setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, handler);
  expect_words(message, {"could not write " + target, "File too large"});
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(content(target), "old");
}

TEST_F(OutputFiles, WhatLiesBesideTheTargetStays) {
  const std::string others = file("x.mtx.part", "another's"), more = file("x.mtx.part2", "and another's");
  write_vector(path("x.mtx"), one_two);
  EXPECT_EQ(read_vector(path("x.mtx")), one_two);
  EXPECT_EQ(content(others), "another's");
  EXPECT_EQ(content(more), "and another's");
  EXPECT_EQ(files(), 3);
}

TEST_F(OutputFiles, OfTwoWritersTheLastHasTheName) {
  io::OutputFile one(path("x")), other(path("x"));
  one.add("one");
  other.add("other");
  one.commit();
  EXPECT_EQ(content(path("x")), "one");
  other.commit();
  EXPECT_EQ(content(path("x")), "other");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFiles, NoMoreThanAThousandLieBesideATarget) {
  for (int k = 1; k <= 1000; ++k) file(k == 1 ? "x.part" : "x.part" + std::to_string(k), "");
  EXPECT_EQ(refusal([&] { io::OutputFile x(path("x")); }),
            "could not write " + path("x") + ": File exists; remove the .part files beside it");
}

TEST_F(OutputFiles, NamesAreAsLongAsTheSystemAllows) {
  const long most = ::pathconf(folder_.path().c_str(), _PC_NAME_MAX);
  if (most < 20) GTEST_SKIP() << "names of any length";
  const auto x = [most](long fewer, const std::string& end) {
    return std::string(std::size_t(most - fewer), 'x') + end;
  };
  // And what the file beside each is called: never the target itself, and no letter is cut in two.
  for (const auto& [name, beside] : {std::pair(x(4, ".mtx"), x(5, ".part")),
                                     {x(5, ".part"), x(6, ".part2")},
                                     {x(6, "\u00e4\u00e4\u00e4"), x(6, ".part")}}) {
    const std::string longest = path(name);
    io::require_writable(longest);
    {
      io::OutputFile given_up(longest);
      EXPECT_EQ(files(), 1);
      EXPECT_TRUE(fs::exists(path(beside)));
    }
    EXPECT_EQ(files(), 0);
    write_vector(longest, one_two);
    EXPECT_EQ(read_vector(longest), one_two);
    EXPECT_EQ(files(), 1);
    fs::remove(longest);
  }
  const std::string too_long = path(x(4, ".mtx") + "x");
  EXPECT_EQ(refusal([&] { io::require_writable(too_long); }),
            "could not write " + too_long + ": File name too long; choose a shorter name");
}

}  // namespace
}  // namespace krilu::test
