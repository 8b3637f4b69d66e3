// SPDX-License-Identifier: Apache-2.0
// Products with a matrix in OpenFOAM's face addressing, by loops over the faces: nothing is converted. Cells and faces
// stand in the loops' own numbering; to_cells and from_cells lie between it and the caller's. One text for all spaces;
// a GPU's loops are named in ldu_operator.cuh.
//
// Cost: a product moves three words a cell and one a face (two where the matrix is not symmetric) beside the
// addressing.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "exec/emulated.hpp"
#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "krilu/face_loops.hpp"
#include "krilu/face_operators.hpp"
#include "krilu/mesh.hpp"
#include "sparse/operator.hpp"

namespace krilu::mesh {

/// The loops that run where a space's vectors live.
template <class Space>
struct LoopsOn {
  using Type = FaceLoops;
};

/// Where the values stand: diagonal of each cell; upper[f] is a(owner, neighbour) and lower[f] a(neighbour, owner) of
/// face f. Of a symmetric matrix both are one array.
struct LduCoefficients {
  View<const double> diagonal, lower, upper;
};

/// r = b - A x; r may be b.
template <class Loops>
void residual_symmetric(const Loops& loops, const LduCoefficients& a, View<const double> b, View<const double> x,
                        View<double> r) {
  const auto diagonal = a.diagonal, upper = a.upper;
  loops.template sum_over_faces<RowState, double>(
      loops.ahead(
          KRILU_FN(Index c) {
            return RowState{x[c], diagonal[c]};
          },
          x),
      KRILU_FN(Face f, const RowState& owner, const RowState& neighbour) {
        const double v = upper[f.id];
        return Both<double>{v * neighbour.x, v * owner.x};
      },
      KRILU_FN(Index c, const RowState& own, double sum) { r[c] = b[c] - (own.diagonal * own.x + sum); });
}
template <class Loops>
void residual(const Loops& loops, const LduCoefficients& a, View<const double> b, View<const double> x,
              View<double> r) {
  const auto diagonal = a.diagonal, lower = a.lower, upper = a.upper;
  loops.template sum_over_faces<RowState, double>(
      loops.ahead(
          KRILU_FN(Index c) {
            return RowState{x[c], diagonal[c]};
          },
          x),
      KRILU_FN(Face f, const RowState& owner, const RowState& neighbour) {
        return Both<double>{upper[f.id] * neighbour.x, lower[f.id] * owner.x};
      },
      KRILU_FN(Index c, const RowState& own, double sum) { r[c] = b[c] - (own.diagonal * own.x + sum); });
}

template <class Space>
class LduOperator final : public sparse::Operator<Space, double> {
  static constexpr bool on_host = std::is_same_v<Space, exec::Host>;

 public:
  using Loops = typename LoopsOn<Space>::Type;

  /// Analyses the mesh; threads of the host are the space's. Throws krilu::Error as the loops do.
  LduOperator(Space space, const Mesh& mesh, const FaceLoopOptions& options)
      : space_(std::move(space)), loops_(made(space_, mesh, options)) {
    if constexpr (!on_host) {
      cell_order_ = brought(loops_.cell_order());
      face_order_ = brought(loops_.face_order());
    }
    diagonal_ = space_.template allocate<double>(std::size_t(cells()));
    upper_ = space_.template allocate<double>(std::size_t(faces()));
  }
  LduOperator(const LduOperator&) = delete;  // what is queued points to the loops
  LduOperator& operator=(const LduOperator&) = delete;

  const Space& space() const { return space_; }
  const Loops& loops() const { return loops_; }
  Index rows() const override { return cells(); }
  Index cells() const { return loops_.cells(); }
  Index faces() const { return loops_.faces(); }

  /// The caller's values, by the mesh's numbers: of each cell, of each face. `lower` is empty where it is `upper`.
  /// Throws krilu::Error for wrong lengths, before anything is changed.
  void set_values(std::span<const double> diagonal, std::span<const double> upper, std::span<const double> lower) {
    require_length("diagonal", diagonal.size(), cells(), "cells");
    require_length("upper", upper.size(), faces(), "internal faces");
    if (!lower.empty()) require_length("lower", lower.size(), faces(), "internal faces");
    symmetric_ = lower.empty();
    if (symmetric_)
      lower_ = {};
    else if (lower_.size() == 0)
      lower_ = space_.template allocate<double>(upper.size());
    put_in_order(diagonal_, cell_order(), diagonal);
    put_in_order(upper_, face_order(), upper);
    if (!symmetric_) put_in_order(lower_, face_order(), lower);
  }
  bool symmetric() const { return symmetric_; }
  /// Good until values are set again.
  LduCoefficients coefficients() const {
    return {diagonal_.view(), symmetric_ ? upper_.view() : lower_.view(), upper_.view()};
  }

