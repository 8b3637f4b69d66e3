// SPDX-License-Identifier: Apache-2.0
// A preconditioner that is made as the engine makes it, and its dense counterpart in long double: M = (E + L) E^-1
// (E + U) held as E, L and U in the sequence of elimination, from the definitions and without any sparse storage.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "precond/registry.hpp"
#include "support/refusal.hpp"
#include "support/split_matrix.hpp"

namespace krilu::test {

inline const std::vector<std::string> orderings{"natural", "rcm", "multicolour", "metis:3"};

struct Setting {
  std::string ordering = "natural";
  int threads = 1;
  triangular::Strategy strategy = triangular::Strategy::serial;
  double shift = 0;
  int height = 0;
};

template <class Space>
class Factored {
 public:
  Factored(const std::string& name, const CsrView& a, const Setting& setting = {})
      : split_(make_space<Space>(setting.threads), a, setting.ordering, setting.height) {
    const precond::Context<Space> context{split_.space, setting.strategy,
                                          [rows = split_.order.rows](Index i) { return rows[std::size_t(i)]; }, a};
    precond_ = precond::make<Space, double>(name, context, split_.pattern);
    precond_->factor({split_.matrix, a}, setting.shift);
  }
  void factor(const CsrView& a, double shift = 0) {
    split_.fill(a);
    precond_->factor({split_.matrix, a}, shift);
  }
  std::vector<double> apply(const std::vector<double>& r) const {
    const auto in = split_.in(r), out = split_.in(std::vector<double>(r.size(), 1e300));
    precond_->apply(in.data(), out.data());
    return split_.out(out);
  }
  /// z = M^-1 r and A z, as Krylov methods ask for them; A the operator of the matrix itself, or a given one.
  std::pair<std::vector<double>, std::vector<double>> apply_with_product(
      const std::vector<double>& r, const sparse::Operator<Space, double>* given = nullptr) const {
    const std::vector<double> unwritten(r.size(), 1e300);
    const auto in = split_.in(r), z = split_.in(unwritten), Az = split_.in(unwritten);
    const sparse::SplitOperator<Space, double> own(split_.space, split_.matrix);
    precond_->apply(given ? *given : own, in.data(), z.data(), Az.data());
    return {split_.out(z), split_.out(Az)};
  }
  /// A M^-1 r alone.
  std::vector<double> product_alone(const std::vector<double>& r) const {
    const std::vector<double> unwritten(r.size(), 1e300);
    const auto in = split_.in(r), room = split_.in(unwritten), out = split_.in(unwritten);
    precond_->product(sparse::SplitOperator<Space, double>(split_.space, split_.matrix), in.data(), room.data(),
                      out.data());
    return split_.out(out);
  }
  std::vector<double> product(const std::vector<double>& x) const {
    const auto in = split_.in(x), out = split_.in(std::vector<double>(x.size(), 1e300));
    sparse::SplitOperator<Space, double>(split_.space, split_.matrix).apply(in.data(), out.data());
    return split_.out(out);
  }
  const SplitOn<Space>& split() const { return split_; }
  /// Row i holds M^-1 e_i.
  Dense inverse_columns() const {
    const auto n = std::size_t(split_.pattern->rows());
    Dense columns;
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> e(n, 0.0);
      e[i] = 1;
      columns.push_back(apply(e));
    }
    return columns;
  }
  /// M itself, from its inverse.
  Dense dense() const {
    const Dense columns = inverse_columns();
    const std::size_t n = columns.size();
    Dense inverse(n, std::vector<double>(n)), m = inverse;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) inverse[j][i] = columns[i][j];
    for (std::size_t j = 0; j < n; ++j) {
      std::vector<double> e(n, 0.0);
      e[j] = 1;
      const std::vector<double> column = dense_solve(inverse, e);
      for (std::size_t i = 0; i < n; ++i) m[i][j] = column[i];
    }
    return m;
  }
  const precond::Preconditioner<Space, double>& precond() const { return *precond_; }

 private:
  SplitOn<Space> split_;
  std::unique_ptr<precond::Preconditioner<Space, double>> precond_;
};

using LongDense = std::vector<std::vector<long double>>;

/// P A P^T of the ordering, dense.
inline LongDense reordered(const CsrView& a, const schedule::Order& order) {
  const auto n = std::size_t(a.rows);
  const Dense d = to_dense(a);
  LongDense p(n, std::vector<long double>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) p[i][j] = d[std::size_t(order[i])][std::size_t(order[j])];
  return p;
}

