// SPDX-License-Identifier: Apache-2.0
// Products over faces against the plain loop over faces and against the product in CSR, in the caller's numbering.
#include "mesh/ldu_operator.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sparse/csr.hpp"
#include "support/ldu.hpp"
#include "support/support.hpp"

namespace krilu {
namespace {

using mesh::LduOperator;

template <class Space>
class LduOperatorOn : public ::testing::Test {};
TYPED_TEST_SUITE(LduOperatorOn, test::Spaces);

std::vector<double> plain_product(const sparse::Ldu& a, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  sparse::multiply(a, x.data(), y.data());
  return y;
}
std::vector<double> csr_product(const sparse::Ldu& a, const std::vector<double>& x) {
  const CsrMatrix m = sparse::to_csr(a);
  std::vector<double> y(x.size(), 0.0);
  for (Index i = 0; i < m.rows; ++i)
    for (Offset k = m.offsets[std::size_t(i)]; k < m.offsets[std::size_t(i) + 1]; ++k)
      y[std::size_t(i)] += m.values[std::size_t(k)] * x[std::size_t(m.columns[std::size_t(k)])];
  return y;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (const double v : b) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-13 * largest) << "entry " << i;
}

/// A x, and b - A x beside b and in place of b, by the operator, all in the caller's numbering.
struct Products {
  std::vector<double> product, residual, in_place;
};
template <class Space>
Products products(const Space& ex, const LduOperator<Space>& A, const std::vector<double>& b,
                  const std::vector<double>& x) {
  const std::size_t n = x.size();
  const auto xd = ex.template allocate<double>(n), bd = ex.template allocate<double>(n),
             yd = ex.template allocate<double>(n);
  A.to_cells(xd, x);
  A.to_cells(bd, b);
  Products out{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n)};
  A.apply(xd.data(), yd.data());
  A.from_cells(out.product, yd);
  A.residual(bd.data(), xd.data(), yd.data());
  A.from_cells(out.residual, yd);
  A.residual(bd.data(), xd.data(), bd.data());
  A.from_cells(out.in_place, bd);
  return out;
}

TYPED_TEST(LduOperatorOn, ProductsAreThoseOfThePlainLoopAndOfCsr) {
  for (const std::string& name : test::small_mesh_names())
    for (const bool symmetric : {true, false}) {
      const Mesh m = generate_mesh(name);
      const sparse::Ldu a = test::transport_matrix(m, {1, symmetric ? Vector3{0, 0, 0} : Vector3{3, -2, 1}});
      ASSERT_EQ(a.symmetric(), symmetric);
      const auto n = std::size_t(m.cells);
      const std::vector<double> x = test::random_values(n, 1), b = test::random_values(n, 2);
      const std::vector<double> product = plain_product(a, x);
      expect_near(csr_product(a, x), product);
      std::vector<double> residual(n);
      for (std::size_t i = 0; i < n; ++i) residual[i] = b[i] - product[i];
      for (const char* strategy : {"slices", "diagonal", "tiles", "gather", "colours", "atomics", "serial"})
        for (const char* renumber : {"none", "bisection", "growth"}) {
          SCOPED_TRACE(name + " " + strategy + " " + renumber);
          const TypeParam ex = test::make_space<TypeParam>();
          LduOperator<TypeParam> A(ex, m, {strategy, renumber, 256});
          ASSERT_EQ(A.rows(), m.cells);
          A.set_values(a.diagonal, a.upper, a.lower);
          const Products by_faces = products(ex, A, b, x);
          expect_near(by_faces.product, product);
          expect_near(by_faces.residual, residual);
          EXPECT_EQ(by_faces.residual, by_faces.in_place);
        }
    }
}

TYPED_TEST(LduOperatorOn, ProductsAreTheSameBitsForAnyNumberOfThreads) {
  const Mesh m = generate_mesh("mesh:box:40x30x20:random");
  const sparse::Ldu a = test::transport_matrix(m, {1, {1, 2, 3}});
  const std::vector<double> x = test::random_values(std::size_t(m.cells), 1);
  for (const char* strategy : {"slices", "diagonal", "tiles", "gather", "colours"}) {
    std::vector<Products> seen;
    for (const int threads : {1, 3}) {
      const auto ex = test::make_space<TypeParam>(threads);
      LduOperator<TypeParam> A(ex, m, {strategy, "bisection", 1000});
      A.set_values(a.diagonal, a.upper, a.lower);
      seen.push_back(products(ex, A, x, x));
    }
    EXPECT_EQ(seen[0].product, seen[1].product) << strategy;
    EXPECT_EQ(seen[0].residual, seen[1].residual) << strategy;
  }
}

