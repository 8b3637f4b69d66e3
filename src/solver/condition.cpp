// SPDX-License-Identifier: Apache-2.0
// ||A|| is summed up; ||A^-1|| is estimated from products with A^-1 and A^-T, which are solved systems: by an LU
// factorisation, or by GMRES where there is none.
#include "solver/condition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "krilu/solver.hpp"
#include "schedule/nested_dissection.hpp"
#include "solver/block_norm_estimate.hpp"
#include "solver/sparse_lu.hpp"
#include "sparse/csr.hpp"

namespace krilu::solver {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double norm_of(const CsrView& a, ConditionNorm norm) {
  std::vector<double> sums(std::size_t(a.rows), 0);
  for (Index i = 0; i < a.rows; ++i)
    for (Offset p = a.offsets[i]; p < a.offsets[i + 1]; ++p) {
      const double v = a.values[p];
      if (!std::isfinite(v))
        throw Error(fmt::format("row {} holds {} (counting from 1): such a matrix has no condition number", i + 1,
                                std::isnan(v) ? "NaN" : "infinity"));
      sums[std::size_t(norm == ConditionNorm::infinity ? i : a.columns[p])] += std::abs(v);
    }
  return sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end());
}

/// a without its stored zeros.
CsrMatrix without_zeros(const CsrView& a) {
  CsrMatrix b;
  b.rows = b.cols = a.rows;
  b.offsets.push_back(0);
  for (Index i = 0; i < a.rows; ++i) {
    for (Offset p = a.offsets[i]; p < a.offsets[i + 1]; ++p)
      if (a.values[p] != 0) {
        b.columns.push_back(a.columns[p]);
        b.values.push_back(a.values[p]);
      }
    b.offsets.push_back(Offset(b.columns.size()));
  }
  return b;
}

/// A^-1 by GMRES, one right-hand side after another.
class ByGmres {
 public:
  /// basis_bytes: what the basis may take.
  ByGmres(const CsrView& a, int threads, double basis_bytes)
      : a_(a), host_(threads), residual_(std::size_t(a.rows)), solution_(std::size_t(a.rows)) {
    options_.solver = "gmres";
    options_.precond = "ilu0";
    options_.device = "host";
    options_.threads = threads;
    options_.restart = int(std::clamp(basis_bytes / (sizeof(double) * std::max<double>(1, a.rows)), 30.0, 300.0));
    options_.rtol = 1e-6;
    options_.max_iterations = 3000;
  }

  void solve(double* block, Index columns) {
    for (Index c = 0; c < columns; ++c) solve({block + std::size_t(c) * std::size_t(a_.rows), std::size_t(a_.rows)});
  }
  bool used_ilu0() const { return used_ilu0_; }
  bool used_none() const { return used_none_; }

 private:
  static constexpr double enough = 1e-2;  // of a residual

  void solve(std::span<double> b) {
    double left = infinite;
    if (options_.precond == "ilu0") {
      left = attempt(b);
      used_ilu0_ = used_ilu0_ || left <= enough;
      if (left > enough) {
        options_.precond = "none";
        solver_.reset();
      }
    }
    if (options_.precond == "none" && left > enough) {
      left = attempt(b);
      used_none_ = true;
    }
    if (left > enough)
      throw Error(
          fmt::format("GMRES({}) did not solve a system with the matrix: {:.0f}% of the right-hand side are left, "
                      "with ilu0 and without",
                      options_.restart, 100 * std::min(left, 1.0)));
    // solution_ belongs to another right-hand side, A solution_. Scaled to b's norm it makes the ratio of the two norms
    // a true one, and the estimate a lower bound whatever the residual.
    sparse::multiply(host_, a_, solution_.data(), residual_.data());
    double given = 0, met = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      given += std::abs(b[i]);
      met += std::abs(residual_[i]);
    }
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = solution_[i] * (given / met);
  }

  /// The relative residual; infinity where the preconditioner cannot be formed.
  double attempt(std::span<const double> b) {
    if (!solver_) {
      solver_.emplace(options_);
      try {
        solver_->setup(a_);
      } catch (const Error&) {
        if (options_.precond == "none") throw;
        return infinite;
      }
    }
    std::fill(solution_.begin(), solution_.end(), 0.0);
    const double left = solver_->solve(b, solution_).relative_residual;
    return std::isfinite(left) ? left : infinite;
  }

  CsrView a_;
  exec::Host host_;
  Options options_;
  std::optional<Solver> solver_;
  Buffer<double> residual_, solution_;
  bool used_ilu0_ = false, used_none_ = false;
};