  void apply(const double* x, double* y) const override {
    run([a = coefficients(), symmetric = symmetric_, x, y](const Loops& loops) {
      if (symmetric)
        multiply_symmetric(loops, a.diagonal, a.upper, View<const double>{x}, View<double>{y});
      else
        multiply(loops, a.diagonal, a.lower, a.upper, View<const double>{x}, View<double>{y});
    });
  }
  void residual(const double* b, const double* x, double* r) const override {
    run([a = coefficients(), symmetric = symmetric_, b, x, r](const Loops& loops) {
      if (symmetric)
        residual_symmetric(loops, a, View<const double>{b}, View<const double>{x}, View<double>{r});
      else
        mesh::residual(loops, a, View<const double>{b}, View<const double>{x}, View<double>{r});
    });
  }

  /// A value for each cell: from the caller's numbering to the loops', and back. Both wait.
  void to_cells(const exec::Array<double>& to, std::span<const double> from) const {
    put_in_order(to, cell_order(), from);
  }
  void from_cells(std::span<double> to, const exec::Array<double>& from) const {
    const std::size_t n = to.size();
    const auto order = cell_order();
    const auto in = from.view();
    exec::Array<double> stage;
    double* out = to.data();
    if constexpr (!on_host) {
      stage = space_.template allocate<double>(n);
      out = stage.data();
    }
    space_.for_each(
        n, KRILU_FN(Index i) { out[order[i]] = in[i]; });
    if constexpr (!on_host) space_.copy_out(to.data(), stage, n);
  }

  std::size_t bytes() const {
    return loops_.report().bytes + cell_order_.bytes() + face_order_.bytes() + diagonal_.bytes() + upper_.bytes() +
           lower_.bytes();
  }

  // Parts of the above: public because nvcc takes kernels in public members only.

  /// to[i] = from[order[i]]
  void put_in_order(const exec::Array<double>& to, View<const Index> order, std::span<const double> from) const {
    const std::size_t n = from.size();
    const auto out = to.view();
    exec::Array<double> stage;
    const double* in = from.data();
    if constexpr (!on_host) {
      stage = space_.template allocate<double>(n);
      space_.copy_in(stage, from.data(), n);
      in = stage.data();
    }
    space_.for_each(
        n, KRILU_FN(Index i) { out[i] = in[order[i]]; });
    space_.synchronise();  // the stage goes
  }

 private:
  static Loops made(const Space& space, const Mesh& mesh, const FaceLoopOptions& options) {
    FaceLoopOptions own = options;
    own.threads = space.threads();
    if constexpr (std::is_constructible_v<Loops, const Space&, const Mesh&, const FaceLoopOptions&>)
      return Loops(space, mesh, own);
    else
      return Loops(mesh, own);
  }
  static void require_length(const char* what, std::size_t given, Index due, const char* each) {
    if (given != std::size_t(due))
      throw Error(std::string(what) + " has " + std::to_string(given) + " values where the mesh has " +
                  std::to_string(due) + " " + each);
  }
  exec::Array<Index> brought(std::span<const Index> from) const {
    auto to = space_.template allocate<Index>(from.size());
    space_.copy_in(to, from.data(), from.size());
    return to;
  }
  View<const Index> cell_order() const {
    if constexpr (on_host)
      return {loops_.cell_order().data()};
    else
      return {cell_order_.data()};
  }
  View<const Index> face_order() const {
    if constexpr (on_host)
      return {loops_.face_order().data()};
    else
      return {face_order_.data()};
  }
  /// f(loops), in the order of the space's other kernels.
  template <class F>
  void run(F f) const {
    if constexpr (std::is_same_v<Loops, FaceLoops>)
      space_.enqueue([f, loops = &loops_](const exec::Host&) { f(*loops); });
    else
      f(loops_);
  }

  Space space_;
  Loops loops_;
  exec::Array<Index> cell_order_, face_order_;  // on the host: the loops' own
  exec::Array<double> diagonal_, upper_, lower_;
  bool symmetric_ = true;
};

extern template class LduOperator<exec::Host>;
extern template class LduOperator<exec::Emulated>;

}  // namespace krilu::mesh
