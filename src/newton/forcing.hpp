// SPDX-License-Identifier: Apache-2.0
// Forcing terms: how well each linear system of an inexact Newton method is solved. Numbers only.
//
// Source: Eisenstat, Walker, Choosing the forcing terms in an inexact Newton method, SIAM J. Sci. Comput. 17 (1996),
// choices 1 and 2 with their safeguards; Kelley, Iterative Methods for Linear and Nonlinear Equations (1995), 6.3, for
// the end, where nothing is gained by going below what the target asks.
#pragma once

#include <string>

namespace krilu::newton {

struct ForcingRule {
  enum class Kind { choice_1, choice_2, fixed } kind = Kind::choice_2;
  double fixed = 0;
};
/// Of "eisenstat-walker-1", "eisenstat-walker-2" or "fixed:ETA". Throws krilu::Error for anything else.
ForcingRule forcing_by_name(const std::string& name);

class Forcing {
 public:
  Forcing(ForcingRule rule, double first, double most) : rule_(rule), first_(first), most_(most) {}

  /// Of the next step, from F(x) with this norm; the solve is content at `target`.
  double next(double norm, double target);
  /// The step was taken: the linear model's norm ||F + s J d|| at its end, s being the step's length.
  void took(double norm_before, double model) {
    before_ = norm_before;
    model_ = model;
  }

 private:
  ForcingRule rule_;
  double first_, most_;
  double eta_ = 0;                 // of the last step
  double before_ = 0, model_ = 0;  // ||F|| where it began, and the model's at its end
};

}  // namespace krilu::newton
