// SPDX-License-Identifier: Apache-2.0
// DILU in face addressing against the loops over faces as OpenFOAM's DILUPreconditioner has them, on the matrix in the
// operator's numbering.
#include "precond/face_dilu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sparse/csr.hpp"
#include "sparse/split.hpp"
#include "support/ldu.hpp"
#include "support/split_matrix.hpp"
#include "support/support.hpp"

namespace krilu {
namespace {

using mesh::LduOperator;
using precond::FaceDilu;
using triangular::Strategy;

struct Applied {
  std::vector<double> rd, z;  // in the operator's numbering
};
template <class Space>
Applied applied(const Space& ex, const Mesh& m, const LduOperator<Space>& A, Strategy strategy,
                const std::vector<double>& r) {
  FaceDilu<Space> M(A, m, strategy);
  M.factor(A);
  const auto rd = test::to_device(ex, r), z = ex.template allocate<double>(r.size());
  M.apply(rd.data(), z.data());
  return {test::to_host(ex, M.reciprocals()), test::to_host(ex, z)};
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12 * (1 + std::abs(b[i]))) << "entry " << i;
}

template <class Space>
class FaceDiluOn : public ::testing::Test {};
TYPED_TEST_SUITE(FaceDiluOn, test::Spaces);

/// This project is built with contraction to fused operations where the processor has them; the loops here may then be
/// contracted differently from the library's.
#if defined(__FMA__)
constexpr bool same_bits = false;
#else
constexpr bool same_bits = true;
#endif

TYPED_TEST(FaceDiluOn, IsTheLoopOverFacesBitForBitInTheMeshsOwnOrder) {
  for (const std::string& name : test::small_mesh_names())
    for (const double speed : {0.0, 4.0}) {
      SCOPED_TRACE(name);
      const Mesh m = generate_mesh(name);
      const sparse::Ldu a = test::transport_matrix(m, {1, {speed, 1.5 * speed, -speed}, 0.9});
      const std::vector<double> r = test::random_values(std::size_t(m.cells), 7);
      const std::vector<double> rD = test::reference_reciprocals(a), w = test::reference_application(a, rD, r);
      for (const char* loops : {"serial", "gather"}) {
        const auto ex = test::make_space<TypeParam>();
        LduOperator<TypeParam> A(ex, m, {loops, "none"});
        A.set_values(a.diagonal, a.upper, a.lower);
        const Applied by_faces = applied(ex, m, A, Strategy::serial, r);
        expect_near(by_faces.rd, rD);
        expect_near(by_faces.z, w);
        if (same_bits) {
          EXPECT_EQ(by_faces.rd, rD);
          EXPECT_EQ(by_faces.z, w);
        }
        const Applied by_levels = applied(ex, m, A, Strategy::level_set, r);
        expect_near(by_levels.rd, rD);
        expect_near(by_levels.z, w);
      }
    }
}

TYPED_TEST(FaceDiluOn, EliminatesInTheOperatorsNumbering) {
  for (const std::string& name : test::small_mesh_names())
    for (const bool turned : {false, true}) {
      Mesh m = generate_mesh(name);
      sparse::Ldu a = test::transport_matrix(m, {1, {5, -1, 2}});
      if (turned) test::turn_some_faces(m, a);
      const std::vector<double> r = test::random_values(std::size_t(m.cells), 7);
      for (const char* loops : {"slices", "tiles", "diagonal", "colours"})
        for (const char* renumber : {"bisection", "growth"}) {
          SCOPED_TRACE(name + " " + loops + " " + renumber);
          const auto ex = test::make_space<TypeParam>();
          LduOperator<TypeParam> A(ex, m, {loops, renumber, 64});
          A.set_values(a.diagonal, a.upper, a.lower);
          const sparse::Ldu there = test::in_order(a, A.loops().cell_order(), A.loops().face_order());
          const std::vector<double> rD = test::reference_reciprocals(there),
                                    w = test::reference_application(there, rD, r);
          for (const Strategy strategy : {Strategy::serial, Strategy::level_set}) {
            const Applied here = applied(ex, m, A, strategy, r);
            expect_near(here.rd, rD);
            expect_near(here.z, w);
            if (same_bits && strategy == Strategy::serial) {
              EXPECT_EQ(here.z, w);
            }
          }
        }
    }
}

/// What rows say of a matrix with these values, whose faces stand in face_order, as a matrix of whole entries.
CsrMatrix filled(const precond::FaceRows& rows, const sparse::Ldu& a, const std::vector<Index>& face_order) {
  CsrMatrix out;
  out.rows = out.cols = a.cells;
  out.offsets.assign(rows.offsets.begin(), rows.offsets.end());
  out.columns.assign(rows.columns.begin(), rows.columns.end());
  out.values.assign(rows.columns.size(), 0.0);
  for (Index c = 0; c < a.cells; ++c)
    for (Offset k = out.offsets[std::size_t(c)]; k < out.offsets[std::size_t(c) + 1]; ++k) {
      double& value = out.values[std::size_t(k)];
      if (out.columns[std::size_t(k)] == c) value = a.diagonal[std::size_t(c)];
      for (Offset e = rows.begin[std::size_t(c)]; e < rows.begin[std::size_t(c) + 1]; ++e) {
        const auto [face, other] = rows.entry[std::size_t(e)];
        if (other != out.columns[std::size_t(k)]) continue;
        const auto f = std::size_t(face_order[std::size_t(face < 0 ? ~face : face)]);
        value += face < 0 ? a.lower_or_upper()[f] : a.upper[f];
      }
    }
  return out;
}

TEST(FaceRows, AreThoseOfTheMatrix) {
  for (const std::string& name : test::small_mesh_names())
    for (const bool turned : {false, true})
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(name);
        Mesh m = generate_mesh(name);
        sparse::Ldu a = test::transport_matrix(m, {1, {5, -1, 2}});
        const CsrMatrix expected = sparse::to_csr(a);
        if (turned) test::turn_some_faces(m, a);
        std::vector<Index> order(m.owner.size());  // the last face first
        for (std::size_t f = 0; f < order.size(); ++f) order[f] = Index(order.size() - 1 - f);
        const CsrMatrix got = filled(precond::face_rows(exec::Host(threads), m, order), a, order);
        EXPECT_TRUE(std::ranges::equal(got.offsets, expected.offsets));
        EXPECT_TRUE(std::ranges::equal(got.columns, expected.columns));
        EXPECT_TRUE(std::ranges::equal(got.values, expected.values));
      }
}

