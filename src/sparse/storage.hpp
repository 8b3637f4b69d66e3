// SPDX-License-Identifier: Apache-2.0
// Which storage a space keeps its matrices in: split slices of vector length on the host (split.hpp), slices of a warp
// on a GPU (sliced.cuh). Preconditioners and operators are written over these names.
#pragma once

#include "sparse/split.hpp"

namespace krilu::sparse {

template <class Space>
struct Storage {
  using Pattern = SplitPattern;
  template <class T, class S = T>
  using Matrix = SplitMatrix<T, S>;
  template <class T>
  using View = SplitView<T>;
};

template <class Space>
using PatternOf = typename Storage<Space>::Pattern;
template <class Space, class T, class S = T>
using MatrixOf = typename Storage<Space>::template Matrix<T, S>;
template <class Space, class T>
using ViewOf = typename Storage<Space>::template View<T>;

/// A matrix in single precision arithmetic, values stored in S.
template <class Space, class S>
struct RoundedMatrixOf final : RoundedMatrix {
  explicit RoundedMatrixOf(MatrixOf<Space, float, S>&& m) : matrix(std::move(m)) {}
  std::size_t bytes() const override {
    std::size_t b = matrix.bytes();
    if constexpr (requires { matrix.narrow; }) b += matrix.narrow ? matrix.narrow->bytes() : 0;
    return b;
  }
  MatrixOf<Space, float, S> matrix;
};

}  // namespace krilu::sparse
