// SPDX-License-Identifier: Apache-2.0
#include "precond/factors.cuh"
#include "precond/local.cuh"
#include "precond/registry_table.hpp"

namespace krilu::precond {

template std::unique_ptr<Preconditioner<exec::Cuda, double>> make(const std::string&, const Context<exec::Cuda>&,
                                                                  std::shared_ptr<const sparse::SlicedPattern>);

}  // namespace krilu::precond
