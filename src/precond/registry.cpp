// SPDX-License-Identifier: Apache-2.0
#include "precond/registry.hpp"

#include "base/names.hpp"
#include "exec/emulated.hpp"
#include "precond/registry_table.hpp"

namespace krilu::precond {

namespace {

const auto& rows = table<exec::Host, double>;

}  // namespace

const std::vector<std::string>& names() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> n;
    for (const auto& row : rows) n.emplace_back(row.name);
    return n;
  }();
  return list;
}

void require_known(const std::string& name) { require_name("preconditioner", name, names()); }

bool is_triangular(const std::string& name) {
  for (const auto& row : rows)
    if (row.name == name) return row.triangular;
  return false;
}

template std::unique_ptr<Preconditioner<exec::Host, double>> make(const std::string&, const Context<exec::Host>&,
                                                                  std::shared_ptr<const sparse::SplitPattern>);
template std::unique_ptr<Preconditioner<exec::Emulated, double>> make(const std::string&,
                                                                      const Context<exec::Emulated>&,
                                                                      std::shared_ptr<const sparse::SplitPattern>);

}  // namespace krilu::precond
