// SPDX-License-Identifier: GPL-3.0-or-later
// What an entry of fvSolution with `solver krilu;` says.
#pragma once

#include <string>

#include "dictionary.H"
#include "krilu/solver.hpp"

namespace Foam {

struct kriluChoice {
  krilu::Options options;   // all but the tolerances
  bool knows_norm = true;   // the method follows OpenFOAM's residual; else it is asked for the 2-norm's reduction
  bool dump = false;        // write the systems
  word name;                // in logs: kriluDICCG
  std::string key() const;  // of what a krilu::Solver is made for
};

/// FatalIOError, with the list of what there is, for names that krilu does not have, and for keywords that look like
/// one of its own. Others are let pass, since OpenFOAM's solvers and MULES have theirs in the same place.
kriluChoice kriluRead(const dictionary& controls, bool symmetric, label maxIter);

/// A sentence of krilu in fvSolution's words: options of the command become keywords.
std::string kriluInFoamWords(std::string text);

}  // namespace Foam
