// SPDX-License-Identifier: Apache-2.0
#include "grid/placed_rows.hpp"

#include "solver/engine.hpp"
#include "solver/requests.hpp"

namespace krilu::grid {

namespace {

class HostRows final : public PlacedRows {
 public:
  HostRows(const PoissonRows& rows, const Stretch& stretch) : equations_(rows, stretch.first, stretch.count) {}
  const Equations& equations() const override { return equations_; }
  void show(const PoissonRows& rows) override { equations_.row() = rows; }

 private:
  RowEquations<PoissonRows> equations_;
};

}  // namespace

Stretch stretch_of(const PoissonRows& rows, int rank, int ranks) {
  const auto line = [&](int r) { return Index(std::int64_t(rows.outward()) * r / ranks); };
  const Index a_line = 2 * rows.around();
  return {line(rank) * a_line, (line(rank + 1) - line(rank)) * a_line};
}

std::unique_ptr<PlacedRows> place_rows(const PoissonRows& rows, const Stretch& stretch, const std::string& device) {
  if (device.starts_with("cuda")) return place_rows_on_gpu(rows, stretch, solver::gpu_number(device));
  if (device == "auto" && solver::cuda_devices() > 0) return place_rows_on_gpu(rows, stretch, 0);
  return std::make_unique<HostRows>(rows, stretch);
}

}  // namespace krilu::grid
