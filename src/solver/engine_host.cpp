// SPDX-License-Identifier: Apache-2.0
#include "solver/engine.hpp"

namespace krilu::solver {

std::unique_ptr<Engine> make_host_engine(const Options& options) {
  return std::make_unique<EngineOn<exec::Host>>(exec::Host(options.threads), options);
}

}  // namespace krilu::solver
