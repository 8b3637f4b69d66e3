// SPDX-License-Identifier: Apache-2.0
// MPI ranks, started by tests/distributed/mpi_test.py with mpirun:
//   mpi_main calls        every call against what it must bring; pieces of messages and reduced sums too
//   mpi_main CASE         fails as CASE says; the script looks at what is written and how all ranks end
#define OMPI_SKIP_MPICXX  // the C++ bindings that MPI gave up
#define MPICH_SKIP_MPICXX
#include <mpi.h>
// mpi.h first: it decides what krilu/mpi.hpp declares.
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "distributed/halo.hpp"
#include "distributed/mpi.hpp"
#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "krilu/mpi.hpp"
#include "sparse/csr.hpp"

namespace {

using krilu::Communicator;

void expect(bool holds, const std::string& what) {
  if (!holds) throw krilu::Error("not so: " + what);
}

std::uint64_t said(int rank, std::size_t k) { return krilu::random_bits(std::uint64_t(rank) * 1000003 + k); }

void check_gather(Communicator& c) {
  const auto ranks = std::size_t(c.size());
  for (std::size_t n : {1, 3, 1000, 0, 70000}) {
    std::vector<std::uint64_t> mine(n), all(n * ranks);
    for (std::size_t k = 0; k < n; ++k) mine[k] = said(c.rank(), k);
    c.all_gather(mine.data(), n * 8, all.data());
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::size_t k = 0; k < n; ++k) expect(all[r * n + k] == said(int(r), k), "all_gather brings all in order");
  }
}

void check_sums(Communicator& c, bool in_order) {
  const auto value = [&](int r, std::size_t k) {
    return std::ldexp(krilu::unit_random(said(r, k)) - 0.5, (r * 37 + int(k)) % 80 - 40);
  };
  for (std::size_t n : {1, 2, 100, 2000}) {
    std::vector<double> mine(n), expected(n), all(n * std::size_t(c.size()));
    for (std::size_t k = 0; k < n; ++k) {
      mine[k] = value(c.rank(), k);
      expected[k] = value(0, k);
      for (int r = 1; r < c.size(); ++r) expected[k] += value(r, k);
    }
    c.sum(mine);
    for (std::size_t k = 0; k < n; ++k)
      if (in_order)
        expect(std::memcmp(&mine[k], &expected[k], 8) == 0, "sums are those in the order of ranks");
      else
        expect(std::abs(mine[k] - expected[k]) <= 1e-12 * (1 + std::abs(expected[k])) * std::ldexp(1.0, 40),
               "reduced sums are sums");
    c.all_gather(mine.data(), n * 8, all.data());
    for (std::size_t k = 0; k < all.size(); ++k)
      expect(std::memcmp(&all[k], &mine[k % n], 8) == 0, "all ranks hold the same bits");
  }
}

