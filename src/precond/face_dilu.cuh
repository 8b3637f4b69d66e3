// SPDX-License-Identifier: Apache-2.0
// DILU over faces on a GPU, which has no time for a launch a level: cells in coloured blocks (schedule/blocks.hpp),
// read by the slices that sweeps have elsewhere (dilu.hpp) and filled from the operator's coefficients, on the device.
// A z comes with z then, at the price of L (dilu.cu); residuals stay loops over faces. Sweeps by levels, in the
// operator's own numbering, are had by asking for them (face_dilu.hpp). Cost beside the operator: some 80 bytes a face
// and a cell; an application moves five words a cell more than one of Solver's, for the way into the blocks' order and
// back. Included by .cu files only.
#pragma once

#include <memory>
#include <string>

#include "mesh/ldu_operator.cuh"
#include "precond/face_dilu.hpp"
#include "precond/factors.cuh"

namespace krilu::precond {

class FaceDiluInBlocks final : public FacePreconditioner<exec::Cuda> {
 public:
  using FacePreconditioner<exec::Cuda>::factor;
  /// For matrices of A's mesh. Throws krilu::Error where it is too large for the device.
  FaceDiluInBlocks(const mesh::LduOperator<exec::Cuda>& A, const Mesh& mesh);
  /// The first values decide which cells are blocks: strong couplings stay within. Throws krilu::ZeroPivot, naming the
  /// mesh's cell.
  void factor(const mesh::LduOperator<exec::Cuda>& A) override;
  void apply(const double* r, double* z) override;
  /// Of the A that was factored the product is had from the slices, of which L alone is read once more.
  void apply(const sparse::Operator<exec::Cuda, double>& A, const double* r, double* z, double* Az) override;

  std::size_t bytes() const override;
  std::string description() const override { return "cells in coloured blocks, chosen with the first values"; }
  std::optional<triangular::Report> triangular() const override { return dilu_ ? dilu_->triangular() : std::nullopt; }
  int trials_left() const override { return dilu_ ? dilu_->trials_left() : 0; }

  // Parts of factor(): public because nvcc takes kernels in public members only.

  void take(const mesh::LduCoefficients& coefficients);
  void choose_blocks();
  /// Into the order of the blocks, to r_.
  void bring(const double* r);

 private:
  exec::Cuda space_;
  sparse::DeviceCsr a_;  // a row a cell of the mesh
  exec::Array<Offset> begin_;
  exec::Array<FaceEntry> entry_;  // as FaceRows has them
  exec::Array<Index> place_;      // of the mesh's cells in the operator's numbering
  std::shared_ptr<const sparse::SlicedPattern> pattern_;
  sparse::SlicedMatrix<double> matrix_;
  // Once there were values:
  std::unique_ptr<const sparse::SplitOperator<exec::Cuda, double>> product_;
  std::unique_ptr<Dilu<exec::Cuda, double>> dilu_;
  exec::Array<Index> from_;  // of each row of the slices: its place in the operator's numbering
  exec::Array<double> r_, z_, Az_;
  const mesh::LduOperator<exec::Cuda>* factored_ = nullptr;
};

template <>
struct FaceDiluOn<exec::Cuda> {
  static std::unique_ptr<FacePreconditioner<exec::Cuda>> make(const mesh::LduOperator<exec::Cuda>& A, const Mesh& mesh,
                                                              triangular::Strategy strategy);
};

}  // namespace krilu::precond
