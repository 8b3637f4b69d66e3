// SPDX-License-Identifier: Apache-2.0
#include "newton/part.hpp"

#include <string>
#include <utility>

#include "base/together.hpp"
#include "krilu/error.hpp"
#include "precond/registry.hpp"
#include "precond/spec.hpp"
#include "sparse/csr.hpp"

namespace krilu::newton {

namespace {

CsrMatrix checked_pattern(const Equations& equations) {
  CsrMatrix a = equations.pattern();
  if (a.rows != equations.count() || a.cols != equations.rows())
    throw Error("the equations have " + std::to_string(equations.count()) + " rows and " +
                std::to_string(equations.rows()) + " unknowns, and their pattern has " + std::to_string(a.rows) +
                " rows and " + std::to_string(a.cols) + " columns: it has to have as many");
  return a;
}

}  // namespace

Part::Part(const Equations& equations, std::shared_ptr<Communicator> ranks, const Options& linear)
    : ranks_(ranks && ranks->size() > 1 ? std::move(ranks) : nullptr), first_(equations.first()) {
  if (!ranks_) {
    if (equations.count() != equations.rows())
      throw Error(
          "the equations are rows of a larger system, whose other rows are on other ranks: solve with a "
          "communicator of them");
    block_ = checked_pattern(equations);
    CsrView shape = block_;
    shape.values = nullptr;
    require_valid(shape);
    entries_ = block_.nnz();
    block_.values = {};
    return;
  }
  CsrMatrix pattern;
  together(*ranks_, [&] { pattern = checked_pattern(equations); });
  entries_ = pattern.nnz();
  divide(pattern, equations.rows(), linear);
}

void Part::divide(const CsrMatrix& pattern, std::int64_t all, const Options& linear) {
  const exec::Host host(linear.threads);
  RowsMatrix rows;
  together(*ranks_, [&] {
    rows = {
        .all = all, .first = first_, .count = pattern.rows, .offsets = pattern.offsets, .columns = {}, .values = {}};
    rows.columns.assign(pattern.columns.begin(), pattern.columns.end());
    rows.values.assign(pattern.columns.size(), 0.0);
  });
  halo_ = std::make_shared<distributed::Halo>(ranks_, rows, host);
  if (precond::kind_of(linear.precond) == "ras")
    if (const int depth = precond::parse_spec(linear.precond).overlap; depth > 0) {
      if (linear.scaling == "matching")
        throw Error(
            "scaling matching looks at values when it analyses, and Newton's method has none yet: take rows or both");
      overlap_ = std::make_shared<distributed::Overlap>(ranks_, rows, halo_->ranges(), depth);
      offsets_ = pattern.offsets;
    }
  rows = {};
  block_ = halo_->take_block();
  block_.values = {};
  window_ = std::make_shared<distributed::Window>(ranks_, *halo_);
  together(*ranks_, [&] {
    inside_.reserve(std::size_t(block_.nnz()));
    for (std::size_t k = 0; k < pattern.columns.size(); ++k) {
      const Index j = pattern.columns[k] - first_;
      (j >= 0 && j < block_.rows ? inside_ : outside_).push_back(Offset(k));
    }
  });
}

void Part::take_overlap(const double* values) {
  overlap_->refresh({.first = first_, .count = block_.rows, .offsets = offsets_.data(), .values = values});
}

CsrMatrix Part::pattern_seen(const Equations& equations) const {
  CsrMatrix a = equations.pattern();
  a.cols = seen();
  for (Index& column : a.columns) column -= first_seen();
  return a;
}

}  // namespace krilu::newton