TEST(FaceRows, HaveOneEntryForTwoFacesBetweenTheSameCells) {
  Mesh m;
  m.cells = 4;  // the last one has no faces
  m.owner = {2, 0, 0, 1};
  m.neighbour = {1, 2, 1, 2};
  const sparse::Ldu a{4, m.owner, m.neighbour, {9, 9, 9, 9}, {1, 2, 3, 4}, {10, 20, 30, 40}};
  const std::vector<Index> order{0, 1, 2, 3};
  const CsrMatrix got = filled(precond::face_rows(exec::Host(1), m, order), a, order);
  EXPECT_TRUE(std::ranges::equal(got.offsets, std::vector<Offset>{0, 3, 6, 9, 10}));
  EXPECT_TRUE(std::ranges::equal(got.columns, std::vector<Index>{0, 1, 2, 0, 1, 2, 0, 1, 2, 3}));
  EXPECT_TRUE(std::ranges::equal(got.values, std::vector<double>{9, 3, 2, 30, 9, 14, 20, 41, 9, 9}));
}

TYPED_TEST(FaceDiluOn, IsTheSameForAnyNumberOfThreads) {
  for (const char* name : {"mesh:box:40x40x30:random", "mesh:tetrahedra:16x16x16"}) {
    const Mesh m = generate_mesh(name);
    const sparse::Ldu a = test::transport_matrix(m, {1, {5, -1, 2}});
    const std::vector<double> r = test::random_values(std::size_t(m.cells), 7);
    std::vector<Applied> seen;
    for (const int threads : {1, 3}) {
      const auto ex = test::make_space<TypeParam>(threads);
      LduOperator<TypeParam> A(ex, m, {"tiles", "bisection", 2048});
      A.set_values(a.diagonal, a.upper, a.lower);
      seen.push_back(applied(ex, m, A, Strategy::serial, r));
      seen.push_back(applied(ex, m, A, Strategy::level_set, r));
    }
    for (const Applied& other : seen) {
      EXPECT_EQ(other.rd, seen[0].rd) << name;
      EXPECT_EQ(other.z, seen[0].z) << name;
    }
  }
}

