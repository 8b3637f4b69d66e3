// SPDX-License-Identifier: Apache-2.0
// ILU(k), ILUT, block ILU and RAS on a GPU against the host's, which have dense references: packed sweeps and those of
// any triangle, whatever layout the solver keeps its rows in; the same bits again; new values, shifts, and what they
// refuse, by the caller's row. Suite LocalSmall is what compute-sanitizer gets through.

#include "krilu/solver.hpp"
#include "precond/factored.hpp"
#include "precond/local.cuh"
#include "precond/tiny_cases.hpp"
#include "solver/solved_on.hpp"
#include "support/sliced_matrix.cuh"

namespace krilu::test {
namespace {

using exec::Cuda;
using triangular::Strategy;

const std::vector<std::string> local_kinds{"iluk:0",
                                           "iluk:1",
                                           "iluk:2",
                                           "ilut:5,0.01",
                                           "ilut:10,0",
                                           "ras:1,1",
                                           "block-ilu:7",
                                           "ras:8,1",
                                           "block-ilu:9,iluk:1",
                                           "block-ilu:40,dilu",
                                           "ras:8,2,ilut:6,0.01",
                                           "ras:20,1"};
constexpr Strategy local_strategies[] = {Strategy::automatic, Strategy::level_set, Strategy::sync_free,
                                         Strategy::tiled};
constexpr Rows local_layouts[] = {Rows::as_given, Rows::by_level_of_a_random_order, Rows::in_blocks, Rows::by_level};

/// A preconditioner as the engine makes it.
class GpuLocal {
 public:
  GpuLocal(const std::string& name, SlicedOn& s, const CsrView& a, Strategy strategy, double shift = 0) : s_(s) {
    const precond::Context<Cuda> context{s.space, strategy, [row = s.row](Index i) { return row[std::size_t(i)]; },
                                         s.plan,  &s.there, a};
    precond_ = precond::make<Cuda, double>(name, context, s.pattern);
    precond_->factor({s.matrix, a}, shift);
  }
  void factor(const CsrView& a, double shift = 0) {
    s_.fill(a);
    precond_->factor({s_.matrix, a}, shift);
  }
  std::vector<double> apply(const std::vector<double>& r) const {
    const auto in = s_.in(r), out = s_.in(std::vector<double>(r.size(), 1e300));
    precond_->apply(in.data(), out.data());
    return s_.out(out);
  }
  /// Until a chooser has settled; each of its trials gives the result.
  std::vector<double> settled(const std::vector<double>& r) const {
    std::vector<double> z = apply(r);
    const std::vector<double> first = z;
    for (int k = 0; precond_->trials_left() > 0 && k < 100; ++k) {
      z = apply(r);
      EXPECT_EQ(bits(z), bits(first)) << "trial " << k << " has other bits";
    }
    EXPECT_EQ(precond_->trials_left(), 0);
    return z;
  }
  const precond::Preconditioner<Cuda, double>& precond() const { return *precond_; }

