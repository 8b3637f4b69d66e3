// SPDX-License-Identifier: Apache-2.0
#include "precond/spec.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/names.hpp"
#include "krilu/error.hpp"

namespace krilu::precond {

namespace {

/// Takes the arguments of one name from left to right.
class Arguments {
 public:
  Arguments(const std::string& name, std::string_view text) : name_(name), left_(text) {}

  const std::string& name() const { return name_; }
  bool empty() const { return left_.empty(); }
  std::string_view next() {
    const std::size_t comma = left_.find(',');
    const std::string_view one = left_.substr(0, comma);
    left_ = comma == std::string_view::npos ? std::string_view() : left_.substr(comma + 1);
    if (one.empty() || (comma != std::string_view::npos && left_.empty())) fail("an argument is missing");
    return one;
  }
  Index whole(const char* what, Index least) {
    const std::string_view text = next();
    Index value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least)
      fail(fmt::format("'{}' is not {}, a whole number from {}", text, what, least));
    return value;
  }
  double number(const char* what) {
    const std::string_view text = next();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || !std::isfinite(value))
      fail(fmt::format("'{}' is not {}, a number from 0", text, what));
    return value;
  }
  std::string_view rest() {
    const std::string_view all = left_;
    left_ = {};
    return all;
  }
  [[noreturn]] void fail(const std::string& why) const {
    std::string forms;
    for (const std::string& form : spec_forms()) forms += (forms.empty() ? "" : ", ") + form;
    throw Error(fmt::format("preconditioner '{}': {}; the forms are {}", name_, why, forms));
  }

 private:
  const std::string& name_;
  std::string_view left_;
};

void parse_local(std::string_view text, Arguments& outer, Spec& spec) {
  const std::size_t colon = text.find(':');
  spec.local = text.substr(0, colon);
  const bool has_arguments = colon != std::string_view::npos;
  if (spec.local != "dilu" && spec.local != "ilu0" && spec.local != "iluk" && spec.local != "ilut")
    outer.fail(fmt::format("'{}' is not dilu, ilu0, iluk[:LEVEL] or ilut[:MOST,TOLERANCE]", text));
  const bool takes_arguments = spec.local == "iluk" || spec.local == "ilut";
  if (has_arguments && !takes_arguments) outer.fail(fmt::format("{} takes no arguments", spec.local));
  if (!has_arguments) return;
  Arguments own(outer.name(), text.substr(colon + 1));
  if (spec.local == "iluk") {
    spec.level = own.whole("a level of fill", 0);
  } else {
    spec.most = own.whole("the most entries of a row", 0);
    spec.tolerance = own.number("a drop tolerance");
  }
  if (!own.empty()) outer.fail(fmt::format("'{}' is too much", own.rest()));
}

}  // namespace

const std::vector<std::string>& spec_forms() {
  static const std::vector<std::string> forms{"iluk[:LEVEL]", "ilut[:MOST,TOLERANCE]", "block-ilu[:PARTS[,LOCAL]]",
                                              "ras[:PARTS[,OVERLAP[,LOCAL]]]"};
  return forms;
}

void require_scaling_name(const std::string& name) {
  static const std::vector<std::string> names{"none", "rows", "both", "matching"};
  require_name("scaling", name, names);
}

Spec parse_spec(const std::string& name) {
  static const std::vector<std::string> kinds{"iluk", "ilut", "block-ilu", "ras"};
  const std::size_t colon = name.find(':');
  Spec spec;
  spec.kind = name.substr(0, colon);
  require_name("preconditioner", spec.kind, kinds);
  Arguments arguments(name, colon == std::string::npos ? std::string_view() : std::string_view(name).substr(colon + 1));
  if (colon != std::string::npos && arguments.empty()) arguments.fail("nothing stands after the colon");
  if (spec.kind == "iluk" || spec.kind == "ilut") {
    parse_local(name, arguments, spec);
    return spec;
  }
  spec.parts = 0;
  spec.local = "ilu0";
  if (!arguments.empty()) spec.parts = arguments.whole("a number of parts", 0);
  if (spec.kind == "ras") {
    spec.overlap = 1;
    if (!arguments.empty()) spec.overlap = int(arguments.whole("layers of overlap", 0));
  }
  if (!arguments.empty()) parse_local(arguments.rest(), arguments, spec);
  return spec;
}

}  // namespace krilu::precond
