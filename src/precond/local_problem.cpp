// SPDX-License-Identifier: Apache-2.0
#include "precond/local_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "schedule/subdomains.hpp"
#include "sparse/block_diagonal.hpp"
#include "sparse/csr.hpp"

namespace krilu::precond {

Index parts_for(Index rows) {
  constexpr Index multiprocessors = 132, resident = 4 * multiprocessors, in_a_part = 2500, fewest = 256;
  const Index wanted = (rows + in_a_part - 1) / in_a_part;
  const Index together = wanted > resident ? resident : multiprocessors;
  return std::min((wanted + together - 1) / together * together, std::max<Index>(1, rows / fewest));
}

LocalProblem local_problem(const exec::Host& host, const CsrView& a, const Spec& spec) {
  LocalProblem p;
  const int level = spec.local == "iluk" ? spec.level : 0;
  const Index parts = spec.parts > 0 ? spec.parts : parts_for(a.rows);
  if (parts <= 1) {
    p.offsets = {0, a.rows};
    p.pattern = fill_pattern(host, a, level);
  } else {
    const CsrMatrix graph = sparse::adjacency(a);
    schedule::Subdomains s = schedule::subdomains(host, graph, parts, spec.overlap);
    const sparse::BlockDiagonal local = sparse::block_diagonal(host, a, s.offsets, s.row);
    p.pattern = fill_pattern(host, local.pattern(), level);
    for (Offset& source : p.pattern.source)
      if (source >= 0) source = local.source[std::size_t(source)];
    p.offsets = std::move(s.offsets);
    p.row = std::move(s.row);
    p.owned = std::move(s.owned);
  }
  p.diagonal = diagonal_positions(host, p.pattern.view(p.rows()));
  return p;
}

void LocalProblem::gather(const exec::Host& host, const CsrView& caller, double shift, double* local) const {
  host.for_each(pattern.source.size(), [source = pattern.source.data(), values = caller.values, local](Index k) {
    local[k] = source[k] >= 0 ? values[source[k]] : 0.0;
  });
  if (shift == 0) return;
  host.for_each_range(std::size_t(rows()), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const Index own = caller_row(i);
      double largest = 0;
      for (Offset k = caller.offsets[own]; k < caller.offsets[own + 1]; ++k)
        largest = std::max(largest, std::abs(caller.values[k]));
      double& d = local[diagonal[std::size_t(i)]];
      d += (d < 0 ? -shift : shift) * largest;
    }
  });
}

std::size_t LocalProblem::bytes() const {
  return (offsets.capacity() + row.capacity()) * sizeof(Index) + owned.capacity() +
         (pattern.offsets.capacity() + pattern.source.capacity() + diagonal.capacity()) * sizeof(Offset) +
         pattern.columns.capacity() * sizeof(Index);
}

std::string describe(const LocalProblem& p, Index rows) {
  if (p.parts() <= 1) return {};
  Index largest = 0;
  for (std::size_t k = 0; k + 1 < p.offsets.size(); ++k) largest = std::max(largest, p.offsets[k + 1] - p.offsets[k]);
  std::string text = fmt::format("{} parts of up to {} rows", p.parts(), largest);
  if (p.rows() > rows)
    text += fmt::format(", overlap included: {:.2f} local rows a row", double(p.rows()) / double(rows));
  return text;
}

}  // namespace krilu::precond
