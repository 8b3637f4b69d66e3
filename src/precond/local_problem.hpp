// SPDX-License-Identifier: Apache-2.0
// What a preconditioner of the forms in spec.hpp factors: the matrices of all parts as one block diagonal matrix in
// local rows, which stand part after part. One part without overlap is the matrix itself. Host memory, integers only.
// Source: Cai and Sarkis (1999), A restricted additive Schwarz preconditioner; Chen, Liu and Yang (2014) for solving
// all parts as one system.
#pragma once

#include <string>
#include <vector>

#include "exec/host.hpp"
#include "precond/elimination.hpp"
#include "precond/fill.hpp"
#include "precond/spec.hpp"

namespace krilu::precond {

struct LocalProblem {
  std::vector<Index> offsets;       // parts + 1: local rows of each part
  std::vector<Index> row;           // of each local row: the caller's; empty where they are the same
  std::vector<std::uint8_t> owned;  // its part's own, and not overlap; empty: all are
  FilledPattern pattern;            // of the factors; for ilut of the matrices alone
  std::vector<Offset> diagonal;     // of each local row: its position in the pattern

  Index rows() const { return offsets.back(); }
  Index parts() const { return Index(offsets.size()) - 1; }
  Index caller_row(Index local) const { return row.empty() ? local : row[std::size_t(local)]; }
  EliminationPattern elimination() const { return {pattern.view(rows()), diagonal.data(), offsets}; }
  std::size_t bytes() const;

  /// The caller's values over the pattern, zero where it has none. |a_ii| grows by shift times the largest magnitude of
  /// the caller's row, in the sign of a_ii (plus for 0).
  void gather(const exec::Host& host, const CsrView& caller, double shift, double* local) const;
};

/// Parts that suit the sweeps: up to 2,500 rows each, so that a GPU's multiprocessor holds four in its shared memory,
/// and so many that none of an H200's is idle, as long as that leaves them 256 rows.
Index parts_for(Index rows);

LocalProblem local_problem(const exec::Host& host, const CsrView& a, const Spec& spec);

/// "512 parts of up to 2,011 rows, overlap included: 1.32 local rows a row".
std::string describe(const LocalProblem& p, Index rows);

}  // namespace krilu::precond
