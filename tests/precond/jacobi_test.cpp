// SPDX-License-Identifier: Apache-2.0
// Jacobi and `none` against z_i = r_i / a_ii and z = r, on all spaces and teams; Jacobi's refusals by the caller's row;
// and the registry: names, which of them sweep triangles, and what each says of its memory and runner.
#include <fmt/format.h>

#include "precond/factored.hpp"

namespace krilu::test {
namespace {

template <class Space>
class JacobiTest : public ::testing::Test {};
TYPED_TEST_SUITE(JacobiTest, Spaces);

TYPED_TEST(JacobiTest, DividesByTheDiagonal) {
  for (Index n : {1, 37, 7000})
    for (const char* ordering : {"natural", "multicolour"})
      for (int threads : {1, 3}) {
        CsrMatrix a = random_matrix({.rows = n, .per_row = 3, .symmetric_pattern = false, .seed = 141});
        for (std::size_t k = 0; k < a.values.size(); k += 2) a.values[k] = -a.values[k];
        const std::vector<double> r = random_values(std::size_t(n), 142);
        const std::vector<double> z =
            Factored<TypeParam>("jacobi", a, {.ordering = ordering, .threads = threads}).apply(r);
        for (Index i = 0; i < n; ++i)
          for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
            if (a.columns[std::size_t(k)] == i) {
              const double expected = r[std::size_t(i)] / a.values[std::size_t(k)];
              ASSERT_NEAR(z[std::size_t(i)], expected, 3e-16 * std::abs(expected)) << "row " << i;
            }
      }
}

TYPED_TEST(JacobiTest, NoneChangesNothing) {
  const CsrMatrix a = random_matrix({.rows = 3000, .per_row = 3, .seed = 143});
  const std::vector<double> r = random_values(3000, 144);
  const Factored<TypeParam> none("none", a, {.ordering = "rcm", .threads = 3});
  EXPECT_EQ(bits(none.apply(r)), bits(r));
  EXPECT_EQ(none.precond().bytes(), 0u);
}

TYPED_TEST(JacobiTest, NamesTheFirstRowWithoutADiagonal) {
  for (const char* ordering : {"natural", "rcm", "multicolour"}) {
    Dense d = to_dense(grid(12, 12));
    d[100][100] = 0;  // missing
    CsrMatrix a = from_dense(d);
    const auto refusal = [&](const CsrMatrix& m) {
      return complaint([&] { Factored<TypeParam>("jacobi", m, {.ordering = ordering, .threads = 2}); });
    };
    EXPECT_EQ(refusal(a),
              "jacobi: the diagonal is zero or missing in 1 row, the first is row 101 (counting from 1): use --precond "
              "none");
    EXPECT_THROW(Factored<TypeParam>("jacobi", a), ZeroPivot);
    for (Index i : {40, 77})  // stored zeros
      for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k)
        if (a.columns[std::size_t(k)] == i) a.values[std::size_t(k)] = 0;
    EXPECT_EQ(refusal(a),
              "jacobi: the diagonal is zero or missing in 3 rows, the first is row 41 (counting from 1): use --precond "
              "none");
  }
}

TYPED_TEST(JacobiTest, NewValuesGiveFreshResults) {
  CsrMatrix a = grid(10, 10);
  const std::vector<double> r = random_values(100, 145);
  Factored<TypeParam> m("jacobi", a);
  const std::vector<double> first = m.apply(r);
  CsrMatrix zero = a;
  zero.values[0] = 0;
  EXPECT_THROW(m.factor(zero), ZeroPivot);
  for (double& v : a.values) v *= 2;
  m.factor(a);
  std::vector<double> half = first;
  for (double& v : half) v /= 2;
  EXPECT_EQ(bits(m.apply(r)), bits(half));
}

TYPED_TEST(JacobiTest, EveryPreconditionerTakesNoRows) {
  CsrMatrix none;
  none.offsets.push_back(0);
  for (const std::string& name : precond::names())
    for (int threads : {1, 3}) {
      EXPECT_EQ(Factored<TypeParam>(name, none, {.threads = threads}).apply({}), std::vector<double>{}) << name;
    }
}

TYPED_TEST(JacobiTest, AProductAloneIsTheOneThatComesWithZ) {
  const CsrMatrix a = grid(20, 20, true);
  const std::vector<double> r = random_values(400, 146);
  for (const std::string& name : precond::names()) {
    const Factored<TypeParam> m(name, a);
    EXPECT_EQ(bits(m.product_alone(r)), bits(m.apply_with_product(r).second)) << name;
    EXPECT_EQ(m.precond().folds().scale != nullptr, name == "jacobi") << name;
  }
}

TYPED_TEST(JacobiTest, WhatTheRegistrySaysIsSo) {
  EXPECT_EQ(precond::names(), (std::vector<std::string>{"none", "jacobi", "dilu", "dic", "ilu0", "ic0", "iluk", "ilut",
                                                        "block-ilu", "ras"}));
  const CsrMatrix a = grid(20, 20, true);
  for (const std::string& name : precond::names()) {
    const Factored<TypeParam> m(name, a);
    EXPECT_EQ(m.precond().triangular().has_value(), precond::sweeps_of(name) != precond::Sweeps::none) << name;
    if (name != "none") {
      EXPECT_GE(m.precond().bytes(), 400 * sizeof(double)) << name;
    }
  }
  const auto bytes = [&](const char* name) { return Factored<TypeParam>(name, a, {.height = 1}).precond().bytes(); };
  EXPECT_EQ(bytes("ilu0") - bytes("dilu"), std::size_t(a.nnz() - a.rows) * sizeof(double))
      << "values of both triangles";
  EXPECT_EQ(complaint([] { precond::require_known("dilo"); }),
            "unknown preconditioner 'dilo': did you mean 'dilu'? It is one of none, jacobi, dilu, dic, ilu0, ic0, "
            "iluk, ilut, block-ilu, ras");
  EXPECT_THROW(Factored<TypeParam>("amg", a), Error);
  EXPECT_FALSE(precond::is_triangular("amg"));
}

}  // namespace
}  // namespace krilu::test
