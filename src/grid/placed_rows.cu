// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda.cuh"
#include "grid/placed_rows.hpp"
#include "krilu/equations.cuh"

namespace krilu::grid {

namespace {

class GpuRows final : public PlacedRows {
 public:
  GpuRows(const PoissonRows& rows, int number) : space_(number), equations_(rows) { show(rows); }
  const Equations& equations() const override { return equations_; }

  void show(const PoissonRows& rows) override {
    const auto nodes = std::size_t(rows.ni) * std::size_t(rows.nj), inner = std::size_t(rows.rows()) / 2;
    PoissonRows there = rows;
    there.fixed = brought(rows.fixed, nodes, fixed_);
    there.phi = brought(rows.phi, inner, phi_);
    there.psi = brought(rows.psi, inner, psi_);
    there.scale = brought(rows.scale, inner, scale_);
    space_.synchronise();  // Newton's kernels go to another stream
    equations_.row() = rows;
    equations_.row_there() = there;
  }

 private:
  template <class T>
  View<const T> brought(View<const T> from, std::size_t n, exec::Array<T>& to) const {
    if (!from.data) return {};
    if (to.size() != n) to = space_.allocate<T>(n);
    space_.copy_in(to, from.data, n);
    return {to.data()};
  }

  exec::Cuda space_;
  exec::Array<Point> fixed_;
  exec::Array<double> phi_, psi_, scale_;
  DeviceRowEquations<PoissonRows> equations_;
};

}  // namespace

std::unique_ptr<PlacedRows> place_rows_on_gpu(const PoissonRows& rows, int number) {
  return std::make_unique<GpuRows>(rows, number);
}

}  // namespace krilu::grid
