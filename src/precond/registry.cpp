// SPDX-License-Identifier: Apache-2.0
#include "precond/registry.hpp"

#include <fmt/format.h>

#include "base/names.hpp"
#include "exec/emulated.hpp"
#include "krilu/error.hpp"
#include "precond/registry_table.hpp"

namespace krilu::precond {

namespace {

const auto& registered = table<exec::Host, double>;

}  // namespace

const std::vector<std::string>& names() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> n;
    for (const auto& row : registered) n.emplace_back(row.kind);
    return n;
  }();
  return list;
}

std::string kind_of(const std::string& name) { return name.substr(0, name.find(':')); }

void require_known(const std::string& name) {
  require_name("preconditioner", kind_of(name), names());
  if (sweeps_of(name) == Sweeps::of_its_own)
    parse_spec(name);
  else if (kind_of(name) != name)
    throw Error(fmt::format("preconditioner '{}': {} takes no arguments", name, kind_of(name)));
}

Sweeps sweeps_of(const std::string& name) {
  for (const auto& row : registered)
    if (row.kind == kind_of(name)) return row.sweeps;
  return Sweeps::none;
}

template std::unique_ptr<Preconditioner<exec::Host, double>> make(const std::string&, const Context<exec::Host>&,
                                                                  std::shared_ptr<const sparse::SplitPattern>);
template std::unique_ptr<Preconditioner<exec::Emulated, double>> make(const std::string&,
                                                                      const Context<exec::Emulated>&,
                                                                      std::shared_ptr<const sparse::SplitPattern>);

}  // namespace krilu::precond