 private:
  SlicedOn& s_;
  std::unique_ptr<precond::Preconditioner<Cuda, double>> precond_;
};

std::vector<double> host_apply(const std::string& name, const CsrView& a, const std::vector<double>& r,
                               double shift = 0) {
  return Factored<exec::Host>(name, a, {.threads = 2, .shift = shift}).apply(r);
}

/// Every second row negated.
CsrMatrix two_signs(CsrMatrix a) {
  for (Index i = 0; i < a.rows; i += 2)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) a.values[std::size_t(k)] *= -1;
  return a;
}

/// Whether parts are packed where no strategy is asked for: they are many or small, and each fits shared memory. What
/// ILUT keeps here does.
bool packs(const std::string& name, const CsrView& a) {
  const exec::Host host(team);
  const precond::Spec spec = precond::parse_spec(name);
  const precond::LocalProblem p = precond::local_problem(host, a, spec);
  if (p.parts() < 16 && p.rows() > 1024) return false;
  if (spec.local == "ilut") return true;
  const CsrView f = p.pattern.view(p.rows());
  const sparse::RowOrder order = schedule::by_parts(host, f, sparse::adjacency(f), p.offsets);
  return triangular::pack(host, f, p.diagonal.data(), order, p.owned).parts() > 0;
}

/// `name`, under these strategies in one layout, is the host's.
void expect_host(const Cuda& ex, const std::string& name, const GpuCase& c, Rows layout, std::uint64_t seed,
                 const std::vector<Strategy>& under, double shift = 0) {
  const std::vector<double> r = random_values(std::size_t(c.a.rows), seed);
  const std::vector<double> expected = host_apply(name, c.a, r, shift);
  SlicedOn s(ex, c.a, layout, seed, 64);
  std::vector<double> first;
  for (Strategy strategy : under) {
    SCOPED_TRACE(name + " of " + c.name + ", rows " + to_string(layout) + ", " + to_string(strategy) + ", shift " +
                 std::to_string(shift));
    GpuLocal m(name, s, c.a, strategy, shift);
    const std::vector<double> z = m.settled(r);
    ASSERT_LT(difference(z, expected), 1e-12);
    EXPECT_EQ(bits(m.apply(r)), bits(z)) << "another application, other bits";
    if (strategy == under.front()) {
      m.factor(c.a, shift);
      EXPECT_EQ(bits(m.settled(r)), bits(z)) << "another factorisation, other bits";
    }
    if (strategy != Strategy::automatic) {
      if (first.empty()) first = z;
      EXPECT_EQ(bits(z), bits(first)) << "strategies differ";
    }
    EXPECT_GT(m.precond().bytes(), 8 * r.size());
    const triangular::Report report = m.precond().triangular().value();
    EXPECT_TRUE(report.settled);
    if (strategy != Strategy::automatic) {
      EXPECT_EQ(report.used, strategy);
    } else {
      EXPECT_EQ(report.used == Strategy::parts, packs(name, c.a)) << "used: " << to_string(report.used);
    }
  }
}

const std::vector<Strategy> all_strategies(std::begin(local_strategies), std::end(local_strategies));

/// Layouts, and strategies beside `automatic`, in turn, so that each case and each name meets all of them; two names
/// meet all strategies each time.
void expect_host_for_all(const Cuda& ex, const std::vector<GpuCase>& cases, const std::vector<std::string>& names,
                         std::uint64_t seed) {
  for (std::size_t k = 0; k < cases.size(); ++k)
    for (std::size_t n = 0; n < names.size(); ++n) {
      const bool all = names[n] == "iluk:1" || names[n] == "ras:8,1";
      expect_host(ex, names[n], cases[k], local_layouts[(k + n) % 4], seed,
                  all ? all_strategies : std::vector{Strategy::automatic, local_strategies[1 + (k + n) % 3]});
    }
}

TEST(LocalSmall, AreTheHosts) {
  KRILU_REQUIRE_GPU();
  expect_host_for_all(Cuda(0, team), tiny_cases(), local_kinds, 983);
}

TEST(LocalSmall, LongRowsAreTheHosts) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  // Rows of 300 stand in no shared memory; the first has eight lanes a row, the second a warp.
  const GpuCase cases[] = {{"long rows among short ones", with_long_rows(400, {40, 300}, false, 984)},
                           {"long rows", random_matrix({.rows = 330, .per_row = 290, .seed = 985})}};
  for (const GpuCase& c : cases)
    for (const char* name : {"iluk:0", "block-ilu:2,dilu", "ras:2,1", "ilut:20,0.001"})
      expect_host(ex, name, c, Rows::as_given, 986, {Strategy::automatic, Strategy::tiled});
}

