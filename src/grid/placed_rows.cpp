// SPDX-License-Identifier: Apache-2.0
#include "grid/placed_rows.hpp"

#include "solver/engine.hpp"
#include "solver/requests.hpp"

namespace krilu::grid {

namespace {

class HostRows final : public PlacedRows {
 public:
  explicit HostRows(const PoissonRows& rows) : equations_(rows) {}
  const Equations& equations() const override { return equations_; }
  void show(const PoissonRows& rows) override { equations_.row() = rows; }

 private:
  RowEquations<PoissonRows> equations_;
};

}  // namespace

std::unique_ptr<PlacedRows> place_rows(const PoissonRows& rows, const std::string& device) {
  if (device.starts_with("cuda")) return place_rows_on_gpu(rows, solver::gpu_number(device));
  if (device == "auto" && solver::cuda_devices() > 0) return place_rows_on_gpu(rows, 0);
  return std::make_unique<HostRows>(rows);
}

}  // namespace krilu::grid
