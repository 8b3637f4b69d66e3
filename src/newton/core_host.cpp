// SPDX-License-Identifier: Apache-2.0
#include "newton/core_on.hpp"

namespace krilu::newton {

std::unique_ptr<Core> make_host_core(const Equations& equations, const NewtonOptions& options,
                                     std::shared_ptr<Communicator> ranks) {
  return std::make_unique<CoreOn<exec::Host>>(equations, options, std::move(ranks));
}

}  // namespace krilu::newton
