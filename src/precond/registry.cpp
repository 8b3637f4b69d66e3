// SPDX-License-Identifier: Apache-2.0
#include "precond/registry.hpp"

#include "base/names.hpp"
#include "exec/emulated.hpp"
#include "precond/dilu.hpp"
#include "precond/ilu0.hpp"
#include "precond/jacobi.hpp"

namespace krilu::precond {

namespace {

template <class Space, class T>
using Maker = std::unique_ptr<Preconditioner<Space, T>> (*)(const Context<Space>&,
                                                            std::shared_ptr<const sparse::SplitPattern>);
template <class Space, class T>
struct Row {
  const char* name;
  bool triangular;
  Maker<Space, T> make;
};

#define KRILU_PRECOND(CLASS, ...)                                                                        \
  [](const Context<Space>& context,                                                                      \
     std::shared_ptr<const sparse::SplitPattern> pattern) -> std::unique_ptr<Preconditioner<Space, T>> { \
    return std::make_unique<CLASS<Space, T>>(context, std::move(pattern) __VA_OPT__(, ) __VA_ARGS__);    \
  }

template <class Space, class T>
constexpr Row<Space, T> table[] = {
    // name, triangular, maker
    {"none", false, KRILU_PRECOND(None)},
    {"jacobi", false, KRILU_PRECOND(Jacobi)},
    {"dilu", true, KRILU_PRECOND(Dilu, "dilu", false)},
    {"dic", true, KRILU_PRECOND(Dilu, "dic", true)},
    {"ilu0", true, KRILU_PRECOND(Ilu0, "ilu0", false)},
    {"ic0", true, KRILU_PRECOND(Ilu0, "ic0", true)},
};

#undef KRILU_PRECOND

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

template <class Space, class T>
std::unique_ptr<Preconditioner<Space, T>> make(const std::string& name, const Context<Space>& context,
                                               std::shared_ptr<const sparse::SplitPattern> pattern) {
  require_known(name);
  for (const auto& row : table<Space, T>)
    if (row.name == name) return row.make(context, std::move(pattern));
  return nullptr;
}

template std::unique_ptr<Preconditioner<exec::Host, double>> make(const std::string&, const Context<exec::Host>&,
                                                                  std::shared_ptr<const sparse::SplitPattern>);
template std::unique_ptr<Preconditioner<exec::Emulated, double>> make(const std::string&,
                                                                      const Context<exec::Emulated>&,
                                                                      std::shared_ptr<const sparse::SplitPattern>);

}  // namespace krilu::precond