TEST(LocalSmall, MorePartsThanRowsAreJacobi) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix a = random_matrix({.rows = 130, .per_row = 4, .seed = 987});
  const std::vector<double> r = random_values(130, 988);
  const std::vector<double> jacobi = host_apply("jacobi", a, r);
  SlicedOn s(ex, a, Rows::by_level_of_a_random_order, 989);
  for (const char* name : {"block-ilu:1000", "ras:1000,0", "block-ilu:1000,ilut:5,0", "block-ilu:130,dilu"})
    for (Strategy strategy : local_strategies)
      EXPECT_LT(difference(GpuLocal(name, s, a, strategy).settled(r), jacobi), 1e-15) << name << to_string(strategy);
  expect_host(ex, "ras:1000,1", {"one row a part and its neighbours", a}, Rows::in_blocks, 990, all_strategies);
}

TEST(LocalSmall, NoRowsAreNoTrouble) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix none = diagonal(0);
  for (const std::string& name : local_kinds) {
    SlicedOn s(ex, none, Rows::as_given);
    EXPECT_EQ(GpuLocal(name, s, none, Strategy::automatic).apply({}), std::vector<double>{}) << name;
  }
}

TEST(LocalSmall, NewValuesGiveAFreshFactor) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix a = random_matrix({.rows = 250, .per_row = 4, .seed = 991});
  CsrMatrix b = a;
  for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] *= 1 + 0.2 * double(k % 5);
  const std::vector<double> r = random_values(250, 992);
  for (const std::string& name : local_kinds)
    for (Strategy strategy : {Strategy::automatic, Strategy::sync_free}) {
      SCOPED_TRACE(name + ", " + to_string(strategy));
      SlicedOn s(ex, a, Rows::by_level), t(ex, b, Rows::by_level);
      GpuLocal m(name, s, a, strategy);
      const std::vector<double> first = m.settled(r);
      m.factor(b);
      const std::vector<double> second = m.settled(r);
      EXPECT_GT(difference(second, first), 1e-3);
      EXPECT_EQ(bits(second), bits(GpuLocal(name, t, b, strategy).settled(r)));
      EXPECT_LT(difference(second, host_apply(name, b, r)), 1e-12);
      m.factor(a);
      EXPECT_EQ(bits(m.settled(r)), bits(first)) << "something is left of the values before";
    }
}

TEST(LocalSmall, TheShiftGrowsTheDiagonalInItsOwnSign) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix a = two_signs(random_matrix({.rows = 200, .per_row = 5, .seed = 993}));
  for (const std::string& name : local_kinds)
    for (double shift : {0.01, 0.5})
      expect_host(ex, name, {"two signs", a}, Rows::as_given, 994, {Strategy::automatic, Strategy::level_set}, shift);
  // Zeros, stored or not, grow upwards.
  RowMaps rows(200);
  for (Index i = 0; i < 200; ++i)
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
      rows[std::size_t(i)][a.columns[std::size_t(k)]] = a.values[std::size_t(k)];
  for (Index i : {30, 31, 130}) rows[std::size_t(i)][i] = 0;
  for (Index i : {60, 61, 160}) rows[std::size_t(i)].erase(i);
  const CsrMatrix gaps = from_rows(rows);
  for (const std::string& name : local_kinds)
    expect_host(ex, name, {"zeros on the diagonal", gaps}, Rows::by_level, 994, {Strategy::automatic}, 0.5);
  SlicedOn s(ex, a, Rows::as_given);
  const std::vector<double> r = random_values(200, 995);
  EXPECT_GT(difference(GpuLocal("ras:8,1", s, a, Strategy::automatic, 0.5).apply(r),
                       GpuLocal("ras:8,1", s, a, Strategy::automatic).apply(r)),
            1e-3);
}

