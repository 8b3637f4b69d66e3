// SPDX-License-Identifier: Apache-2.0
// Arrays in a device's own memory, on the emulated device: what is the same as with arrays in host memory, and what is
// refused. device_memory_cuda_test.cu has the same of GPUs.
#include "support/device_memory.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "krilu/communicator.hpp"

namespace krilu::test {
namespace {

using exec::Emulated;

Options emulated(const std::string& solver = "auto", const std::string& precond = "auto") {
  Options o;
  o.device = "emulated";
  o.solver = solver;
  o.precond = precond;
  return o;
}

TEST(DeviceMemory, GivesTheBitsOfHostMemory) {
  for (const std::string system : {"gen:poisson3d:9x8x7", "gen:convdiff3d:9x8x7"}) {
    expect_the_bits_of_host_memory<Emulated>(system, emulated());
    for (const std::string precond : {"none", "jacobi", "dilu", "ilu0", "ilut:8,0.01"})
      expect_the_bits_of_host_memory<Emulated>(system, emulated("gmres", precond));
    Options o = emulated("bicgstab", "dilu");
    o.ordering = "rcm";
    o.precision = "fp32/fp16";
    expect_the_bits_of_host_memory<Emulated>(system, o);
  }
  Options o = emulated("cg", "dic");
  o.norm = Norm::openfoam;
  expect_the_bits_of_host_memory<Emulated>("gen:poisson3d:9x8x7", o);
}

TEST(DeviceMemory, SaysWhatIsWrongInTheWordsOfHostMemory) {
  expect_the_words_of_host_memory<Emulated>(emulated());
  expect_the_words_of_host_memory<Emulated>(emulated("gmres", "ilu0"));
}

TEST(DeviceMemory, IsRefusedWhereItCannotBeTaken) { expect_refusals<Emulated>(emulated("cg", "dic")); }

TEST(DeviceMemory, TheLadderFetchesWhatItNeeds) { expect_the_ladder_of_host_memory<Emulated>(emulated()); }

TEST(DeviceMemory, MayHaveNoRows) {
  Solver solver(emulated());
  solver.setup(CsrView{}, DeviceSpan<const double>{});
  solver.factor(DeviceSpan<const double>{});
  EXPECT_EQ(solver.rows(), 0);
}

TEST(DeviceMemory, ATeamTakesHostMemory) {
  const CsrMatrix a = generate("gen:poisson2d:9x8");
  std::mutex lock;
  std::vector<std::string> said;
  run_ranks(2, [&](const std::shared_ptr<Communicator>& ranks) {
    Solver solver(emulated("cg", "jacobi"), Team{ranks});
    const std::string words = refusal([&] { solver.setup(a, {a.values.data(), a.values.size(), nullptr}); });
    const std::lock_guard held(lock);
    said.push_back(words);
  });
  ASSERT_EQ(said.size(), 2u);
  for (const std::string& words : said) expect_words(words, {"rank of a team", "host memory"});
}

}  // namespace
}  // namespace krilu::test
