// SPDX-License-Identifier: Apache-2.0
// Eigen's IncompleteLUT without the reordering that its analyzePattern() brings, which would make it another
// factorisation. factorize() still copies the matrix through the permutation, an identity here; that time is told.
#include <Eigen/Core>
#include <Eigen/IterativeLinearSolvers>
#include <Eigen/SparseCore>
#include <optional>

#include "factorisation.hpp"

namespace krilu::bench {
namespace {

using Matrix = Eigen::SparseMatrix<double, Eigen::RowMajor, Index>;

struct InNaturalOrder : Eigen::IncompleteLUT<double, Index> {
  explicit InNaturalOrder(Index n) {
    m_P.setIdentity(n);
    m_Pinv.setIdentity(n);
    m_analysisIsOk = m_isInitialized = true;
  }
  std::int64_t entries() const { return m_lu.nonZeros(); }
  double copy_seconds(const Eigen::Map<const Matrix>& matrix) const {
    return timed([&] {
      Matrix copy;
      copy = matrix.twistedBy(m_Pinv);
    });
  }
};

struct EigenIlut : PeerFactorisation {
  EigenIlut(const CsrMatrix& a, int most, double tolerance)
      : matrix(a.rows, a.cols, a.nnz(), a.offsets.data(), a.columns.data(), a.values.data()),
        rows(a.rows),
        drop(tolerance) {
    version = std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
              std::to_string(EIGEN_MINOR_VERSION);
    while ((std::int64_t(a.nnz()) * fill / a.rows + 1) / 2 < most) ++fill;
    copy_seconds = InNaturalOrder(rows).copy_seconds(matrix);
  }

  double run() override {
    factors.emplace(rows);
    factors->setDroptol(drop);
    factors->setFillfactor(fill);
    const double seconds = timed([&] { factors->factorize(matrix); });
    entries = factors->entries();
    return seconds;
  }

  void apply(std::span<const double> b, std::span<double> x) override {
    const Eigen::Map<const Eigen::VectorXd> from(b.data(), rows);
    Eigen::Map<Eigen::VectorXd>(x.data(), rows) = factors->solve(from);
  }

  Eigen::Map<const Matrix> matrix;
  Index rows;
  double drop;
  int fill = 1;
  std::optional<InNaturalOrder> factors;
};

}  // namespace

std::unique_ptr<PeerFactorisation> eigen_ilut(const CsrMatrix& a, int most, double tolerance) {
  return std::make_unique<EigenIlut>(a, most, tolerance);
}

}  // namespace krilu::bench