TEST(LocalSmall, AZeroPivotIsNamedByTheCallersRowAndMendedByAShift) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  for (bool stored : {true, false}) {
    const CsrMatrix a = with_zero_pivot(stored, 996);
    for (const std::string& name : local_kinds)
      for (Rows layout : {Rows::as_given, Rows::by_level_of_a_random_order}) {
        SCOPED_TRACE(name + ", rows " + to_string(layout) + (stored ? "" : ", no diagonal"));
        SlicedOn s(ex, a, layout, 997);
        EXPECT_THROW(GpuLocal(name, s, a, Strategy::automatic), ZeroPivot);
        EXPECT_EQ(complaint([&] { GpuLocal(name, s, a, Strategy::tiled); }),
                  name +
                      ": zero pivot in row 124 (counting from 1): give --shift (0.01, say), --scaling matching (on the "
                      "host, in double), "
                      "another ordering, or --precond jacobi or none");
        const std::vector<double> r = random_values(200, 998);
        GpuLocal mended(name, s, a, Strategy::automatic, 0.5);
        const std::vector<double> z = mended.settled(r);
        EXPECT_LT(difference(z, host_apply(name, a, r, 0.5)), 1e-12);
        // A failure is forgotten with the next values.
        EXPECT_THROW(mended.factor(a), ZeroPivot);
        mended.factor(a, 0.5);
        EXPECT_EQ(bits(mended.settled(r)), bits(z));
      }
  }
}

TEST(LocalSmall, ZeroPivotsInSeveralPartsNameTheHostsRow) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  CsrMatrix a = grid(20, 10);
  for (Index i : {37, 150, 199})
    for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) a.values[std::size_t(k)] = 0;
  for (const std::string& name : local_kinds) {
    SlicedOn s(ex, a, Rows::by_level);
    const std::string text = complaint([&] { GpuLocal(name, s, a, Strategy::automatic); });
    EXPECT_EQ(text, complaint([&] { host_apply(name, a, std::vector<double>(200, 1.0)); }));
    EXPECT_TRUE(text.starts_with(name + ": zero pivot in row ")) << text;
  }
}

TEST(LocalSmall, SaysWhatTheHostSays) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix a = grid(20, 15);
  SlicedOn s(ex, a, Rows::as_given);
  for (const std::string& name : local_kinds)
    EXPECT_EQ(GpuLocal(name, s, a, Strategy::automatic).precond().description(),
              Factored<exec::Host>(name, a).precond().description());
  const std::string text = complaint([&] { GpuLocal("ras:8,1", s, a, Strategy::serial); });
  EXPECT_TRUE(text.starts_with("triangular serial is for the host")) << text;
}

// --- through the solver ----------------------------------------------------------------------------------------------

Solved solved_by(const CsrMatrix& a, const std::vector<double>& b, const std::string& method,
                 const std::string& precond, const std::string& device) {
  Options o;
  o.solver = method;
  o.precond = precond;
  o.threads = team;
  return solved_on(device, a, b, o);
}

void expect_host_answer(const CsrMatrix& a, const std::string& method, const std::string& precond) {
  SCOPED_TRACE(method + ", " + precond);
  const std::vector<double> b = random_values(std::size_t(a.rows), 999);
  const Solved gpu = solved_by(a, b, method, precond, "cuda"), host = solved_by(a, b, method, precond, "host");
  ASSERT_EQ(host.r.status, Status::converged);
  ASSERT_EQ(gpu.r.status, Status::converged);
  EXPECT_EQ(gpu.r.precond, precond);
  EXPECT_LE(true_residual(a, gpu.x, b), 1.001e-8);
  EXPECT_NEAR(gpu.r.iterations, host.r.iterations, std::max(3.0, 0.15 * host.r.iterations));
  EXPECT_LT(difference(gpu.x, host.x), 1e-4);
  const Solved again = solved_by(a, b, method, precond, "cuda");
  EXPECT_EQ(bits(again.x), bits(gpu.x)) << "another solve, other bits";
  EXPECT_EQ(again.r.iterations, gpu.r.iterations);
}

TEST(LocalSmall, SolvesAsTheHostDoes) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix a = generate("gen:convdiff3d:7x6x5");
  for (const char* precond : {"iluk:1", "ilut:5,0.01", "block-ilu:4,dilu", "ras:4,1"})
    for (const char* method : {"bicgstab", "gmres"}) expect_host_answer(a, method, precond);
}

