// SPDX-License-Identifier: Apache-2.0
// Arrays in a GPU's memory, handed to krilu::Solver there: the same bits and words as with arrays in host memory, the
// order of streams, and memory that is not the GPU's. device_memory_test.cpp has what needs no GPU.
#include <cuda_runtime.h>

#include "exec/cuda.cuh"
#include "support/device_memory.hpp"
#include "support/gpu.cuh"

namespace krilu::test {
namespace {

using exec::Cuda;

Options on_gpu(const std::string& solver = "auto", const std::string& precond = "auto") {
  Options o;
  o.device = "cuda";
  o.solver = solver;
  o.precond = precond;
  return o;
}

TEST(GpuMemory, GivesTheBitsOfHostMemory) {
  KRILU_REQUIRE_GPU();
  for (const std::string system : {"gen:poisson3d:20x19x18", "gen:convdiff3d:20x19x18"}) {
    expect_the_bits_of_host_memory<Cuda>(system, on_gpu());
    for (const std::string precond : {"none", "jacobi", "dilu", "ilu0", "ilut:8,0.01", "block-ilu:16"})
      expect_the_bits_of_host_memory<Cuda>(system, on_gpu("gmres", precond));
    Options o = on_gpu("bicgstab", "dilu");
    for (const std::string ordering : {"natural", "rcm", "auto"})
      for (const std::string precision : {"fp64", "fp32/fp16"}) {
        o.ordering = ordering;
        o.precision = precision;
        expect_the_bits_of_host_memory<Cuda>(system, o);
      }
  }
  Options o = on_gpu("cg", "dic");
  o.norm = Norm::openfoam;
  expect_the_bits_of_host_memory<Cuda>("gen:poisson3d:20x19x18", o);
}

TEST(GpuMemory, SaysWhatIsWrongInTheWordsOfHostMemory) {
  KRILU_REQUIRE_GPU();
  expect_the_words_of_host_memory<Cuda>(on_gpu());
  expect_the_words_of_host_memory<Cuda>(on_gpu("gmres", "ilu0"));
}

TEST(GpuMemory, NotesSayWhatLeftIt) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff3d:12x12x12");
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  for (const std::string precond : {"dilu", "ilut:8,0.01"}) {
    OnDevice<Cuda> there(on_gpu("bicgstab", precond));
    EXPECT_EQ(there.solver.gpu(), 0);
    there.setup(a);
    std::vector<double> x(b.size(), 0.0);
    const Result r = there.solve(b, x);
    EXPECT_EQ(any_starts(r.notes, "the matrix's values were brought to host memory as well"), precond != "dilu");
    EXPECT_FALSE(any_starts(r.notes, "b and x"));
  }
}

TEST(GpuMemory, TheLadderFetchesWhatItNeeds) {
  KRILU_REQUIRE_GPU();
  expect_the_ladder_of_host_memory<Cuda>(on_gpu());
}

TEST(GpuMemory, IsRefusedWhereItCannotBeTaken) {
  KRILU_REQUIRE_GPU();
  expect_refusals<Cuda>(on_gpu("cg", "dic"));
  const CsrMatrix a = generate("gen:poisson2d:9x8");
  OnDevice<Cuda> there(on_gpu("cg", "dic"));
  there.setup(a);
  std::vector<double> b(72, 1.0);
  const auto x = there.there(b), longer = there.there(std::vector<double>(73, 1.0));
  EXPECT_EQ(gpu_of(x.data()), 0);
  EXPECT_EQ(gpu_of(b.data()), -1);
  const auto solve = [&](double* from) { there.solver.solve({from, 72, there.stream}, there.span(x)); };
  expect_words(refusal([&] { solve(b.data()); }), {"right-hand side is in host memory", "GPU 0"});
  expect_words(refusal([&] { solve(nullptr); }), {"at no address"});
  auto* const crooked = reinterpret_cast<double*>(reinterpret_cast<char*>(longer.data()) + 4);
  expect_words(refusal([&] { solve(crooked); }), {"multiple of 8 bytes"});
  solve(longer.data() + 1);

  cudaStream_t recording;
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamCreateWithFlags(&recording, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(recording, cudaStreamCaptureModeRelaxed), cudaSuccess);
  expect_words(refusal([&] {
                 there.solver.solve({longer.data(), 72, recording}, there.span(x));
               }),
               {"records a graph"});
  ASSERT_EQ(cudaStreamEndCapture(recording, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(recording);

  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  if (count < 2) return;
  const Cuda second(1);
  const auto far = to_device(second, b);
  EXPECT_EQ(gpu_of(far.data()), 1);
  expect_words(refusal([&] { solve(far.data()); }), {"memory of GPU 1", "works on GPU 0", "--device cuda:1"});
}

/// Writes v long after the launch.
__global__ void late(double* v, double value, std::size_t n, long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
  for (std::size_t i = threadIdx.x; i < n; i += blockDim.x) v[i] = value;
}

TEST(GpuMemory, WaitsForTheCallersStream) {
  KRILU_REQUIRE_GPU();
  constexpr long long cycles = 200'000'000;  // a tenth of a second
  const CsrMatrix a = generate("gen:poisson2d:30x30");
  const std::vector<double> ones(std::size_t(a.rows), 1.0);
  OnDevice<Cuda> there(on_gpu("cg", "dic"));
  there.setup(a);
  std::vector<double> expected(ones.size(), 0.0);
  there.solve(ones, expected);
  cudaStream_t own;
  ASSERT_EQ(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), cudaSuccess);
  for (const cudaStream_t stream : {own, cudaStream_t(nullptr), cudaStreamLegacy, cudaStreamPerThread}) {
    const auto b = there.there(std::vector<double>(ones.size(), 7.0)),
               x = there.there(std::vector<double>(ones.size()));
    const auto values = there.there(std::vector<double>(a.values.size(), 0.0));
    there.space.synchronise();
    // b, then the guess: each span's own stream counts.
    late<<<1, 256, 0, stream>>>(b.data(), 1.0, b.size(), cycles);
    there.solver.solve({b.data(), b.size(), stream}, there.span(x));
    EXPECT_EQ(to_host(there.space, x), expected);
    late<<<1, 256, 0, stream>>>(x.data(), 0.0, x.size(), cycles);
    there.solver.solve(there.span(b), {x.data(), x.size(), stream});
    EXPECT_EQ(to_host(there.space, x), expected);
    // What the solver wrote is there for every stream.
    std::vector<double> seen(x.size());
    ASSERT_EQ(cudaMemcpyAsync(seen.data(), x.data(), x.bytes(), cudaMemcpyDeviceToHost, own), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(own), cudaSuccess);
    EXPECT_EQ(seen, expected);
  }
  // Values, too.
  const auto values = there.there(std::vector<double>(a.values.size(), 0.0)), right = there.values_of(a);
  there.space.synchronise();
  late<<<1, 1, 0, own>>>(nullptr, 0, 0, cycles);
  ASSERT_EQ(cudaMemcpyAsync(values.data(), right.data(), right.bytes(), cudaMemcpyDeviceToDevice, own), cudaSuccess);
  there.solver.factor({values.data(), values.size(), own});
  std::vector<double> x(ones.size(), 0.0);
  there.solve(ones, x);
  EXPECT_EQ(x, expected);
  cudaStreamDestroy(own);
}

}  // namespace
}  // namespace krilu::test
