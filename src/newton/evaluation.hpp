// SPDX-License-Identifier: Apache-2.0
// F and its Jacobian where the vectors live: the caller's own, or by differences of F. Over ranks, of a rank's rows:
// the unknowns of other ranks that they name come before each F; entries of the Jacobian, differences too, then need no
// other rank.
//
// Sources: Curtis, Powell, Reid, On the estimation of sparse Jacobian matrices (1974), for differences by colours of
// columns; Brown, Saad, Hybrid Krylov methods for nonlinear systems of equations (1990), for J v without J.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "exec/host.hpp"
#include "krilu/equations.hpp"
#include "newton/part.hpp"
#include "schedule/ordering.hpp"
#include "solver/links.hpp"
#include "sparse/split.hpp"

namespace krilu::newton {

inline constexpr double root_of_rounding =
    1.4901161193847656e-8;  // sqrt(2^-52): where both errors of a difference meet

template <class Space>
class Evaluation {
 public:
  /// member: the space in its team, connected where it can be. Collective.
  Evaluation(Space space, const Space& member, const Equations& equations, const Part& part)
      : ex_(std::move(space)),
        member_(member),
        equations_(equations),
        part_(part),
        n_(std::size_t(part.rows())),
        values_(ex_.template allocate<double>(std::size_t(part.entries()))),
        sums_(ex_.template allocate<double>(2)) {
    if (part_.alone()) return;
    seen_ = ex_.template allocate<double>(std::size_t(part_.seen()));
    links_ = make_links(ex_, Team{part_.team().ranks, part_.window(), {}}, solver::InOrder{});
    links_->connect(member_);
  }

  /// F(x). Vectors of the space, of the rank's rows.
  void residual(const double* x, double* F) {
    see(x);
    evaluate(alone() ? x : seen_.data(), F);
  }
  /// J(x) by the equations' own formulas, into values().
  void own_jacobian(const double* x) {
    see(x);
    if (!alone() && std::exchange(first_jacobian_, false)) {
      // The equations may ask the driver for memory, which may wait for kernels that wait for another rank.
      ex_.synchronise();
      member_.meet();
    }
    const View<const double> seen = View<const double>{alone() ? x : seen_.data()}.numbered_from(part_.first_seen());
    if constexpr (on_gpu)
      equations_.jacobian_on_gpu(ex_.stream(), seen, {values_.data()});
    else
      ex_.enqueue(
          [eq = &equations_, n = n_, first = part_.first(), seen, values = values_.data()](const exec::Host& host) {
            host.for_each_range(
                n, [=](Index begin, Index end) { eq->jacobian(first + begin, first + end, seen, {values}); });
          });
  }

  /// Prepares jacobian_by_differences.
  void analyse_differences() {
    const CsrMatrix a = part_.pattern_seen(equations_);
    const std::vector<Index> colour = schedule::colour_columns(a, colours_);
    // Entries by the colour of their column, rows ascending within.
    first_.assign(std::size_t(colours_) + 1, 0);
    for (const Index c : a.columns) ++first_[std::size_t(colour[std::size_t(c)]) + 1];
    for (std::size_t c = 1; c < first_.size(); ++c) first_[c] += first_[c - 1];
    std::vector<Offset> next(first_.begin(), first_.end()), entry(a.columns.size());
    std::vector<Index> row(a.columns.size());
    for (Index i = 0; i < a.rows; ++i)
      for (Offset k = a.offsets[std::size_t(i)]; k < a.offsets[std::size_t(i) + 1]; ++k) {
        const Offset to = next[std::size_t(colour[std::size_t(a.columns[std::size_t(k)])])]++;
        entry[std::size_t(to)] = k;
        row[std::size_t(to)] = i;
      }
    const auto bring = [&](auto& to, const auto& from) {
      to = ex_.template allocate<std::decay_t<decltype(from[0])>>(from.size());
      ex_.copy_in(to, from.data(), from.size());
    };
    bring(colour_, colour);
    bring(entry_, entry);
    bring(row_, row);
    bring(column_, a.columns);
    prepare_products();
  }
  Index colours() const { return colours_; }
  /// J(x) by one difference of F a colour, into values(). F: F(x).
  void jacobian_by_differences(const double* x, const double* F) {
    see(x);
    measure(x);
    const double* const seen = alone() ? x : seen_.data();
    for (Index c = 0; c < colours_; ++c) {
      move(c, seen);
      evaluate(moved_.data(), there_.data());
      take_difference(c, seen, F);
    }
  }

  /// Prepares products by differences.
  void prepare_products() {
    moved_ = ex_.template allocate<double>(std::size_t(part_.seen()));
    there_ = ex_.template allocate<double>(n_);
  }
  /// The place of the next products: x, and F(x); both stay until there is another.
  void linearise(const double* x, const double* F) {
    x_ = x;
    F_ = F;
    measure(x);
  }
  /// y = J(x) v, by F(x + h v), of all ranks.
  void product(const double* v, double* y) {
    along(v);
    residual(moved_.data(), there_.data());
    difference_along(y);
  }

