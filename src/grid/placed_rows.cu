// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda.cuh"
#include "grid/placed_rows.hpp"
#include "krilu/equations.cuh"

namespace krilu::grid {

namespace {

class GpuRows final : public PlacedRows {
 public:
  GpuRows(const PoissonRows& rows, const Stretch& stretch, int number)
      : space_(number), stretch_(stretch), equations_(rows, stretch.first, stretch.count) {
    show(rows);
  }
  const Equations& equations() const override { return equations_; }

  void show(const PoissonRows& rows) override {
    equations_.row() = rows;
    if (stretch_.count == 0) return;
    space_.make_current();
    // The nodes that rows stand at, and the lines of the grid that these have neighbours on.
    const Index node = stretch_.first / 2, nodes = stretch_.count / 2, line = node / rows.around(),
                lines = (node + nodes - 1) / rows.around() + 3 - line;
    PoissonRows there = rows;
    there.fixed = brought(rows.fixed, line * rows.ni, lines * rows.ni, fixed_);
    there.phi = brought(rows.phi, node, nodes, phi_);
    there.psi = brought(rows.psi, node, nodes, psi_);
    there.scale = brought(rows.scale, node, nodes, scale_);
    space_.synchronise();  // Newton's kernels go to another stream
    equations_.row_there() = there;
  }

 private:
  /// Entries first .. first + n - 1.
  template <class T>
  View<const T> brought(View<const T> from, Index first, Index n, exec::Array<T>& to) const {
    if (!from.data) return {};
    const auto size = std::size_t(n);
    if (to.size() != size) to = space_.allocate<T>(size);
    space_.copy_in(to, from.data + first, size);
    return View<const T>{to.data()}.numbered_from(first);
  }

  exec::Cuda space_;
  Stretch stretch_;
  exec::Array<Point> fixed_;
  exec::Array<double> phi_, psi_, scale_;
  DeviceRowEquations<PoissonRows> equations_;
};

}  // namespace

std::unique_ptr<PlacedRows> place_rows_on_gpu(const PoissonRows& rows, const Stretch& stretch, int number) {
  return std::make_unique<GpuRows>(rows, stretch, number);
}

}  // namespace krilu::grid
