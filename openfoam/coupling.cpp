// SPDX-License-Identifier: GPL-3.0-or-later
#include "coupling.hpp"

#include <algorithm>
#include <cstring>

#include "PstreamReduceOps.H"
#include "vector2D.H"

namespace Foam {

void kriluRanks::all_gather(const void* mine, std::size_t bytes, void* all) {
  const int ranks = size();
  if (ranks == 1) {
    std::memcpy(all, mine, bytes);
    return;
  }
  List<List<char>> parts(ranks);
  List<char>& own = parts[rank()];
  own.setSize(label(bytes));
  std::copy_n(static_cast<const char*>(mine), bytes, own.begin());
  Pstream::gatherList(parts, UPstream::msgType(), comm_);
  Pstream::scatterList(parts, UPstream::msgType(), comm_);
  auto* to = static_cast<char*>(all);
  for (const List<char>& part : parts) to = std::copy_n(part.begin(), bytes, to);
}

/// By the sums that OpenFOAM has MPI form: of two numbers, and of one.
void kriluRanks::sum(std::span<double> values) {
  if (size() == 1) return;
  std::size_t k = 0;
  for (; k + 1 < values.size(); k += 2) {
    vector2D two(values[k], values[k + 1]);
    reduce(two, sumOp<vector2D>(), UPstream::msgType(), comm_);
    values[k] = two.x();
    values[k + 1] = two.y();
  }
  if (k < values.size()) {
    scalar one = values[k];
    reduce(one, sumOp<scalar>(), UPstream::msgType(), comm_);
    values[k] = one;
  }
}

bool kriluHasInterfaces(const lduMesh& mesh) {
  const lduInterfacePtrsList interfaces(mesh.interfaces());
  for (label i = 0; i < interfaces.size(); ++i)
    if (interfaces.set(i)) return true;
  return false;
}

/// A field may leave interfaces of the mesh out, so its rows are among these.
kriluCoupling::kriluCoupling(const lduMesh& mesh)
    : psi_(mesh.lduAddr().size(), Zero), result_(mesh.lduAddr().size(), Zero) {
  const lduInterfacePtrsList interfaces(mesh.interfaces());
  for (label i = 0; i < interfaces.size(); ++i)
    if (interfaces.set(i))
      for (const label cell : mesh.lduAddr().patchAddr(i)) rows_.push_back(krilu::Index(cell));
  std::sort(rows_.begin(), rows_.end());
  rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
}

void kriluCoupling::attach(const lduMatrix& matrix, const FieldField<Field, scalar>& coefficients,
                           const lduInterfaceFieldPtrsList& interfaces, direction cmpt) {
  matrix_ = &matrix;
  coefficients_ = &coefficients;
  interfaces_ = &interfaces;
  cmpt_ = cmpt;
}

void kriluCoupling::start(const double* x) {
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    psi_[rows_[k]] = x[k];
    result_[rows_[k]] = 0;
  }
  requests_ = UPstream::nRequests();
  matrix_->initMatrixInterfaces(true, *coefficients_, *interfaces_, psi_, result_, cmpt_);
}

/// With `add` the interfaces subtract their coefficients times what is behind them, as A has it.
void kriluCoupling::finish(double* y) {
  kriluUpdateInterfaces(*matrix_, true, *coefficients_, *interfaces_, psi_, result_, cmpt_, requests_);
  for (std::size_t k = 0; k < rows_.size(); ++k) y[k] = result_[rows_[k]];
}

}  // namespace Foam
