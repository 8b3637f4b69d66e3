// SPDX-License-Identifier: Apache-2.0
// DILU in face addressing, as OpenFOAM's DILUPreconditioner has it; on a symmetric matrix it is DIC. Cells are
// eliminated in the operator's numbering; of a face the cell that comes first is l, the other u:
//
//   d_u -= upper lower / d_l         faces in upper triangular order (by l, then u);  rd = 1 / d
//   z    = rd r
//   z_u -= rd_u a_ul z_l             faces forward
//   z_l -= rd_l a_lu z_u             faces backward
//
// Two executions of it. `serial`: the loops over faces as they stand above, by one thread. `level-set`: cells by levels
// (Wang and Liu 2022, Algorithm 7), each cell gathering what its faces bring, a launch a level; for any space and any
// number of threads. To each cell they do the same operations in the same sequence. A GPU takes another order, and rows
// in place of faces, unless it is asked for levels (face_dilu.cuh).
//
// Coefficients are the operator's own. Cost beside it: a word a cell, and of integers 8 or 12 bytes a face for serial,
// 16 a face and 12 a cell for levels.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "krilu/error.hpp"
#include "mesh/ldu_operator.hpp"
#include "precond/preconditioner.hpp"

namespace krilu::precond {

/// The faces in upper triangular order, for one thread.
struct FaceSteps {
  // Of each step: its cells, lower < upper, and its face, or ~face where the upper cell is the face's owner. No `face`:
  // step k is face k.
  Buffer<Index> lower, upper, face;

  std::size_t bytes() const { return (lower.size() + upper.size() + face.size()) * sizeof(Index); }
};

/// A face as a cell sees it.
struct FaceEntry {
  Index face;   // or ~face where the cell at work is the face's neighbour
  Index other;  // the cell beyond
};

/// The faces of each cell, cells sorted by level.
struct FaceLevels {
  // Row k is cell[k]. Its entries are begin[k] .. begin[k+1]-1, ascending by the cell beyond; those from split[k] on
  // have a cell beyond that comes later.
  Buffer<Index> cell;
  Buffer<Offset> begin, split;
  Buffer<FaceEntry> entry;
  std::vector<Index> offsets;  // rows offsets[l] .. offsets[l+1]-1 are level l

  Index count() const { return offsets.empty() ? 0 : Index(offsets.size()) - 1; }
};

/// Of the mesh in the loops' numbering: place i is the mesh's cell cell_order[i], or its face face_order[i].
FaceSteps face_steps(const Mesh& mesh, std::span<const Index> cell_order, std::span<const Index> face_order);
/// Throws krilu::Error where there are 2^30 faces or more.
FaceLevels face_levels(const exec::Host& host, const Mesh& mesh, std::span<const Index> cell_order,
                       std::span<const Index> face_order);

/// The matrix row by row, a row a cell of the mesh: columns[offsets[c]] .. ascend, the diagonal among them. Off it the
/// entries are those of entry[begin[c]] .. entry[begin[c+1]-1], ascending by the cell beyond; two of them belong to one
/// column where cells share two faces.
struct FaceRows {
  Buffer<Offset> offsets, begin;
  Buffer<Index> columns;
  Buffer<FaceEntry> entry;
};
/// face_order: as above; cells keep the mesh's numbers. Throws krilu::Error where that would be 2^31 columns or more.
FaceRows face_rows(const exec::Host& host, const Mesh& mesh, std::span<const Index> face_order);

/// Whether levels, on average, keep so many threads of the host busy.
bool wide_enough(const FaceLevels& levels, int threads);

/// By the faces in turn: d, and z from r.
void face_pivots(const FaceSteps& steps, const mesh::LduCoefficients& a, Index cells, double* d);
void face_sweeps(const FaceSteps& steps, const mesh::LduCoefficients& a, Index cells, const double* rd, const double* r,
                 double* z);

/// "dilu: zero pivot at cell 7 ...", by the mesh's number; and whether another numbering may help.
std::string face_pivot_sentence(Index cell, bool by_numbering = true);
/// Throws krilu::Error unless the strategy is automatic, serial or level-set, and not serial where there is no host.
void require_face_strategy(triangular::Strategy strategy, bool host);

/// Takes its values from an operator over faces.
template <class Space>
class FacePreconditioner : public Preconditioner<Space, double> {
 public:
  /// Takes the values of A, whose arrays may be read in place while the preconditioner is applied. Throws
  /// krilu::ZeroPivot, naming the mesh's cell.
  virtual void factor(const mesh::LduOperator<Space>& A) = 0;
  /// Not for matrices in other storages.
  void factor(const Values<Space, double>&, double) final {
    throw Error("a preconditioner over faces takes its values from an operator over faces");
  }
};

template <class Space>
class FaceDilu final : public FacePreconditioner<Space> {
  static constexpr bool on_cores = std::is_same_v<typename mesh::LoopsOn<Space>::Type, FaceLoops>;

