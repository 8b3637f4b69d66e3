// SPDX-License-Identifier: Apache-2.0

#include "solver/engine_on.hpp"
#include "solver/system.hpp"

namespace krilu::solver {

std::unique_ptr<Engine> make_host_engine(const Options& options, const Team& team) {
  return std::make_unique<EngineOn<exec::Host, System<exec::Host>>>(exec::Host(options.threads), "host", options, team);
}

}  // namespace krilu::solver