BlockNorm inverse_norm_directly(const SparseLu& lu, Index n, ConditionNorm norm) {
  const auto with = [&lu](bool transposed) {
    return [&lu, transposed](double* block, Index columns) { lu.solve(block, columns, transposed); };
  };
  const bool rows = norm == ConditionNorm::infinity;
  return estimate_norm1(n, with(rows), with(!rows));
}

BlockNorm inverse_norm_by_gmres(const CsrView& a, ConditionNorm norm, int threads, std::size_t memory,
                                std::string& by) {
  const CsrMatrix transpose = sparse::transpose(a);
  const double for_a_basis = double(memory) / 4;  // of two
  ByGmres plain(a, threads, for_a_basis), transposed(transpose, threads, for_a_basis);
  const auto with = [](ByGmres& gmres) {
    return [&gmres](double* block, Index columns) { gmres.solve(block, columns); };
  };
  const bool rows = norm == ConditionNorm::infinity;
  const BlockNorm found = estimate_norm1(a.rows, with(rows ? transposed : plain), with(rows ? plain : transposed));
  const bool ilu0 = plain.used_ilu0() || transposed.used_ilu0(), none = plain.used_none() || transposed.used_none();
  by = ilu0 && none ? "krilu gmres with ilu0 and without" : ilu0 ? "krilu gmres with ilu0" : "krilu gmres";
  return found;
}

/// Why there is no factorisation, as the beginning of a sentence.
std::string reason(const SparseLu& lu) {
  if (lu.outcome() == SparseLu::Outcome::missing) return "krilu was built without SuperLU";
  return fmt::format("{} has no room for the factors", SparseLu::name());
}

}  // namespace

Condition estimate_condition(const CsrView& given, ConditionNorm norm, int threads, ConditionBy by,
                             std::size_t memory) {
  require_valid(given);
  exec::require_threads(threads);
  if (given.nnz() > 0 && !given.values) throw Error("the matrix has no values");
  Condition c;
  if (given.rows == 0) return c;
  c.norm = norm_of(given, norm);
  CsrMatrix cleaned;
  const bool zeros = std::find(given.values, given.values + given.nnz(), 0.0) != given.values + given.nnz();
  if (zeros) cleaned = without_zeros(given);
  const CsrView a = zeros ? cleaned.view() : given;
  BlockNorm inverse;
  std::string no_lu = "a factorisation was not asked for";
  bool done = false;
  if (by != ConditionBy::gmres) {
    const SparseLu lu(a, memory);
    if (lu.outcome() == SparseLu::Outcome::ready || lu.outcome() == SparseLu::Outcome::singular) {
      c.by = SparseLu::name();
      inverse =
          lu.outcome() == SparseLu::Outcome::ready ? inverse_norm_directly(lu, a.rows, norm) : BlockNorm{infinite, 0};
      done = true;
    } else {
      no_lu = reason(lu);
      if (by == ConditionBy::direct) throw Error(no_lu);
    }
  }
  if (!done && !schedule::has_full_structural_rank(a)) {
    c.by = "the pattern";
    inverse.value = infinite;
  } else if (!done) {
    try {
      inverse = inverse_norm_by_gmres(a, norm, threads, memory, c.by);
    } catch (const Error& e) {
      throw Error(fmt::format("the condition number cannot be estimated: {}, and {}", no_lu, e.what()));
    }
  }
  c.inverse_norm = inverse.value;
  c.solves = inverse.products;
  c.value = std::isinf(c.inverse_norm) ? infinite : c.norm * c.inverse_norm;  // 0 times infinity, too
  return c;
}

}  // namespace krilu::solver

namespace krilu {

Condition estimate_condition(const CsrView& a, ConditionNorm norm, int threads) {
  return solver::estimate_condition(a, norm, threads, solver::ConditionBy::any);
}

}  // namespace krilu
