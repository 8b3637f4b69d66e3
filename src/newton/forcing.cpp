// SPDX-License-Identifier: Apache-2.0
#include "newton/forcing.hpp"

#include <algorithm>
#include <cmath>

#include "base/names.hpp"
#include "base/parse.hpp"
#include "krilu/error.hpp"

namespace krilu::newton {

ForcingRule forcing_by_name(const std::string& name) {
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  require_name("forcing term", kind, {"eisenstat-walker-1", "eisenstat-walker-2", "fixed"});
  if (kind != "fixed" && colon != std::string::npos)
    throw Error("forcing term " + name + ": " + kind + " has no number");
  if (name == "eisenstat-walker-1") return {ForcingRule::Kind::choice_1, 0};
  if (name == "eisenstat-walker-2") return {ForcingRule::Kind::choice_2, 0};
  double eta = 0;
  if (colon == std::string::npos || !parse(std::string_view(name).substr(colon + 1), eta) || !(eta > 0) || !(eta < 1))
    throw Error("forcing term " + name + ": fixed:ETA has a number between 0 and 1, as in fixed:1e-6");
  return {ForcingRule::Kind::fixed, eta};
}

double Forcing::next(double norm, double target) {
  constexpr double golden = 1.618033988749895;  // (1 + sqrt 5) / 2: choice 1's order of convergence
  constexpr double gamma = 0.9, order = 2;      // of choice 2
  constexpr double matters = 0.1;               // a safeguard below this is none
  if (rule_.kind == ForcingRule::Kind::fixed) return rule_.fixed;
  double eta = first_;
  if (before_ > 0) {
    double guard;
    if (rule_.kind == ForcingRule::Kind::choice_1) {
      eta = std::abs(norm - model_) / before_;
      guard = std::pow(eta_, golden);
    } else {
      eta = gamma * std::pow(norm / before_, order);
      guard = gamma * std::pow(eta_, order);
    }
    if (guard > matters) eta = std::max(eta, guard);
  }
  eta = std::min(eta, most_);
  // What remains to the target asks for no more than this.
  if (target > 0) eta = std::min(most_, std::max(eta, 0.5 * target / norm));
  return eta_ = eta;
}

}  // namespace krilu::newton