TYPED_TEST(FaceDiluOn, TakesNewValues) {
  const Mesh m = generate_mesh("mesh:tetrahedra:4x4x4");
  const auto ex = test::make_space<TypeParam>();
  LduOperator<TypeParam> A(ex, m, {"gather", "none"});
  const std::vector<double> r = test::random_values(std::size_t(m.cells), 7);
  const auto rd = test::to_device(ex, r), z = ex.template allocate<double>(r.size());
  for (const Strategy strategy : {Strategy::serial, Strategy::level_set}) {
    FaceDilu<TypeParam> M(A, m, strategy);
    for (const double speed : {0.0, 3.0, 0.0, 1.0}) {
      const sparse::Ldu a = test::transport_matrix(m, {1, {speed, speed, 0}});
      A.set_values(a.diagonal, a.upper, a.lower);
      M.factor(A);
      M.apply(rd.data(), z.data());
      expect_near(test::to_host(ex, z), test::reference_application(a, test::reference_reciprocals(a), r));
    }
  }
}

TYPED_TEST(FaceDiluOn, TwoFacesBetweenTheSameCellsBothCount) {
  Mesh m;
  m.cells = 3;
  m.owner = {0, 0, 0, 1};
  m.neighbour = {1, 1, 2, 2};
  sparse::Ldu a;
  a.cells = 3;
  a.owner = m.owner;
  a.neighbour = m.neighbour;
  a.diagonal = {4, 5, 6};
  a.upper = {-1, -0.5, -2, -1};
  a.lower = {-1.5, -0.25, -1, -2};
  const std::vector<double> r{1, 2, 3};
  const std::vector<double> rD = test::reference_reciprocals(a), w = test::reference_application(a, rD, r);
  for (const Strategy strategy : {Strategy::serial, Strategy::level_set}) {
    const auto ex = test::make_space<TypeParam>();
    LduOperator<TypeParam> A(ex, m, {"gather", "none"});
    A.set_values(a.diagonal, a.upper, a.lower);
    const Applied here = applied(ex, m, A, strategy, r);
    expect_near(here.rd, rD);
    expect_near(here.z, w);
  }
}

TYPED_TEST(FaceDiluOn, AZeroPivotIsNamedByTheMeshsCell) {
  const Mesh m = generate_mesh("mesh:box:9x8x7:random:4");
  for (const Strategy strategy : {Strategy::serial, Strategy::level_set}) {
    const auto ex = test::make_space<TypeParam>();
    LduOperator<TypeParam> A(ex, m, {"tiles", "bisection", 64});
    sparse::Ldu a = test::transport_matrix(m, {1, {0, 0, 0}});
    // The first cell in the operator's numbering has its diagonal for a pivot.
    const Index first = A.loops().cell_order()[0];
    ASSERT_NE(first, 0);
    a.diagonal[std::size_t(first)] = 0;
    A.set_values(a.diagonal, a.upper, a.lower);
    FaceDilu<TypeParam> M(A, m, strategy);
    try {
      M.factor(A);
      FAIL() << "nothing was thrown";
    } catch (const ZeroPivot& e) {
      EXPECT_NE(std::string(e.what()).find("zero pivot at cell " + std::to_string(first) + " (counting from 0)"),
                std::string::npos)
          << e.what();
    }
    a = test::transport_matrix(m, {1, {0, 0, 0}});
    A.set_values(a.diagonal, a.upper, a.lower);
    EXPECT_NO_THROW(M.factor(A));
  }
}

