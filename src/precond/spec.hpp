// SPDX-License-Identifier: Apache-2.0
// A preconditioner's name as users write it: KIND, or KIND:ARGUMENTS for those that take some.
//
//   iluk[:LEVEL]                    ILU(LEVEL), 1 by default
//   ilut[:MOST,TOLERANCE]           ILUT(MOST, TOLERANCE), 10 and 0.01 by default
//   block-ilu[:PARTS[,LOCAL]]       parts of the graph, each with a factorisation of its own: LOCAL is dilu, ilu0 (the
//   ras[:PARTS[,OVERLAP[,LOCAL]]]   default) or one of the two above; PARTS 0, the default, leaves their number to
//   krilu
#pragma once

#include <string>
#include <vector>

#include "krilu/types.hpp"

namespace krilu::precond {

struct Spec {
  std::string kind;         // a name of the registry
  std::string local;        // what is factored: ilu0, dilu, iluk or ilut; empty for kinds without it
  int level = 1;            // of fill, in iluk
  Index most = 10;          // entries that ilut keeps in a row of each factor,
  double tolerance = 0.01;  //   and below which share of the row's norm it drops
  Index parts = 1;          // 0: chosen by the number of rows
  int overlap = 0;          // layers of neighbours
};

/// Throws krilu::Error, with the nearest name or what the arguments should be, for anything else.
Spec parse_spec(const std::string& name);

/// What is done to A before a factorisation of its own (rearranged.hpp says how).
struct Rearrangement {
  std::string scaling = "none";      // none, rows, both, matching
  std::string ordering = "natural";  // a name of schedule::order_by_name
};
/// Throws krilu::Error, with the nearest name, for what is no scaling.
void require_scaling_name(const std::string& name);

/// The kinds above with their arguments, for help texts.
const std::vector<std::string>& spec_forms();

}  // namespace krilu::precond