/// The dense counterpart. `shift` as the preconditioners have it.
class Reference {
 public:
  Reference(const std::string& name, const CsrView& a, const std::string& ordering = "natural", double shift = 0)
      : order_(schedule::order_by_name(ordering, a, sparse::adjacency(a))) {
    if (order_.empty()) order_ = natural_order(a.rows);
    m_ = reordered(a, order_);
    const std::size_t n = m_.size();
    if (shift != 0)
      for (std::size_t i = 0; i < n; ++i) {
        long double largest = 0;
        for (long double v : m_[i]) largest = std::max(largest, std::abs(v));
        m_[i][i] += (m_[i][i] < 0 ? -1 : 1) * shift * largest;
      }
    name == "ilu0" ? eliminate() : dilu();
  }

  std::vector<double> apply(const std::vector<double>& r) const {
    const std::size_t n = r.size();
    std::vector<long double> y(n);
    for (std::size_t i = 0; i < n; ++i) {  // (E + L) E^-1 y = r
      y[i] = r[std::size_t(order_[i])];
      for (std::size_t j = 0; j < i; ++j) y[i] -= m_[i][j] / m_[j][j] * y[j];
    }
    for (std::size_t i = n; i-- > 0;) {  // (E + U) z = y
      for (std::size_t j = i + 1; j < n; ++j) y[i] -= m_[i][j] * y[j];
      y[i] /= m_[i][i];
    }
    std::vector<double> z(n);
    for (std::size_t i = 0; i < n; ++i) z[std::size_t(order_[i])] = double(y[i]);
    return z;
  }

 private:
  /// e_i = a_ii - sum over j < i of a_ij a_ji / e_j; the triangles stay.
  void dilu() {
    for (std::size_t i = 0; i < m_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) m_[i][i] -= m_[i][j] * m_[j][i] / m_[j][j];
  }
  /// ILU(0), IKJ [Saad 2003, Algorithm 10.4], with l_ik kept in place of its multiplier l_ik / e_k.
  void eliminate() {
    const LongDense a = m_;
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t k = 0; k < i; ++k) {
        if (a[i][k] == 0) continue;
        for (std::size_t j = k + 1; j < a.size(); ++j)
          if (a[i][j] != 0) m_[i][j] -= m_[i][k] / m_[k][k] * m_[k][j];
      }
  }

  schedule::Order order_;
  LongDense m_;
};

/// An application gives the same bits under every strategy, team and trial of the chooser, and for all slices of more
/// than one row.
template <class Space>
void expect_same_bits(const std::string& name, std::uint64_t seed) {
  using triangular::Strategy;
  // 60 x 60: two colours of 1,800 rows each, enough for three threads to share a level.
  for (const CsrMatrix& a : {grid(60, 60), random_matrix({.rows = 2500, .per_row = 5, .seed = seed})}) {
    const std::vector<double> r = random_values(std::size_t(a.rows), seed + 1);
    for (const char* ordering : {"natural", "multicolour"})
      for (int height : {1, 4, 8}) {
        const std::vector<double> expected =
            Factored<exec::Host>(name, a, {.ordering = ordering, .height = std::min(height, 4)}).apply(r);
        for (int threads : {1, 3})
          for (Strategy s : {Strategy::serial, Strategy::level_set, Strategy::sync_free, Strategy::automatic}) {
            const Factored<Space> m(name, a,
                                    {.ordering = ordering, .threads = threads, .strategy = s, .height = height});
            for (int again = 0; again < (s == Strategy::automatic ? 7 : 1); ++again)
              ASSERT_EQ(m.apply(r), expected) << to_string(s) << ", " << threads << " threads, height " << height;
          }
      }
  }
}

/// Factoring new values leaves nothing of the old ones, and the old ones give the old factor again.
template <class Space>
void expect_fresh_factor(const std::string& name, const std::string& ordering, std::uint64_t seed) {
  const CsrMatrix a = random_matrix({.rows = 300, .per_row = 5, .seed = seed});
  CsrMatrix b = a;
  for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] *= 1 + 0.2 * double(k % 5);
  const std::vector<double> r = random_values(300, seed + 1);
  Factored<Space> m(name, a, {.ordering = ordering, .threads = 2});
  const std::vector<double> first = m.apply(r);
  m.factor(b);
  EXPECT_EQ(bits(m.apply(r)), bits(Factored<Space>(name, b, {.ordering = ordering}).apply(r)));
  EXPECT_NE(m.apply(r), first);
  m.factor(a);
  EXPECT_EQ(bits(m.apply(r)), bits(first)) << "updates were kept from the values before";
}

}  // namespace krilu::test