TYPED_TEST(LduOperatorOn, WhichCellOwnsAFaceIsTheMeshsAffair) {
  Mesh m = generate_mesh("mesh:tetrahedra:5x4x3");
  sparse::Ldu a = test::transport_matrix(m, {1, {3, -2, 1}});
  const std::vector<double> x = test::random_values(std::size_t(m.cells), 1);
  const std::vector<double> product = plain_product(a, x);
  test::turn_some_faces(m, a);
  for (const char* strategy : {"slices", "tiles", "gather", "serial"}) {
    const auto ex = test::make_space<TypeParam>();
    LduOperator<TypeParam> A(ex, m, {strategy, "growth", 64});
    A.set_values(a.diagonal, a.upper, a.lower);
    expect_near(products(ex, A, x, x).product, product);
  }
}

TYPED_TEST(LduOperatorOn, ValuesChangeAsOftenAsTheyAreSet) {
  const Mesh m = generate_mesh("mesh:box:7x6x5");
  const auto ex = test::make_space<TypeParam>();
  LduOperator<TypeParam> A(ex, m, {"tiles", "growth", 64});
  const std::vector<double> x = test::random_values(std::size_t(m.cells), 1);
  for (const double speed : {0.0, 2.0, 5.0, 0.0}) {
    const sparse::Ldu a = test::transport_matrix(m, {1 + speed, {speed, 0, 0}});
    A.set_values(a.diagonal, a.upper, a.lower);
    EXPECT_EQ(A.symmetric(), speed == 0);
    expect_near(products(ex, A, x, x).product, plain_product(a, x));
  }
}

TYPED_TEST(LduOperatorOn, TakesMeshesWithoutFacesOrCells) {
  for (const Index cells : {0, 1, 5}) {
    Mesh m;
    m.cells = cells;
    const auto ex = test::make_space<TypeParam>();
    LduOperator<TypeParam> A(ex, m, {"gather", "none"});
    const std::vector<double> diagonal(std::size_t(cells), 3.0), x(std::size_t(cells), 2.0);
    A.set_values(diagonal, {}, {});
    EXPECT_EQ(products(ex, A, x, x).product, std::vector<double>(std::size_t(cells), 6.0));
  }
}

TEST(LduOperator, WrongLengthsAreRefusedAndLeaveTheValues) {
  const Mesh m = generate_mesh("mesh:box:3x3x3");
  const exec::Host ex(1);
  LduOperator<exec::Host> A(ex, m, {});
  const sparse::Ldu a = test::transport_matrix(m, {1, {1, 0, 0}});
  A.set_values(a.diagonal, a.upper, a.lower);
  const std::vector<double> x = test::random_values(27, 1);
  const std::vector<double> before = products(ex, A, x, x).product;
  const std::vector<double> few(5, 1.0);
  const auto refused = [&](auto diagonal, auto upper, auto lower, const std::string& sentence) {
    try {
      A.set_values(diagonal, upper, lower);
      FAIL() << "nothing was thrown";
    } catch (const Error& e) {
      EXPECT_EQ(e.what(), sentence);
    }
  };
  using Values = std::span<const double>;
  refused(Values(few), Values(a.upper), Values(a.lower), "diagonal has 5 values where the mesh has 27 cells");
  refused(Values(a.diagonal), Values(few), Values(a.lower), "upper has 5 values where the mesh has 54 internal faces");
  refused(Values(a.diagonal), Values(a.upper), Values(few), "lower has 5 values where the mesh has 54 internal faces");
  refused(Values(a.diagonal), Values(), Values(), "upper has 0 values where the mesh has 54 internal faces");
  EXPECT_EQ(products(ex, A, x, x).product, before);
}

}  // namespace
}  // namespace krilu
