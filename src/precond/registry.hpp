// SPDX-License-Identifier: Apache-2.0
// Preconditioners by name: one line each in registry_table.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "precond/preconditioner.hpp"

namespace krilu::precond {

/// What an application sweeps over: nothing, the triangles of the matrix as the solver stores it, so that its rows had
/// better stand in level order, or factors that the preconditioner stores itself.
enum class Sweeps { none, over_a, of_its_own };

/// Kinds: names up to their colon (spec.hpp says which take arguments).
const std::vector<std::string>& names();
std::string kind_of(const std::string& name);
/// Throws krilu::Error, with the nearest name or the arguments that are wanted, for a name that is none.
void require_known(const std::string& name);
Sweeps sweeps_of(const std::string& name);
inline bool is_triangular(const std::string& name) { return sweeps_of(name) == Sweeps::over_a; }
/// Whether it factors a scaled or reordered A as well (rearranged.hpp). Not ic0, whose A has to stay symmetric.
inline bool can_be_rearranged(const std::string& name) {
  return name == "ilu0" || sweeps_of(name) == Sweeps::of_its_own;
}

template <class Space, class T>
std::unique_ptr<Preconditioner<Space, T>> make(const std::string& name, const Context<Space>& context,
                                               std::shared_ptr<const sparse::PatternOf<Space>> pattern);

}  // namespace krilu::precond
