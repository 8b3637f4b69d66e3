// SPDX-License-Identifier: Apache-2.0
// What a small residual does not say: where a few rows are larger by far than the others, as a penalty method makes
// them that fixes an x by 1e20 on the diagonal, the norm of b is theirs, and a residual next to nothing beside it may
// be as large as all that the other rows hold.
#pragma once

#include <span>
#include <string>

#include "krilu/matrix.hpp"

namespace krilu::solver {

/// For an x whose residual is at most rtol times the norm of b: the sentence that says which rows are the norm and how
/// large the residual of the others is; empty where rows are of one size, or the others are solved as well. Two looks
/// at A's entries, on this thread.
std::string unseen_rows(const CsrView& a, std::span<const double> b, std::span<const double> x, double rtol);

}  // namespace krilu::solver
