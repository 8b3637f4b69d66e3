// SPDX-License-Identifier: Apache-2.0
#include "exec/emulated.hpp"
#include "solver/engine_on.hpp"
#include "solver/system.hpp"

namespace krilu::solver {

std::unique_ptr<Engine> make_emulated_engine(const Options& options, const Team& team) {
  return std::make_unique<EngineOn<exec::Emulated, System<exec::Emulated>>>(exec::Emulated(options.threads), "emulated",
                                                                            options, team);
}

}  // namespace krilu::solver
