// SPDX-License-Identifier: Apache-2.0
// Processes with a GPU each, started by mpirun (tools/gpu-checks does):
//   mpirun -n N krilu_mpi_gpus kernels|nccl|host [ROWS OF A CUBE'S SIDE]
// Systems over all ranks, whose sums and boundaries go the way that is named, against the same over ranks on the host;
// and how long an iteration takes. Exit status 77 where there are fewer GPUs than ranks.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "distributed/rows.hpp"
#include "exec/team.cuh"
#include "krilu/distributed.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "krilu/mpi.hpp"
#include "solver/engine.hpp"

namespace {

using namespace krilu;

void expect(bool holds, const std::string& what) {
  if (!holds) throw Error("not so: " + what);
}

RowsMatrix share_of(const CsrMatrix& a, const Communicator& c) {
  test::Starts starts;
  for (int r = 0; r <= c.size(); ++r) starts.push_back(std::int64_t(a.rows) * r / c.size());
  return test::rows_of(a, starts, c.rank());
}

struct Case {
  const char *matrix, *solver, *precond, *precision;
};
const Case cases[] = {
    {"gen:convdiff3d:40x30x20", "bicgstab", "jacobi", "fp64"},
    {"gen:poisson3d:20x21x22", "cg", "dic", "fp64"},
    {"gen:convdiff2d:90x80", "gmres", "jacobi", "fp64"},
    {"gen:convdiff2d:90x80", "gmres-ir", "jacobi", "fp32"},
    {"gen:convdiff3d:40x30x20", "bicgstab", "ras:4,2", "fp64"},
    {"gen:convdiff3d:40x30x20", "fgmres", "ras:4,1", "fp32"},
};

Result solved(const std::shared_ptr<Communicator>& c, const RowsMatrix& rows, const Options& options) {
  DistributedSolver solver(options, c);
  solver.setup(rows);
  const std::vector<double> b(std::size_t(rows.count), 1.0);
  std::vector<double> x(b.size(), 0.0);
  solver.solve(b, x);
  std::fill(x.begin(), x.end(), 0.0);
  return solver.solve(b, x);  // again, for the time
}

void check(const std::shared_ptr<Communicator>& c, const std::string& way, const Case& k) {
  const std::string name = std::string(k.matrix) + " " + k.solver + " " + k.precond + " " + k.precision;
  const RowsMatrix rows = share_of(generate(k.matrix), *c);
  Options options;
  options.solver = k.solver;
  options.precond = k.precond;
  options.precision = k.precision;
  options.ordering = "natural";  // a GPU's own is another
  options.rtol = 1e-9;
  options.threads = 1;
  options.device = "host";
  const Result host = solved(c, rows, options);
  options.device = "cuda:" + std::to_string(c->rank());
  const Result gpus = solved(c, rows, options);
  expect(gpus.status == Status::converged, name + " converges");
  expect(std::abs(gpus.iterations - host.iterations) <= 1 + host.iterations / 8,
         name + ": " + std::to_string(gpus.iterations) + " iterations, " + std::to_string(host.iterations) +
             " on the host");
  const auto said = [&](const char* words) {
    return std::any_of(gpus.notes.begin(), gpus.notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
  };
  expect(said("NCCL") == (way == "nccl"), name + " goes through NCCL, if it was named");
  expect(said("through the host") == (way == "host"), name + " goes through the host, if it was named");
  std::vector<double> last(std::size_t(c->size()));
  c->all_gather(&gpus.history.back(), sizeof(double), last.data());
  for (const double v : last) expect(v == last[0], name + ": all ranks tell the same bits");
  if (c->rank() == 0)
    std::printf("%s: %d iterations, %d on the host\n", name.c_str(), gpus.iterations, host.iterations);
}

void time(const std::shared_ptr<Communicator>& c, int side) {
  const std::string cube = std::to_string(side);
  const RowsMatrix rows = share_of(generate("gen:convdiff3d:" + cube + "x" + cube + "x" + cube), *c);
  Options options;
  options.solver = "bicgstab";
  options.precond = "jacobi";
  options.rtol = 0;
  options.max_iterations = 200;
  options.threads = 1;
  options.device = "cuda:" + std::to_string(c->rank());
  const Result r = solved(c, rows, options);
  if (c->rank() == 0)
    std::printf("%s^3 bicgstab jacobi: %.1f us an iteration\n", cube.c_str(), 1e6 * r.seconds.solve / r.iterations);
}

}  // namespace

int main(int argc, char** argv) {
  if (!started_by_mpirun()) {
    std::puts("not started by mpirun");
    return 3;
  }
  MpiSession session(argc, argv);
  const auto c = session.communicator();
  setenv("NCCL_NVLS_ENABLE", "0", 0);  // multicast fails in some virtual machines
  const std::string way = argc > 1 ? argv[1] : "kernels";
  exec::cuda::way = way == "nccl"   ? exec::cuda::Way::nccl
                    : way == "host" ? exec::cuda::Way::host
                                    : exec::cuda::Way::best;
  exec::cuda::patience = 20;
  if (solver::cuda_devices() < c->size()) {
    if (c->rank() == 0) std::printf("skipped: %d ranks, %d GPUs\n", c->size(), solver::cuda_devices());
    return 77;
  }
  try {
    for (const Case& k : cases) check(c, way, k);
    if (argc > 2) time(c, std::atoi(argv[2]));
  } catch (const std::exception& e) {
    session.abort(e.what(), 4);
  }
  if (c->rank() == 0) std::printf("%s: passed\n", way.c_str());
  return 0;
}
