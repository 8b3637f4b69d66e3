// SPDX-License-Identifier: Apache-2.0
// Newton's method on one execution space. The public NewtonSolver checks what it is given and chooses the space.
#pragma once

#include <memory>
#include <span>

#include "krilu/newton.hpp"

namespace krilu::newton {

using Progress = std::function<bool(const NewtonStep&)>;

class Core {
 public:
  virtual ~Core() = default;
  virtual NewtonResult solve(std::span<double> x, double rtol, double atol, const Progress& progress) = 0;
  virtual std::size_t bytes() const = 0;
};

/// Over ranks where there are any; collective then.
std::unique_ptr<Core> make_host_core(const Equations& equations, const NewtonOptions& options,
                                     std::shared_ptr<Communicator> ranks);
/// Throws krilu::Error where there is no such GPU.
std::unique_ptr<Core> make_cuda_core(const Equations& equations, const NewtonOptions& options,
                                     std::shared_ptr<Communicator> ranks);
std::unique_ptr<Core> make_emulated_core(const Equations& equations, const NewtonOptions& options,
                                         std::shared_ptr<Communicator> ranks);

}  // namespace krilu::newton
