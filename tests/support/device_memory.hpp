// SPDX-License-Identifier: Apache-2.0
// Arrays in a device's own memory, handed to krilu::Solver there: one text of what holds for the emulated device and
// for a GPU (device_memory_test.cpp, device_memory_cuda_test.cu).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "krilu/io.hpp"
#include "krilu/solver.hpp"
#include "solver/engine.hpp"
#include "support/not_finite.hpp"
#include "support/refusal.hpp"
#include "support/support.hpp"

namespace krilu::test {

/// A solver of a device, and ways to hand it what stands there, in the solver's own stream.
template <class Space>
struct OnDevice {
  explicit OnDevice(const Options& o)
      : solver(o),
        space(dynamic_cast<solver::EngineIn<Space>&>(solver::Inside::engine(solver)).space()),
        stream(stream_of(space)) {}

  template <class T>
  DeviceSpan<T> span(const exec::Array<T>& a) const {
    return {a.data(), a.size(), stream};
  }
  exec::Array<double> there(const std::vector<double>& v) const { return to_device(space, v); }
  exec::Array<double> values_of(const CsrMatrix& a) const {
    return there(std::vector<double>(a.values.begin(), a.values.end()));
  }
  void setup(const CsrMatrix& a) {
    const auto values = values_of(a);
    solver.setup(a, span(values));
  }
  void factor(const CsrMatrix& a) {
    const auto values = values_of(a);
    solver.factor(span(values));
  }
  Result solve(const std::vector<double>& b, std::vector<double>& x, Monitor* monitor = nullptr) {
    const auto b_there = there(b), x_there = there(x);
    Result r = solver.solve(span(b_there), span(x_there), monitor);
    EXPECT_EQ(to_host(space, b_there), b);
    x = to_host(space, x_there);
    return r;
  }
  std::vector<double> apply(const std::vector<double>& r) {
    const auto r_there = there(r), z_there = there(r);
    solver.apply(span(r_there), span(z_there));
    return to_host(space, z_there);
  }

  Solver solver;
  Space space;
  void* stream;

