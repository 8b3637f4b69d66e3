// SPDX-License-Identifier: Apache-2.0
// What runs PETSc inside a process of krilu's.
#pragma once

#include <petscsys.h>

#include <cstdlib>
#include <string>
#include <type_traits>

#include "krilu/error.hpp"
#include "krilu/types.hpp"

namespace krilu::bench {

static_assert(sizeof(PetscInt) == sizeof(Index), "this needs a PETSc with 32-bit indices");
static_assert(std::is_same_v<PetscScalar, double>, "this needs a PETSc with real double scalars");

/// Throws krilu::Error in PETSc's words.
inline void check(PetscErrorCode code) {
  if (code == 0) return;
  const char* text = nullptr;
  PetscErrorMessage(code, &text, nullptr);
  throw Error(std::string("PETSc: ") + (text ? text : "error"));
}

/// Begins PETSc when it is first needed; it ends with the process. Its version.
inline std::string begin_petsc() {
  static const bool begun = [] {
    check(PetscInitializeNoArguments());
    check(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr));
    std::atexit([] { PetscFinalize(); });
    return true;
  }();
  (void)begun;
  PetscInt major = 0, minor = 0, subminor = 0;
  check(PetscGetVersionNumber(&major, &minor, &subminor, nullptr));
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(subminor);
}

}  // namespace krilu::bench
