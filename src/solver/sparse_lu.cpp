// SPDX-License-Identifier: Apache-2.0
#include "solver/sparse_lu.hpp"

#include <fmt/format.h>

#include "krilu/error.hpp"

#if defined(KRILU_HAS_SUPERLU)

#include <slu_ddefs.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "schedule/nested_dissection.hpp"
#include "sparse/csr.hpp"

namespace krilu::solver {

namespace {

constexpr std::int64_t most_positions = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t most_entries = 1'000'000'000;  // of a factor: exchanges may double it before positions overflow
constexpr double bytes_an_entry = 32;                 // foreseen: 8 in L, 12 in U, and what growing arrays waste
constexpr double diagonal_threshold = 0.01;           // least pivot over its column's largest entry, on the diagonal

/// The power of two next below 1 / largest; 1 for 0.
double scale_for(double largest) {
  int exponent = 0;
  if (largest > 0) std::frexp(largest, &exponent);
  return std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
}

bool full_diagonal(const CsrView& a) {
  const sparse::DiagonalFacts facts = sparse::diagonal_facts(a);
  return facts.missing == 0 && facts.zero == 0;
}

}  // namespace

struct SparseLu::Body {
  Outcome outcome = Outcome::too_large;
  double bytes = 0;
  std::vector<double> row_scale, column_scale;
  std::vector<int> row_place, column_place;  // where SuperLU has put row i and column j
  SuperMatrix lower{}, upper{};
  bool factored = false;

  void factor(const CsrView& a, std::size_t memory);
  bool foresee(const CsrView& a, const CsrView& transpose, bool diagonal, std::size_t memory);
  void run(SuperMatrix& columns, bool diagonal);

