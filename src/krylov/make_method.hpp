// SPDX-License-Identifier: Apache-2.0
// A method by its name. Compiled once a space (methods_host.cpp, methods_emulated.cpp, methods_cuda.cu), however many
// engines make methods: to compile them takes longer than to compile the rest of an engine.
#pragma once

#include <memory>
#include <string>

#include "base/half.hpp"
#include "krylov/method.hpp"

namespace krilu::krylov {

/// cg, bicgstab, fgmres or gmres, for `rows` rows. basis: what gmres and fgmres below double store their vectors in.
template <class Space, class T>
std::unique_ptr<Method<Space, T>> make_method(const Space& space, const std::string& name, Index rows, int restart,
                                              Format basis = Format::fp32);

}  // namespace krilu::krylov