  const exec::Array<double>& values() const { return values_; }
  std::size_t bytes() const {
    return values_.bytes() + sums_.bytes() + colour_.bytes() + entry_.bytes() + row_.bytes() + column_.bytes() +
           moved_.bytes() + there_.bytes() + seen_.bytes() + (links_ ? links_->bytes() : 0);
  }

  // Parts of the above: public because nvcc takes kernels in public members only.

  /// What rows see of x, of all ranks.
  void see(const double* x) {
    if (alone()) return;
    const auto seen = seen_.view();
    const Index own = part_.window()->own(), end = own + Index(n_);
    ex_.for_each(
        seen_.size(), KRILU_FN(Index i) { seen[i] = i >= own && i < end ? x[i - own] : 0.0; });
    links_->start(seen_.data(), nullptr);
    links_->finish(seen_.data(), nullptr, 1);
  }

  /// sums_[0] = the root mean square of x, 1 where x is zero.
  void measure(const double* x) {
    const auto size = sums_.scalar(0);
    const auto n = double(member_.total(n_));
    member_.reduce(
        n_, KRILU_FN(Index i) { return x[i] * x[i]; },
        KRILU_FN(double sum) { size() = sum > 0 ? std::sqrt(sum / n) : 1.0; });
  }
  /// How far unknown x goes for its difference: a part of itself, or of what the others are like.
  static KRILU_INLINE double distance(double x, double size) {
    const double scale = x < 0 ? (-x > 1e-2 * size ? x : -1e-2 * size) : (x > 1e-2 * size ? x : 1e-2 * size);
    return x + root_of_rounding * scale - x;
  }
  void move(Index c, const double* x) {
    const auto moved = moved_.view();
    const auto colour = colour_.view();
    const auto size = sums_.scalar(0);
    ex_.for_each(
        colour_.size(), KRILU_FN(Index j) { moved[j] = colour[j] == c ? x[j] + distance(x[j], size()) : x[j]; });
  }
  void take_difference(Index c, const double* x, const double* F) {
    const auto there = there_.view(), values = values_.view();
    const auto column = column_.view();
    const Offset first = first_[std::size_t(c)], last = first_[std::size_t(c) + 1];
    const Offset* const entry = entry_.data() + first;
    const Index* const row = row_.data() + first;
    const auto size = sums_.scalar(0);
    ex_.for_each(
        std::size_t(last - first), KRILU_FN(Index e) {
          const Offset k = entry[e];
          const Index i = row[e];
          values[k] = (there[i] - F[i]) / distance(x[column[k]], size());
        });
  }
  /// moved = x + h v, h = sqrt(rounding) (1 + |x|) / |v|, both in the root mean square.
  void along(const double* v) {
    const auto moved = moved_.view();
    const auto size = sums_.scalar(0), h = sums_.scalar(1);
    const auto n = double(member_.total(n_));
    const double* const x = x_;
    member_.reduce(
        n_, KRILU_FN(Index i) { return v[i] * v[i]; },
        KRILU_FN(double sum) { h() = sum > 0 ? root_of_rounding * (1 + size()) / std::sqrt(sum / n) : 1.0; });
    ex_.for_each(
        n_, KRILU_FN(Index i) { moved[i] = x[i] + h() * v[i]; });
  }
  void difference_along(double* y) {
    const auto there = there_.view();
    const auto h = sums_.scalar(1);
    const double* const F = F_;
    ex_.for_each(
        n_, KRILU_FN(Index i) { y[i] = (there[i] - F[i]) / h(); });
  }

 private:
  static constexpr bool on_gpu = requires(const Space& s) { s.stream(); };

  bool alone() const { return part_.alone(); }
  /// F of what rows see.
  void evaluate(const double* seen_from, double* F) {
    const View<const double> seen = View<const double>{seen_from}.numbered_from(part_.first_seen());
    const View<double> out = View<double>{F}.numbered_from(part_.first());
    if constexpr (on_gpu)
      equations_.residual_on_gpu(ex_.stream(), seen, out);
    else
      ex_.enqueue([eq = &equations_, n = n_, first = part_.first(), seen, out](const exec::Host& host) {
        host.for_each_range(n, [=](Index begin, Index end) { eq->residual(first + begin, first + end, seen, out); });
      });
  }

  Space ex_, member_;
  const Equations& equations_;
  const Part& part_;
  std::size_t n_;
  exec::Array<double> values_;  // of the Jacobian, as pattern() has them
  exec::Array<double> sums_;
  Index colours_ = 0;
  exec::Array<Index> colour_, column_;  // of each unknown that is seen; of each entry, counted from the first seen
  std::vector<Offset> first_;           // colours + 1: of the next two
  exec::Array<Offset> entry_;           // by colour of their column
  exec::Array<Index> row_;              // of those
  exec::Array<double> moved_, there_;
  exec::Array<double> seen_;  // over ranks
  bool first_jacobian_ = true;
  std::unique_ptr<solver::Links<Space>> links_;
  const double* x_ = nullptr;
  const double* F_ = nullptr;
};

}  // namespace krilu::newton