TEST(Local, SolvesAsTheHostDoes) {
  KRILU_REQUIRE_GPU();
  const CsrMatrix small = generate("gen:convdiff3d:20x20x20"), large = generate("gen:convdiff3d:40x40x40");
  for (const std::string& precond : local_kinds) expect_host_answer(small, "gmres", precond);
  for (const char* precond : {"iluk:1", "ilut:5,0.01", "block-ilu", "ras", "ras:0,2,iluk:1"})
    expect_host_answer(large, "gmres", precond);
}

// --- larger: ILUT that drops nothing by size takes seconds for the largest -------------------------------------------

TEST(Local, AreTheHostsOnALattice) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  expect_host_for_all(ex, {{"gen:convdiff3d:20x20x20", generate("gen:convdiff3d:20x20x20")}}, local_kinds, 1002);
  const GpuCase c{"gen:convdiff3d:40x40x40", generate("gen:convdiff3d:40x40x40")};
  expect_host(ex, "ras", c, Rows::in_blocks, 1001, all_strategies);
  std::size_t turn = 0;
  for (const char* name :
       {"block-ilu", "ras:0,2,dilu", "block-ilu:500,iluk:1", "ras:200,1,ilut:6,0.01", "iluk:2", "ilut:5,0.01"})
    expect_host(ex, name, c, local_layouts[turn++ % 4], 1001, {Strategy::automatic});
}

TEST(Local, AreTheHostsOnRandomPatterns) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  std::vector<std::string> names = local_kinds;
  for (const char* name : {"block-ilu", "ras", "block-ilu:1000"}) names.push_back(name);
  expect_host_for_all(
      ex,
      {{"random", random_matrix({.rows = 6000, .per_row = 3, .seed = 1003})},
       {"unsymmetric", random_matrix({.rows = 6000, .per_row = 2, .symmetric_pattern = false, .seed = 1004})}},
      names, 1005);
  const GpuCase large{"unsymmetric, large",
                      random_matrix({.rows = 20000, .per_row = 2, .symmetric_pattern = false, .seed = 1006})};
  for (const char* name : {"iluk:2", "block-ilu:3000", "ras"})
    expect_host(ex, name, large, Rows::by_level, 1006, {Strategy::automatic, Strategy::sync_free});
}

TEST(Local, AreTheHostsWithLongRowsOfAllLengths) {
  KRILU_REQUIRE_GPU();
  expect_host_for_all(Cuda(0, team),
                      {{"long rows", with_long_rows(5000, {40, 100, 300, 2000}, true, 1007)},
                       {"long rows, unsymmetric", with_long_rows(5000, {40, 100, 300, 2000}, false, 1008)},
                       {"many long rows", random_matrix({.rows = 800, .per_row = 250, .seed = 1009})},
                       {"dense last row", arrow(5000, 4999)}},
                      {"iluk:0", "block-ilu:6", "ras:6,1", "ras:5,1,dilu", "ilut:30,0.001"}, 1010);
}

TEST(Local, AThousandPartsOfUnevenSizeGiveTheSameBitsAHundredTimes) {
  KRILU_REQUIRE_GPU();
  const Cuda ex(0, team);
  const CsrMatrix a = random_matrix({.rows = 20000, .per_row = 4, .seed = 1011});
  const std::vector<double> r = random_values(20000, 1012);
  SlicedOn s(ex, a, Rows::as_given);
  for (const char* name : {"ras:1000,1", "iluk:1"}) {
    GpuLocal m(name, s, a, Strategy::automatic);
    const std::vector<double> first = m.settled(r);
    for (int k = 0; k < 100; ++k) {
      if (k % 10 == 9) m.factor(a);
      ASSERT_EQ(bits(m.apply(r)), bits(first)) << name << ", application " << k;
    }
  }
}

}  // namespace
}  // namespace krilu::test
