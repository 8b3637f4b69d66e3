// SPDX-License-Identifier: Apache-2.0
// Restricted additive Schwarz across ranks: each solves with its own rows and those of other ranks beside them, and of
// what comes out keeps its own.
//   r' = r and the others' r beside;  M' z' = r';  z = z' at the rank's own rows
// Paper: Cai and Sarkis, A restricted additive Schwarz preconditioner for general sparse linear systems (1999).
// Cost beside M': 8 bytes a row beside sent and received, and four vectors read or written.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "krilu/ranks.hpp"
#include "precond/preconditioner.hpp"
#include "solver/links.hpp"
#include "solver/plan.hpp"

namespace krilu::solver {

/// Vectors between the rank's own rows, in the solver's order, and those of RowsBeside::matrix(), in its.
template <class Space>
class Extension {
 public:
  /// links: of the rows beside; they outlive this. place: of the own rows in the solver's order.
  Extension(Space space, Links<Space>& links, const Buffer<Index>& place)
      : ex_(std::move(space)), links_(links), place_(ex_.template allocate<Index>(place.size())) {
    ex_.copy_in(place_, place.data(), place.size());
  }
  /// to = r, and behind it what the other ranks have at the rows beside. An exchange, as Links knows it.
  template <class T>
  void extend(const T* r, const exec::Array<T>& to) const {
    const auto out = to.view();
    const auto own = Index(place_.size());
    const Index* const place = place_.data();
    ex_.for_each(
        to.size(), KRILU_FN(Index i) { out[i] = i < own ? r[place[i]] : T(0); });
    links_.start(to.data(), nullptr);
    links_.finish(to.data(), nullptr, 1);
  }
  /// z = from at the own rows.
  template <class T>
  void restrict_to_own(const exec::Array<T>& from, T* z) const {
    const auto in = from.view();
    const Index* const place = place_.data();
    ex_.for_each(
        place_.size(), KRILU_FN(Index i) { z[place[i]] = in[i]; });
  }
  std::size_t bytes() const { return place_.bytes(); }

 private:
  Space ex_;
  Links<Space>& links_;
  exec::Array<Index> place_;
};

/// z = M^-1 r by M', which is of `rows` rows.
template <class Space, class T>
class ByExtension {
 public:
  ByExtension(const Space& space, std::shared_ptr<const Extension<Space>> extension, std::size_t rows)
      : extension_(std::move(extension)), r_(space.template allocate<T>(rows)), z_(space.template allocate<T>(rows)) {}
  void apply(precond::Preconditioner<Space, T>& M, const T* r, T* z) const {
    extension_->extend(r, r_);
    M.apply(r_.data(), z_.data());
    extension_->restrict_to_own(z_, z);
  }
  std::size_t bytes() const { return r_.bytes() + z_.bytes(); }

 private:
  std::shared_ptr<const Extension<Space>> extension_;
  exec::Array<T> r_, z_;
};

/// In single precision, made once from the one in double.
template <class Space>
class RoundedExtended final : public precond::Preconditioner<Space, float> {
 public:
  RoundedExtended(std::unique_ptr<precond::Preconditioner<Space, float>> M, ByExtension<Space, float> by)
      : M_(std::move(M)), by_(std::move(by)) {}
  using precond::Preconditioner<Space, float>::apply;
  void factor(const precond::Values<Space, float>&, double) override {}
  void apply(const float* r, float* z) override { by_.apply(*M_, r, z); }
  std::size_t bytes() const override { return M_->bytes() + by_.bytes(); }
  std::optional<triangular::Report> triangular() const override { return M_->triangular(); }
  int trials_left() const override { return M_->trials_left(); }

 private:
  std::unique_ptr<precond::Preconditioner<Space, float>> M_;
  ByExtension<Space, float> by_;
};

/// Source (system.hpp, system.cuh) is the space's own: the matrix that M' is made of.
template <class Space, class Source>
class Extended final : public precond::Preconditioner<Space, double> {
 public:
  /// links: of beside->coupling(); place: as Extension has it.
  Extended(Space space, std::shared_ptr<RowsBeside> beside, Links<Space>& links, const Buffer<Index>& place,
           const Plan& plan, triangular::Strategy strategy)
      : ex_(std::move(space)),
        beside_(std::move(beside)),
        source_(ex_, beside_->matrix()),
        M_(source_.preconditioner(plan, beside_->matrix(), strategy)),
        rows_(std::size_t(beside_->matrix().rows)),
        extension_(std::make_shared<const Extension<Space>>(ex_, links, place)),
        by_(ex_, extension_, rows_),
        own_(Index(place.size())),
        row_(ex_.template allocate<double>(0)),
        column_(ex_.template allocate<double>(0)) {}
  void factor(const precond::Values<Space, double>&, double shift) override {
    const CsrView a = beside_->matrix();
    source_.set_values(a);
    M_->factor(source_.values(a), shift);
    source_.forget_values();
  }
  using precond::Preconditioner<Space, double>::apply;
  void apply(const double* r, double* z) override { by_.apply(*M_, r, z); }
  /// The rows beside are scaled as their owners scale them.
  std::unique_ptr<precond::Preconditioner<Space, float>> rounded(
      const sparse::Rounding& rounding, const std::shared_ptr<const sparse::RoundedMatrix>&) const override {
    sparse::Rounding extended = rounding;
    if (rounding.row) extended.row = row_.data();
    if (rounding.column) extended.column = column_.data();
    return std::make_unique<RoundedExtended<Space>>(M_->rounded(extended, nullptr),
                                                    ByExtension<Space, float>(ex_, extension_, rows_));
  }
  bool reaches_other_ranks() const override { return true; }
  std::size_t bytes() const override {
    return source_.bytes() + M_->bytes() + extension_->bytes() + by_.bytes() + row_.bytes() + column_.bytes();
  }
  std::string description() const override {
    const std::string own = M_->description();
    return std::to_string(Index(rows_) - own_) + " rows of other ranks beside" + (own.empty() ? "" : "; ") + own;
  }
  std::optional<triangular::Report> triangular() const override { return M_->triangular(); }
  int trials_left() const override { return M_->trials_left(); }

  void take_scales(std::span<const double> row, std::span<const double> column) override {
    const std::vector<double> rows = exchanged(row), columns = exchanged(column);
    for (auto [from, to] : {std::pair{&rows, &row_}, std::pair{&columns, &column_}}) {
      *to = ex_.template allocate<double>(from->size());
      ex_.copy_in(*to, from->data(), from->size());
    }
  }

 private:
  /// With those of the rows beside.
  std::vector<double> exchanged(std::span<const double> own) const {
    std::vector<double> all(own.begin(), own.end());
    all.resize(rows_, 0.0);
    const auto coupling = beside_->coupling();
    const std::span<const Index> at = coupling->rows();
    std::vector<double> there(at.size());
    for (std::size_t k = 0; k < at.size(); ++k) there[k] = all[std::size_t(at[k])];
    coupling->start(there.data());
    coupling->finish(there.data());
    for (std::size_t k = 0; k < at.size(); ++k) all[std::size_t(at[k])] += there[k];
    return all;
  }

  Space ex_;
  std::shared_ptr<RowsBeside> beside_;
  Source source_;
  std::unique_ptr<precond::Preconditioner<Space, double>> M_;
  std::size_t rows_;  // of M'
  std::shared_ptr<const Extension<Space>> extension_;
  ByExtension<Space, double> by_;
  Index own_;
  exec::Array<double> row_, column_;  // scales of M'
};

}  // namespace krilu::solver
