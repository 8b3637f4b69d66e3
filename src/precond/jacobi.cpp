// SPDX-License-Identifier: Apache-2.0
#include "precond/jacobi.hpp"

#include <fmt/format.h>

namespace krilu::precond {

// Apart from the text, since nvcc does not take this fmt.
std::string jacobi_sentence(Index zeros, Index first) {
  return fmt::format(
      "jacobi: the diagonal is zero or missing in {} row{}, the first is row {} (counting from 1): use --precond none",
      zeros, zeros == 1 ? "" : "s", first + 1);
}

}  // namespace krilu::precond
