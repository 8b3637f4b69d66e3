// SPDX-License-Identifier: Apache-2.0
// Preconditioners by name: one line each in registry_table.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "precond/preconditioner.hpp"

namespace krilu::precond {

const std::vector<std::string>& names();
/// Throws krilu::Error with the nearest name for an unknown one.
void require_known(const std::string& name);
/// True where an application is a pair of triangular sweeps, so that rows had better stand in level order.
bool is_triangular(const std::string& name);

template <class Space, class T>
std::unique_ptr<Preconditioner<Space, T>> make(const std::string& name, const Context<Space>& context,
                                               std::shared_ptr<const sparse::PatternOf<Space>> pattern);

}  // namespace krilu::precond
