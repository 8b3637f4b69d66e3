// SPDX-License-Identifier: Apache-2.0
// The table of preconditioners, one line each, for the files that compile it for their spaces: registry.cpp and
// registry.cu.
#pragma once

#include "precond/dilu.hpp"
#include "precond/ilu0.hpp"
#include "precond/jacobi.hpp"
#include "precond/registry.hpp"

namespace krilu::precond {

template <class Space, class T>
using Maker = std::unique_ptr<Preconditioner<Space, T>> (*)(const Context<Space>&,
                                                            std::shared_ptr<const sparse::PatternOf<Space>>);
template <class Space, class T>
struct Row {
  const char* name;
  bool triangular;
  Maker<Space, T> make;
};

#define KRILU_PRECOND(CLASS, ...)                                                                            \
  [](const Context<Space>& context,                                                                          \
     std::shared_ptr<const sparse::PatternOf<Space>> pattern) -> std::unique_ptr<Preconditioner<Space, T>> { \
    return std::make_unique<CLASS<Space, T>>(context, std::move(pattern) __VA_OPT__(, ) __VA_ARGS__);        \
  }

template <class Space, class T>
constexpr Row<Space, T> table[] = {
    // name, triangular, maker
    {"none", false, KRILU_PRECOND(None)},
    {"jacobi", false, KRILU_PRECOND(Jacobi)},
    {"dilu", true, KRILU_PRECOND(Dilu, "dilu", false)},
    {"dic", true, KRILU_PRECOND(Dilu, "dic", true)},
    {"ilu0", true, KRILU_PRECOND(Ilu0, "ilu0", false)},
    {"ic0", true, KRILU_PRECOND(Ilu0, "ic0", true)},
};

#undef KRILU_PRECOND

template <class Space, class T>
std::unique_ptr<Preconditioner<Space, T>> make(const std::string& name, const Context<Space>& context,
                                               std::shared_ptr<const sparse::PatternOf<Space>> pattern) {
  require_known(name);
  for (const auto& row : table<Space, T>)
    if (row.name == name) return row.make(context, std::move(pattern));
  return nullptr;
}

}  // namespace krilu::precond
