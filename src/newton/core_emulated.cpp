// SPDX-License-Identifier: Apache-2.0
#include "exec/emulated.hpp"
#include "newton/core_on.hpp"

namespace krilu::newton {

std::unique_ptr<Core> make_emulated_core(const Equations& equations, const NewtonOptions& options,
                                         std::shared_ptr<Communicator> ranks) {
  return std::make_unique<CoreOn<exec::Emulated>>(equations, options, std::move(ranks));
}

}  // namespace krilu::newton