  ~Body() {
    if (!factored) return;
    Destroy_SuperNode_Matrix(&lower);
    Destroy_CompCol_Matrix(&upper);
  }
};

void SparseLu::Body::factor(const CsrView& a, std::size_t memory) {
  const auto n = std::size_t(a.rows);
  // SuperLU counts its work arrays' bytes and its first guess of the factors' entries in 32 bits.
  if (a.nnz() > most_positions / sp_ienv(6) || std::int64_t(n) * (4 * (2 * sp_ienv(1) + 8)) > most_positions) {
    bytes = std::numeric_limits<double>::infinity();
    return;
  }
  CsrMatrix transpose = sparse::transpose(a);  // its rows are A's columns, as SuperLU wants them
  const bool diagonal = full_diagonal(a);
  if (!foresee(a, transpose, diagonal, memory)) return;

  row_scale.assign(n, 0);
  column_scale.assign(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (Offset p = a.offsets[i]; p < a.offsets[i + 1]; ++p)
      row_scale[i] = std::max(row_scale[i], std::abs(a.values[p]));
    row_scale[i] = scale_for(row_scale[i]);
  }
  for (std::size_t j = 0; j < n; ++j) {
    const auto begin = std::size_t(transpose.offsets[j]), end = std::size_t(transpose.offsets[j + 1]);
    for (std::size_t p = begin; p < end; ++p) {
      transpose.values[p] *= row_scale[std::size_t(transpose.columns[p])];
      column_scale[j] = std::max(column_scale[j], std::abs(transpose.values[p]));
    }
    column_scale[j] = scale_for(column_scale[j]);
    for (std::size_t p = begin; p < end; ++p) transpose.values[p] *= column_scale[j];
  }

  std::vector<int_t> offsets(transpose.offsets.begin(), transpose.offsets.end());
  std::vector<int_t> rows(transpose.columns.begin(), transpose.columns.end());
  SuperMatrix columns{};
  dCreate_CompCol_Matrix(&columns, a.rows, a.cols, int_t(a.nnz()), transpose.values.data(), rows.data(), offsets.data(),
                         SLU_NC, SLU_D, SLU_GE);
  run(columns, diagonal);
  Destroy_SuperMatrix_Store(&columns);
}

/// Orders the columns; whether the factors will have room.
bool SparseLu::Body::foresee(const CsrView& a, const CsrView& transpose, bool diagonal, std::size_t memory) {
  const auto n = std::size_t(a.rows);
  const double room = double(memory) / bytes_an_entry;
  const auto most = std::int64_t(std::min(room, double(most_entries)));
  std::int64_t entries = 0;
  row_place.resize(n);
  column_place.resize(n);
  if (diagonal) {
    const CsrMatrix adjacency = sparse::adjacency(a);
    const schedule::Order order = schedule::nested_dissection(adjacency);
    entries = schedule::factor_entries(adjacency, order, most);
    for (std::size_t k = 0; k < n; ++k) column_place[std::size_t(order[k])] = int(k);
  } else {
    std::vector<int_t> offsets(transpose.offsets, transpose.offsets + n + 1);
    std::vector<int_t> rows(transpose.columns, transpose.columns + a.nnz());
    SuperMatrix pattern{};
    dCreate_CompCol_Matrix(&pattern, a.rows, a.cols, int_t(a.nnz()), nullptr, rows.data(), offsets.data(), SLU_NC,
                           SLU_D, SLU_GE);
    get_perm_c(COLAMD, &pattern, column_place.data());
    Destroy_SuperMatrix_Store(&pattern);
    schedule::Order order(n);
    for (std::size_t j = 0; j < n; ++j) order[std::size_t(column_place[j])] = Index(j);
    entries = schedule::factor_entries_with_exchanges(a, transpose, order, most);
  }
  bytes = double(entries) * bytes_an_entry;
  return entries <= most;
}

void SparseLu::Body::run(SuperMatrix& columns, bool diagonal) {
  const int n = int(columns.ncol);
  superlu_options_t options;
  set_default_options(&options);
  options.PrintStat = NO;
  options.SymmetricMode = diagonal ? YES : NO;
  options.DiagPivotThresh = diagonal ? diagonal_threshold : 1.0;
  std::vector<int> tree(std::size_t(n), 0);
  SuperMatrix ordered{};
  sp_preorder(&options, &columns, column_place.data(), tree.data(), &ordered);
  SuperLUStat_t statistics;
  StatInit(&statistics);
  GlobalLU_t global{};
  int_t info = 0;
  dgstrf(&options, &ordered, sp_ienv(2), sp_ienv(1), tree.data(), nullptr, 0, column_place.data(), row_place.data(),
         &lower, &upper, &global, &statistics, &info);
  StatFree(&statistics);
  Destroy_CompCol_Permuted(&ordered);
  if (info > n) {  // out of memory, with the factors half made
    for (void* part : {global.lusup, global.ucol, static_cast<void*>(global.lsub), static_cast<void*>(global.usub)})
      SUPERLU_FREE(part);
    return;
  }
  if (info < 0) throw Error(fmt::format("SuperLU refused argument {} of dgstrf", -std::int64_t(info)));
  factored = true;
  outcome = info == 0 ? Outcome::ready : Outcome::singular;
  const auto* l = static_cast<const SCformat*>(lower.Store);
  const auto* u = static_cast<const NCformat*>(upper.Store);
  bytes = 8.0 * double(l->nzval_colptr[n]) + 4.0 * double(l->rowind_colptr[n]) + 12.0 * double(u->colptr[n]);
}

std::string SparseLu::name() { return fmt::format("SuperLU {}.{}", SUPERLU_MAJOR_VERSION, SUPERLU_MINOR_VERSION); }

SparseLu::SparseLu(const CsrView& a, std::size_t memory) : body_(std::make_unique<Body>()) {
  // Where a column has no row left SuperLU reads what is none of its own. With a pairing of rows and columns in which A
  // has entries that never happens: elimination by any entry of the pattern leaves such a pairing of the others.
  if (!schedule::has_full_structural_rank(a))
    body_->outcome = Outcome::singular;
  else
    body_->factor(a, memory);
}

void SparseLu::solve(double* block, Index columns, bool transposed) const {
  Body& f = *body_;
  const std::size_t n = f.row_scale.size();
  const std::vector<double>& before = transposed ? f.column_scale : f.row_scale;
  const std::vector<double>& after = transposed ? f.row_scale : f.column_scale;
  const auto scale = [&](const std::vector<double>& by) {
    for (std::size_t c = 0; c < std::size_t(columns); ++c)
      for (std::size_t i = 0; i < n; ++i) block[c * n + i] *= by[i];
  };
  scale(before);
  SuperMatrix right{};
  dCreate_Dense_Matrix(&right, int(n), columns, block, int(n), SLU_DN, SLU_D, SLU_GE);
  SuperLUStat_t statistics;
  StatInit(&statistics);
  int info = 0;
  dgstrs(transposed ? TRANS : NOTRANS, &f.lower, &f.upper, f.column_place.data(), f.row_place.data(), &right,
         &statistics, &info);
  StatFree(&statistics);
  Destroy_SuperMatrix_Store(&right);
  if (info != 0) throw Error(fmt::format("SuperLU refused argument {} of dgstrs", -info));
  scale(after);
}

#else

namespace krilu::solver {

struct SparseLu::Body {
  Outcome outcome = Outcome::missing;
  double bytes = 0;
};

std::string SparseLu::name() { return {}; }
SparseLu::SparseLu(const CsrView&, std::size_t) : body_(std::make_unique<Body>()) {}
void SparseLu::solve(double*, Index, bool) const { throw Error("krilu was built without SuperLU"); }

#endif

SparseLu::~SparseLu() = default;
SparseLu::Outcome SparseLu::outcome() const { return body_->outcome; }
std::size_t SparseLu::bytes() const {
  return body_->bytes < 1e18 ? std::size_t(body_->bytes) : std::size_t(1'000'000'000'000'000'000);
}

}  // namespace krilu::solver