TYPED_TEST(FaceDiluOn, APivotThatBecomesZeroIsNamed) {
  Mesh m;
  m.cells = 4;
  m.owner = {0, 1, 2};
  m.neighbour = {1, 2, 3};
  const std::vector<double> diagonal{2, 3, 1, 5}, upper{2, 2, 1}, lower{2, 1, 1};  // d: 2, 1, 1 - 2 * 1 = -1; 6
  const std::vector<double> bad{2, 2, 1, 5};                                       // d: 2, 0
  for (const Strategy strategy : {Strategy::serial, Strategy::level_set}) {
    const auto ex = test::make_space<TypeParam>();
    LduOperator<TypeParam> A(ex, m, {"gather", "none"});
    FaceDilu<TypeParam> M(A, m, strategy);
    A.set_values(diagonal, upper, lower);
    M.factor(A);
    EXPECT_EQ(test::to_host(ex, M.reciprocals()), (std::vector<double>{0.5, 1, -1, 1.0 / 6}));
    A.set_values(bad, upper, lower);
    try {
      M.factor(A);
      FAIL() << "nothing was thrown";
    } catch (const ZeroPivot& e) {
      EXPECT_NE(std::string(e.what()).find("cell 1 "), std::string::npos) << e.what();
    }
  }
}

TYPED_TEST(FaceDiluOn, TakesMeshesWithoutFacesOrCells) {
  for (const Index cells : {0, 1, 5})
    for (const Strategy strategy : {Strategy::serial, Strategy::level_set}) {
      Mesh m;
      m.cells = cells;
      const auto ex = test::make_space<TypeParam>();
      LduOperator<TypeParam> A(ex, m, {"gather", "none"});
      A.set_values(std::vector<double>(std::size_t(cells), 4.0), {}, {});
      EXPECT_EQ(applied(ex, m, A, strategy, std::vector<double>(std::size_t(cells), 2.0)).z,
                std::vector<double>(std::size_t(cells), 0.5));
    }
}

TEST(FaceDilu, LevelsOfABoxAreItsDiagonals) {
  const Mesh m = generate_mesh("mesh:box:6x5x4");
  const exec::Host ex(2);
  const LduOperator<exec::Host> A(ex, m, {"gather", "none"});
  EXPECT_EQ((FaceDilu<exec::Host>(A, m, Strategy::level_set).levels()), 6 + 5 + 4 - 2);
  EXPECT_EQ((FaceDilu<exec::Host>(A, m, Strategy::level_set).description()), "13 levels of cells");
  EXPECT_EQ((FaceDilu<exec::Host>(A, m, Strategy::serial).triangular()->used), Strategy::serial);
}

TEST(FaceDilu, TheHostTakesLevelsWhereTheyFeedItsThreads) {
  const auto used = [](const char* name, int threads) {
    const Mesh m = generate_mesh(name);
    const LduOperator<exec::Host> A(exec::Host(threads), m, {"gather", "none"});
    return FaceDilu<exec::Host>(A, m).triangular()->used;
  };
  EXPECT_EQ(used("mesh:box:60x60x60:random", 1), Strategy::serial);
  EXPECT_EQ(used("mesh:box:60x60x60:random", 3), Strategy::level_set);
  EXPECT_EQ(used("mesh:box:60x60x60", 3), Strategy::serial);  // 178 levels
}

TEST(FaceDilu, RefusesOtherStrategiesAndOtherStorages) {
  const Mesh m = generate_mesh("mesh:box:3x3x3");
  const exec::Host ex(1);
  const LduOperator<exec::Host> A(ex, m, {});
  EXPECT_THROW((FaceDilu<exec::Host>(A, m, Strategy::sync_free)), Error);
  EXPECT_THROW((FaceDilu<exec::Host>(A, m, Strategy::tiled)), Error);
  EXPECT_THROW(precond::require_face_strategy(Strategy::serial, false), Error);
  FaceDilu<exec::Host> M(A, m);
  const CsrMatrix csr = sparse::to_csr(test::transport_matrix(m, {}));
  const test::SplitOn<exec::Host> on(ex, csr, "natural");
  EXPECT_THROW(M.factor(precond::Values<exec::Host, double>(on.matrix), 0.0), Error);
}

}  // namespace
}  // namespace krilu
