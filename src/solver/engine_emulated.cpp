// SPDX-License-Identifier: Apache-2.0
#include "solver/engine.hpp"

namespace krilu::solver {

std::unique_ptr<Engine> make_emulated_engine(const Options& options) {
  return std::make_unique<EngineOn<exec::Emulated>>(exec::Emulated(options.threads), options);
}

}  // namespace krilu::solver