 public:
  /// For matrices of A's mesh, in A's numbering. `automatic` is level-set on a device; on the host it is serial but for
  /// three threads and more with levels wide enough to feed them: a cell that gathers costs twice its faces in turn.
  FaceDilu(const mesh::LduOperator<Space>& A, const Mesh& mesh,
           triangular::Strategy strategy = triangular::Strategy::automatic)
      : space_(A.space()),
        cells_(A.cells()),
        rd_(space_.template allocate<double>(std::size_t(A.cells()))),
        bad_(space_.template allocate<Index>(1)) {
    require_face_strategy(strategy, on_cores);
    const auto cell_order = A.loops().cell_order(), face_order = A.loops().face_order();
    const bool choose = strategy == triangular::Strategy::automatic && std::is_same_v<Space, exec::Host>;
    serial_ = strategy == triangular::Strategy::serial || (choose && space_.threads() <= 2);
    FaceLevels levels;
    if (!serial_) {
      levels = face_levels(exec::Host(space_.threads()), mesh, cell_order, face_order);
      serial_ = choose && !wide_enough(levels, space_.threads());
    }
    if (serial_) {
      steps_ = face_steps(mesh, cell_order, face_order);
      return;
    }
    offsets_ = std::move(levels.offsets);
    cell_ = brought(levels.cell);
    begin_ = brought(levels.begin);
    split_ = brought(levels.split);
    entry_ = brought(levels.entry);
  }
  FaceDilu(const FaceDilu&) = delete;  // what is queued points to the steps
  FaceDilu& operator=(const FaceDilu&) = delete;

  using FacePreconditioner<Space>::factor;
  void factor(const mesh::LduOperator<Space>& A) override {
    a_ = A.coefficients();
    if (serial_)
      pivots_by_faces();
    else
      pivots_by_levels();
    const auto rd = rd_.view();
    const auto bad = bad_.scalar();
    space_.reduce(
        rd_.size(),
        KRILU_FN(Index i) {
          rd[i] = 1 / rd[i];
          return usable(rd[i]) ? Index(0) : Index(1);
        },
        KRILU_FN(Index count) { bad() = count; });
    Index count = 0;
    space_.copy_out(&count, bad_, 1);
    if (count > 0) {
      const Index cell = A.loops().cell_order()[first_bad()];
      throw ZeroPivot(face_pivot_sentence(cell), cell);
    }
  }
  using Preconditioner<Space, double>::apply;
  void apply(const double* r, double* z) override {
    if (serial_)
      sweeps_by_faces(r, z);
    else
      sweeps_by_levels(r, z);
  }

  std::size_t bytes() const override {
    return rd_.bytes() + bad_.bytes() + steps_.bytes() + cell_.bytes() + begin_.bytes() + split_.bytes() +
           entry_.bytes();
  }
  std::string description() const override {
    return serial_ ? "faces in turn, by one thread" : std::to_string(levels()) + " levels of cells";
  }
  std::optional<triangular::Report> triangular() const override {
    return triangular::Report{serial_ ? triangular::Strategy::serial : triangular::Strategy::level_set, {}, true};
  }
  Index levels() const { return serial_ || offsets_.empty() ? 0 : Index(offsets_.size()) - 1; }
  /// 1 / d of each cell, in the operator's numbering.
  const exec::Array<double>& reciprocals() const { return rd_; }

  // Parts of the above: public because nvcc takes kernels in public members only.

