// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "precond/face_dilu.cuh"
#include "schedule/blocks.hpp"
#include "schedule/layout.cuh"

namespace krilu::precond {

FaceDiluInBlocks::FaceDiluInBlocks(const mesh::LduOperator<exec::Cuda>& A, const Mesh& mesh) : space_(A.space()) {
  const FaceRows rows = face_rows(exec::Host(space_.threads()), mesh, A.loops().face_order());
  const auto nonzeros = Offset(rows.columns.size());
  space_.require_memory(rows.columns.size() * 48 + std::size_t(mesh.cells) * 260, mesh.cells, nonzeros);
  a_ = sparse::upload(space_, {mesh.cells, mesh.cells, rows.offsets.data(), rows.columns.data(), nullptr}, false);
  a_.values = space_.allocate<double>(rows.columns.size());
  begin_ = space_.brought(rows.begin);
  entry_ = space_.brought(rows.entry);
  const auto cell_order = A.loops().cell_order();
  std::vector<Index> place(cell_order.size());
  for (std::size_t i = 0; i < place.size(); ++i) place[std::size_t(cell_order[i])] = Index(i);
  place_ = space_.brought(place);
  from_ = space_.allocate<Index>(place.size());
  for (auto* v : {&r_, &z_, &Az_}) *v = space_.allocate<double>(place.size());
}

void FaceDiluInBlocks::factor(const mesh::LduOperator<exec::Cuda>& A) {
  if (place_.size() == 0) return;
  factored_ = &A;
  take(A.coefficients());
  if (!dilu_) choose_blocks();
  sparse::fill_values(space_, pattern_, a_.values.data(), matrix_);
  if (!product_) product_ = std::make_unique<const sparse::SplitOperator<exec::Cuda, double>>(space_, matrix_);
  try {
    dilu_->factor({matrix_}, 0);
  } catch (const ZeroPivot& e) {
    throw ZeroPivot(face_pivot_sentence(Index(e.row()), false), e.row());
  }
}

/// The values of the rows.
void FaceDiluInBlocks::take(const mesh::LduCoefficients& coefficients) {
  const CsrView a = a_.view();
  const auto values = a_.values.view();
  const auto begin = begin_.view();
  const auto entry = entry_.view();
  const auto place = place_.view();
  space_.for_each(
      place_.size(), KRILU_FN(Index c) {
        Offset e = begin[c];
        for (Offset k = a.offsets[c]; k < a.offsets[c + 1]; ++k) {
          const Index other = a.columns[k];
          if (other == c) {
            values[k] = coefficients.diagonal[place[c]];
            continue;
          }
          double sum = 0;
          for (; e < begin[c + 1] && entry[e].other == other; ++e)
            sum += entry[e].face < 0 ? coefficients.lower[~entry[e].face] : coefficients.upper[entry[e].face];
          values[k] = sum;
        }
      });
}

void FaceDiluInBlocks::choose_blocks() {
  const auto blocks = schedule::BlockBuilder<exec::Cuda>(space_, a_.view(), a_.view()).build();
  const auto plan = std::make_shared<const schedule::Plan>(schedule::by_blocks(space_, a_, blocks));
  pattern_ = std::make_shared<const sparse::SlicedPattern>(space_, a_, plan->layout);
  const auto row = plan->layout->row.view(), place = place_.view(), from = from_.view();
  space_.for_each(
      from_.size(), KRILU_FN(Index i) { from[i] = place[row[i]]; });
  const auto cell_of = [ex = space_, plan](Index i) { return ex.read(plan->layout->row, std::size_t(i)); };
  const Context<exec::Cuda> context{space_, triangular::Strategy::automatic, cell_of, plan, &a_};
  constexpr bool of_symmetric_matrices_alone = false;
  dilu_ =
      std::make_unique<Dilu<exec::Cuda, double>>(context, pattern_, std::string("dilu"), of_symmetric_matrices_alone);
}

void FaceDiluInBlocks::bring(const double* r) {
  const auto from = from_.view();
  const auto in = r_.view();
  space_.for_each(
      from_.size(), KRILU_FN(Index i) { in[i] = r[from[i]]; });
}

void FaceDiluInBlocks::apply(const double* r, double* z) {
  if (!dilu_) return;  // no cells
  bring(r);
  const auto from = from_.view();
  const auto out = z_.view();
  dilu_->apply(r_.data(), out.data);
  space_.for_each(
      from_.size(), KRILU_FN(Index i) { z[from[i]] = out[i]; });
}

void FaceDiluInBlocks::apply(const sparse::Operator<exec::Cuda, double>& A, const double* r, double* z, double* Az) {
  if (&A != factored_) return FacePreconditioner<exec::Cuda>::apply(A, r, z, Az);
  const auto from = from_.view();
  const auto out = z_.view(), product = Az_.view();
  bring(r);
  dilu_->apply(*product_, r_.data(), out.data, product.data);
  space_.for_each(
      from_.size(), KRILU_FN(Index i) {
        z[from[i]] = out[i];
        Az[from[i]] = product[i];
      });
}

std::size_t FaceDiluInBlocks::bytes() const {
  return a_.offsets.bytes() + a_.columns.bytes() + a_.values.bytes() + begin_.bytes() + entry_.bytes() +
         place_.bytes() + (pattern_ ? pattern_->bytes() : 0) + matrix_.bytes() + (dilu_ ? dilu_->bytes() : 0) +
         from_.bytes() + r_.bytes() + z_.bytes() + Az_.bytes();
}

std::unique_ptr<FacePreconditioner<exec::Cuda>> FaceDiluOn<exec::Cuda>::make(const mesh::LduOperator<exec::Cuda>& A,
                                                                             const Mesh& mesh,
                                                                             triangular::Strategy strategy) {
  if (strategy == triangular::Strategy::automatic) return std::make_unique<FaceDiluInBlocks>(A, mesh);
  return std::make_unique<FaceDilu<exec::Cuda>>(A, mesh, strategy);
}

}  // namespace krilu::precond