 private:
  static void* stream_of(const Space& s) {
    if constexpr (requires { s.stream(); })
      return s.stream();
    else
      return nullptr;
  }
};

inline bool any_starts(const std::vector<std::string>& notes, const std::string& with) {
  for (const std::string& note : notes)
    if (note.starts_with(with)) return true;
  return false;
}

inline void expect_same(const Result& there, const Result& here) {
  EXPECT_EQ(there.status, here.status);
  EXPECT_EQ(there.iterations, here.iterations);
  EXPECT_EQ(there.history, here.history);
  EXPECT_EQ(there.relative_residual, here.relative_residual);
  EXPECT_EQ(there.initial_residual, here.initial_residual);
  EXPECT_EQ(there.solver, here.solver);
  EXPECT_EQ(there.precond, here.precond);
  EXPECT_EQ(there.ordering, here.ordering);
  EXPECT_EQ(there.device, here.device);
  EXPECT_EQ(there.precision, here.precision);
  ASSERT_EQ(there.rungs.size(), here.rungs.size());
  for (std::size_t k = 0; k < here.rungs.size(); ++k) {
    EXPECT_EQ(there.rungs[k].what, here.rungs[k].what);
    EXPECT_EQ(there.rungs[k].iterations, here.rungs[k].iterations);
  }
}

/// Set-up, solves from zero and from a guess, new values, the preconditioner alone: bit for bit what arrays in host
/// memory give. Of a matrix that coloured blocks of few launches serve, so that no choice hangs on a clock.
template <class Space>
void expect_the_bits_of_host_memory(const std::string& system, Options o) {
  SCOPED_TRACE(system + ", " + o.solver + " with " + o.precond + ", precision " + o.precision);
  CsrMatrix a = generate(system);
  const std::vector<double> b = random_values(std::size_t(a.rows), 901), guess = random_values(b.size(), 902);
  Solver here(o);
  here.setup(a);
  OnDevice<Space> there(o);
  there.setup(a);
  for (const bool again : {false, true}) {
    std::vector<double> x(b.size(), 0.0), y = x;
    expect_same(there.solve(b, y), here.solve(b, x));
    EXPECT_EQ(y, x);
    x = y = guess;
    expect_same(there.solve(b, y), here.solve(b, x));
    EXPECT_EQ(y, x);
    EXPECT_NE(x, guess);
    std::vector<double> z(b.size());
    here.apply(b, z);
    EXPECT_EQ(there.apply(b), z);
    if (again) break;
    for (double& v : a.values) v *= 1.5;
    here.factor(a);
    there.factor(a);
  }
  EXPECT_EQ(there.solver.counts().analyses, here.counts().analyses);
  EXPECT_EQ(there.solver.counts().factorisations, 2);
  EXPECT_GE(there.solver.bytes(), here.bytes());
}

/// What is wrong with numbers is said in the same words, with the row.
template <class Space>
void expect_the_words_of_host_memory(const Options& o) {
  CsrMatrix a = generate("gen:convdiff2d:12x11");
  const std::vector<double> good = random_values(std::size_t(a.rows), 903);
  Solver here(o);
  here.setup(a);
  OnDevice<Space> there(o);
  there.setup(a);
  const auto expect_words_of = [&](std::vector<double> b, std::vector<double> x) {
    std::vector<double> c = b, y = x;
    const std::string words = refusal([&] { here.solve(b, x); });
    EXPECT_EQ(refusal([&] { there.solve(c, y); }), words);
  };
  for (const double bad : {nan, infinity, -infinity}) {
    std::vector<double> v = good;
    v[77] = bad;
    expect_words_of(v, good);
    expect_words_of(good, v);
  }
  expect_words_of(std::vector<double>(good.size(), 1e-200), good);
  // A x = 0 is met by x = 0 alone.
  std::vector<double> x = good;
  const Result r = there.solve(std::vector<double>(good.size(), 0.0), x);
  EXPECT_EQ(r.status, Status::converged);
  EXPECT_EQ(x, std::vector<double>(good.size(), 0.0));

  a.values[40] = nan;
  EXPECT_EQ(refusal([&] { there.factor(a); }), refusal([&] { here.factor(a); }));
  x = good;
  EXPECT_EQ(refusal([&] { there.solve(good, x); }), "solve comes after analyse and factor");
  const CsrMatrix bad_pattern = [] {
    CsrMatrix m = generate("gen:poisson2d:5x5");
    std::swap(m.columns[0], m.columns[1]);
    return m;
  }();
  EXPECT_EQ(refusal([&] { there.setup(bad_pattern); }), refusal([&] { here.setup(bad_pattern); }));
}

/// Arrays of the wrong length, calls out of turn, and solvers that have no device.
template <class Space>
void expect_refusals(const Options& o) {
  const CsrMatrix a = generate("gen:poisson2d:9x8"), other = generate("gen:poisson2d:8x9");
  OnDevice<Space> there(o);
  const auto values = there.values_of(a), b = there.there(std::vector<double>(72, 1.0)),
             x = there.there(std::vector<double>(72, 0.0)), small = there.there(std::vector<double>(71, 0.0));
  const auto span = [&](const exec::Array<double>& v) { return there.span(v); };
  expect_words(refusal([&] { there.solver.factor(span(values)); }), {"after analyse"});
  there.solver.analyse(a);
  expect_words(refusal([&] { there.solver.factor(span(values)); }), {"call analyse(pattern, values)"});
  expect_words(refusal([&] { there.solver.analyse(a, span(b)); }), {"array of values has 72 entries", "are expected"});
  there.solver.setup(a, span(values));
  expect_words(refusal([&] { there.solver.factor(span(b)); }), {"array of values has 72 entries"});
  there.solver.setup(a, span(values));
  expect_words(refusal([&] { there.solver.solve(span(small), span(x)); }), {"right-hand side has 71 entries", "72"});
  expect_words(refusal([&] { there.solver.solve(span(b), span(small)); }), {"initial guess has 71 entries", "72"});
  expect_words(refusal([&] { there.solver.apply(span(b), span(small)); }), {"z has 71 entries"});
  expect_words(refusal([&] { there.solver.solve(span(x), span(x)); }), {"one array"});
  EXPECT_EQ(there.solver.solve(span(b), span(x)).status, Status::converged);

  const auto offsets = to_device(there.space, std::vector<Offset>(a.offsets.begin(), a.offsets.end()));
  const auto columns = to_device(there.space, std::vector<Index>(a.columns.begin(), a.columns.end()));
  const auto other_columns = to_device(there.space, std::vector<Index>(other.columns.begin(), other.columns.end()));
  EXPECT_TRUE(there.solver.has_pattern(there.span(offsets), there.span(columns)));
  EXPECT_FALSE(there.solver.has_pattern(there.span(offsets), there.span(other_columns)));
  EXPECT_FALSE(there.solver.has_pattern(there.span(columns), there.span(columns)));

  Options on_host = o;
  on_host.device = "host";
  Solver host(on_host);
  EXPECT_EQ(host.gpu(), -1);
  expect_words(refusal([&] { host.setup(a, span(values)); }), {"works on the host", "device host", "--device cuda"});
  host.setup(a);
  expect_words(refusal([&] { host.solve(span(b), span(x)); }), {"works on the host", "host memory"});
  expect_words(refusal([&] { host.apply(span(b), span(x)); }), {"works on the host"});
  EXPECT_EQ(gpu_of(a.columns.data()), -1);
  EXPECT_EQ(gpu_of(nullptr), -1);
}

/// Convection far beyond what a mesh resolves, against the row order: DILU's recurrences grow.
inline CsrMatrix for_rungs_above(Index side) {
  CsrMatrix a = generate("gen:poisson2d:" + std::to_string(side) + "x" + std::to_string(side));
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
      const Index j = a.columns[std::size_t(k)];
      if (j != i) a.values[std::size_t(k)] *= j < i ? -9 : 10;
    }
  return a;
}

/// The ladder goes on with what it fetches from the device, and new values go to the rung that it reached.
template <class Space>
void expect_the_ladder_of_host_memory(Options o) {
  CsrMatrix a = for_rungs_above(40);
  const std::vector<double> b(std::size_t(a.rows), 1.0);
  Solver here(o);
  here.setup(a);
  OnDevice<Space> there(o);
  there.setup(a);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    std::vector<double> x(b.size(), 0.0), y = x;
    const Result r = there.solve(b, y);
    expect_same(r, here.solve(b, x));
    EXPECT_EQ(y, x);
    EXPECT_EQ(r.status, Status::converged);
    EXPECT_LE(true_residual(a, y, b), 1e-8);
    EXPECT_TRUE(any_starts(r.notes, "b and x were brought to host memory"));
    EXPECT_EQ(any_starts(r.notes, "the matrix's values were brought to host memory, where the ladder's rung"),
              round == 2);
    std::vector<double> z(b.size());
    here.apply(b, z);
    EXPECT_EQ(there.apply(b), z);
    if (round < 1) continue;
    for (double& v : a.values) v *= 0.5;
    here.factor(a);
    there.factor(a);
  }
}

}  // namespace krilu::test