  void pivots_by_levels() {
    const auto diagonal = a_.diagonal, lower = a_.lower, upper = a_.upper;
    const auto d = rd_.view();
    const auto cell = cell_.view();
    const auto begin = begin_.view(), split = split_.view();
    const auto entry = entry_.view();
    for (std::size_t l = 0; l + 1 < offsets_.size(); ++l) {
      const Index first = offsets_[l];
      space_.for_each(
          std::size_t(offsets_[l + 1] - first), KRILU_FN(Index i) {
            const Index k = first + i, c = cell[k];
            double sum = diagonal[c];
            for (Offset e = begin[k]; e < split[k]; ++e) {
              const Index f = entry[e].face < 0 ? ~entry[e].face : entry[e].face;
              sum -= upper[f] * lower[f] / d[entry[e].other];
            }
            d[c] = sum;
          });
    }
  }
  void sweeps_by_levels(const double* r, double* z) {
    const auto lower = a_.lower, upper = a_.upper;
    const auto rd = rd_.view();
    const auto cell = cell_.view();
    const auto begin = begin_.view(), split = split_.view();
    const auto entry = entry_.view();
    for (std::size_t l = 0; l + 1 < offsets_.size(); ++l) {
      const Index first = offsets_[l];
      space_.for_each(
          std::size_t(offsets_[l + 1] - first), KRILU_FN(Index i) {
            const Index k = first + i, c = cell[k];
            const double rd_c = rd[c];
            double sum = rd_c * r[c];
            for (Offset e = begin[k]; e < split[k]; ++e) {
              const FaceEntry at = entry[e];
              sum -= rd_c * (at.face < 0 ? lower[~at.face] : upper[at.face]) * z[at.other];
            }
            z[c] = sum;
          });
    }
    for (std::size_t l = offsets_.size(); l-- > 1;) {
      const Index first = offsets_[l - 1];
      space_.for_each(
          std::size_t(offsets_[l] - first), KRILU_FN(Index i) {
            const Index k = first + i, c = cell[k];
            const double rd_c = rd[c];
            double sum = z[c];
            for (Offset e = begin[k + 1]; e-- > split[k];) {
              const FaceEntry at = entry[e];
              sum -= rd_c * (at.face < 0 ? lower[~at.face] : upper[at.face]) * z[at.other];
            }
            z[c] = sum;
          });
    }
  }

 private:
  /// Finite, and not zero.
  static KRILU_INLINE bool usable(double rd) { return rd != 0 && rd - rd == 0; }

  void pivots_by_faces() {
    if constexpr (on_cores)
      space_.enqueue([steps = &steps_, a = a_, cells = cells_, d = rd_.data()](const exec::Host&) {
        face_pivots(*steps, a, cells, d);
      });
  }
  void sweeps_by_faces(const double* r, double* z) {
    if constexpr (on_cores)
      space_.enqueue([steps = &steps_, a = a_, cells = cells_, rd = rd_.data(), r, z](const exec::Host&) {
        face_sweeps(*steps, a, cells, rd, r, z);
      });
  }
  /// Elimination carries what is bad to later cells only.
  std::size_t first_bad() const {
    std::vector<double> rd(rd_.size());
    space_.copy_out(rd.data(), rd_, rd.size());
    std::size_t i = 0;
    while (i + 1 < rd.size() && usable(rd[i])) ++i;
    return i;
  }
  template <class T>
  exec::Array<T> brought(const Buffer<T>& from) const {
    auto to = space_.template allocate<T>(from.size());
    space_.copy_in(to, from.data(), from.size());
    return to;
  }

  Space space_;
  Index cells_ = 0;
  bool serial_ = false;
  mesh::LduCoefficients a_;
  exec::Array<double> rd_;
  exec::Array<Index> bad_;
  FaceSteps steps_;
  std::vector<Index> offsets_;
  exec::Array<Index> cell_;
  exec::Array<Offset> begin_, split_;
  exec::Array<FaceEntry> entry_;
};

extern template class FaceDilu<exec::Host>;
extern template class FaceDilu<exec::Emulated>;

/// DILU over faces as a space has it: on a GPU in another way unless levels are asked for (face_dilu.cuh).
template <class Space>
struct FaceDiluOn {
  static std::unique_ptr<FacePreconditioner<Space>> make(const mesh::LduOperator<Space>& A, const Mesh& mesh,
                                                         triangular::Strategy strategy) {
    return std::make_unique<FaceDilu<Space>>(A, mesh, strategy);
  }
};

}  // namespace krilu::precond