void check_exchange(Communicator& c) {
  const int ranks = c.size(), me = c.rank();
  for (int round = 0; round < 60; ++round) {
    const auto length = [&](int from, int to) {
      return round == 7 ? std::size_t(300'000) : std::size_t((from * 31 + to * 17 + round * 41) % 700);
    };
    const auto talks = [&](int from, int to) { return said(from, std::size_t(to + 50 * round)) % 4 != 0; };
    std::vector<std::vector<std::uint64_t>> out(static_cast<std::size_t>(ranks)), in(out);
    std::vector<Communicator::Sent> sends;
    std::vector<Communicator::Received> receives;
    for (int r = 0; r < ranks; ++r) {
      if (r == me) continue;
      auto &o = out[std::size_t(r)], &i = in[std::size_t(r)];
      if (talks(me, r)) {
        o.resize(length(me, r));
        for (std::size_t k = 0; k < o.size(); ++k) o[k] = said(me * 100 + r + round, k);
        sends.push_back({r, o.data(), o.size() * 8});
      }
      if (talks(r, me)) {
        i.resize(length(r, me));
        receives.push_back({r, i.data(), i.size() * 8});
      }
    }
    c.start(sends, receives);
    c.finish();
    for (int r = 0; r < ranks; ++r)
      for (std::size_t k = 0; k < in[std::size_t(r)].size(); ++k)
        expect(in[std::size_t(r)][k] == said(r * 100 + me + round, k), "messages arrive whole");
  }
}

/// What is refused and leaves the ranks able to go on.
template <class F>
void expect_refused(F f, const std::string& words) {
  try {
    f();
  } catch (const krilu::Error& e) {
    expect(std::string(e.what()).find(words) != std::string::npos, "'" + words + "' is in: " + e.what());
    return;
  }
  expect(false, "refused: " + words);
}

void check_refusals(Communicator& c) {
  double v[2] = {};
  const Communicator::Sent to_itself{c.rank(), v, 8};
  expect_refused([&] { c.start({&to_itself, 1}, {}); }, "cannot exchange messages");
  expect_refused([&] { c.finish(); }, "start()");
  if (c.size() == 1) return;
  for (std::size_t expected : {8, 24}) {
    double in[3];
    const Communicator::Sent s{1, v, 16};
    const Communicator::Received r{0, in, expected};
    if (c.rank() == 0) c.start({&s, 1}, {});
    if (c.rank() == 1) c.start({}, {&r, 1});
    if (c.rank() > 1) c.start({}, {});
    if (c.rank() == 1)
      expect_refused([&] { c.finish(); }, "rank 0 sent");
    else
      c.finish();
  }
}

/// Products of the first ranks' rows of a generated matrix, each rank's share of another size, against the whole.
void check_products(const std::shared_ptr<Communicator>& c) {
  const krilu::CsrMatrix a = krilu::generate("gen:convdiff2d:31x17");
  const auto start = [&](int rank) {  // the second of four ranks and more has no rows
    return rank == 0 ? 0 : krilu::Index(std::int64_t(a.rows) * (c->size() > 3 && rank == 1 ? 2 : rank) / c->size());
  };
  krilu::RowsMatrix mine;
  mine.all = a.rows;
  mine.first = start(c->rank());
  mine.count = krilu::Index((c->rank() + 1 == c->size() ? a.rows : start(c->rank() + 1)) - mine.first);
  const krilu::Offset base = a.offsets[std::size_t(mine.first)];
  for (krilu::Index i = 0; i <= mine.count; ++i) mine.offsets.push_back(a.offsets[std::size_t(mine.first + i)] - base);
  const auto nnz = std::ptrdiff_t(mine.offsets.back());
  mine.columns.assign(a.columns.begin() + base, a.columns.begin() + base + nnz);
  mine.values.assign(a.values.begin() + base, a.values.begin() + base + nnz);

  krilu::distributed::Halo halo(c, mine, krilu::exec::Host(1));
  std::vector<double> x(std::size_t(a.rows)), y(x), sent, added(halo.rows().size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = krilu::unit_random(i);
  krilu::sparse::multiply(krilu::exec::Host(1), a.view(), x.data(), y.data());
  std::vector<double> own(std::size_t(mine.count));
  for (const krilu::Index i : halo.rows()) sent.push_back(x[std::size_t(mine.first + i)]);
  for (int again = 0; again < 20; ++again) {
    halo.start(sent.data());
    krilu::sparse::multiply(krilu::exec::Host(1), halo.block().view(), x.data() + mine.first, own.data());
    halo.finish(added.data());
    for (std::size_t k = 0; k < added.size(); ++k) own[std::size_t(halo.rows()[k])] += added[k];
    for (std::size_t i = 0; i < own.size(); ++i)
      expect(std::abs(own[i] - y[std::size_t(mine.first) + i]) < 1e-13, "products are those of the whole matrix");
  }
}

void check_calls(const krilu::MpiSession& session) {
  const auto world = session.communicator();
  check_gather(*world);
  check_sums(*world, true);
  check_exchange(*world);
  check_refusals(*world);
  check_products(world);
  const auto in_pieces = krilu::distributed::mpi_communicator(MPI_COMM_WORLD, {1000, 0});
  check_sums(*in_pieces, false);
  check_exchange(*in_pieces);
  const auto again = krilu::mpi_communicator(MPI_COMM_SELF);
  expect(again->size() == 1, "MPI_COMM_SELF is one rank");
  check_gather(*again);
}

}  // namespace

int main(int argc, char** argv) {
  if (!krilu::started_by_mpirun()) {
    std::puts("not started by mpirun");
    return 3;
  }
  krilu::MpiSession session(argc, argv);
  const auto c = session.communicator();
  const std::string what = argc > 1 ? argv[1] : "calls";
  const bool last = c->rank() == c->size() - 1;
  try {
    double v = 1;
    if (what == "calls") check_calls(session);
    if (what == "one-fails" && last) throw krilu::Error("row 7 is missing");
    if (what == "all-fail") throw krilu::Error("the options are wrong");
    if (what == "one-dies" && last) std::raise(SIGKILL);
    if (what == "one-exits" && last) std::_Exit(5);
    c->sum({&v, 1});
  } catch (const std::exception& e) {
    session.abort(e.what(), 4);
  }
  if (what == "uncaught" && last) throw krilu::Error("nobody catches this");
  if (what == "uncaught") {
    double v = 1;
    c->sum({&v, 1});
  }
  std::printf("rank %d of %d is through\n", c->rank(), c->size());
  return 0;
}
