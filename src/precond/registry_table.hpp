// SPDX-License-Identifier: Apache-2.0
// The table of preconditioners, one line each, for the files that compile it for their spaces: registry.cpp and
// registry.cu.
#pragma once

#include "precond/dilu.hpp"
#include "precond/ilu0.hpp"
#include "precond/jacobi.hpp"
#include "precond/local.hpp"
#include "precond/registry.hpp"

namespace krilu::precond {

template <class Space, class T>
using Maker = std::unique_ptr<Preconditioner<Space, T>> (*)(const Context<Space>&,
                                                            std::shared_ptr<const sparse::PatternOf<Space>>,
                                                            const std::string& name);
template <class Space, class T>
struct Row {
  const char* kind;  // the name up to its colon
  Sweeps sweeps;
  Maker<Space, T> make;
};

#define KRILU_PRECOND(CLASS, ...)                                                                     \
  [](const Context<Space>& context, std::shared_ptr<const sparse::PatternOf<Space>> pattern,          \
     [[maybe_unused]] const std::string& name) -> std::unique_ptr<Preconditioner<Space, T>> {         \
    return std::make_unique<CLASS<Space, T>>(context, std::move(pattern) __VA_OPT__(, ) __VA_ARGS__); \
  }

template <class Space, class T>
constexpr Row<Space, T> table[] = {
    {"none", Sweeps::none, KRILU_PRECOND(None)},
    {"jacobi", Sweeps::none, KRILU_PRECOND(Jacobi)},
    {"dilu", Sweeps::over_a, KRILU_PRECOND(Dilu, name, false)},
    {"dic", Sweeps::over_a, KRILU_PRECOND(Dilu, name, true)},
    {"ilu0", Sweeps::over_a, KRILU_PRECOND(Ilu0, name, false)},
    {"ic0", Sweeps::over_a, KRILU_PRECOND(Ilu0, name, true)},
    {"iluk", Sweeps::of_its_own, KRILU_PRECOND(Local, name)},
    {"ilut", Sweeps::of_its_own, KRILU_PRECOND(Local, name)},
    {"block-ilu", Sweeps::of_its_own, KRILU_PRECOND(Local, name)},
    {"ras", Sweeps::of_its_own, KRILU_PRECOND(Local, name)},
};

#undef KRILU_PRECOND

template <class Space, class T>
std::unique_ptr<Preconditioner<Space, T>> make(const std::string& name, const Context<Space>& context,
                                               std::shared_ptr<const sparse::PatternOf<Space>> pattern) {
  require_known(name);
  for (const auto& row : table<Space, T>)
    if (row.kind == kind_of(name)) return row.make(context, std::move(pattern), name);
  return nullptr;
}

}  // namespace krilu::precond
