// SPDX-License-Identifier: Apache-2.0
// The one text of make_method.
#pragma once

#include <type_traits>

#include "krylov/bicgstab.hpp"
#include "krylov/cg.hpp"
#include "krylov/gmres.hpp"
#include "krylov/make_method.hpp"

namespace krilu::krylov {

template <class Space, class T>
std::unique_ptr<Method<Space, T>> make_method(const Space& space, const std::string& name, Index rows, int restart,
                                              Format basis) {
  if (name == "cg") return std::make_unique<Cg<Space, T>>(space, rows);
  if (name == "bicgstab") return std::make_unique<Bicgstab<Space, T>>(space, rows);
  const bool flexible = name == "fgmres";
  if constexpr (std::is_same_v<T, double>)
    return std::make_unique<Gmres<Space, T>>(space, rows, restart, flexible);
  else
    return with_format(basis, [&](auto b) -> std::unique_ptr<Method<Space, T>> {
      return std::make_unique<Gmres<Space, T, decltype(b)>>(space, rows, restart, flexible);
    });
}

#define KRILU_METHODS(SPACE)                                                                                         \
  template std::unique_ptr<Method<SPACE, double>> make_method(const SPACE&, const std::string&, Index, int, Format); \
  template std::unique_ptr<Method<SPACE, float>> make_method(const SPACE&, const std::string&, Index, int, Format);

}  // namespace krilu::krylov
