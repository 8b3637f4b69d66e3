// SPDX-License-Identifier: GPL-3.0-or-later
#include "plans.hpp"

#include <algorithm>
#include <limits>
#include <sstream>
#include <vector>

#include "krilu/error.hpp"

namespace Foam {

defineTypeNameAndDebug(kriluPlans, 0);

kriluRows::kriluRows(const lduAddressing& addressing) {
  using krilu::Index;
  using krilu::Offset;
  const labelUList &lower = addressing.lowerAddr(), &upper = addressing.upperAddr();
  const auto cells = std::size_t(addressing.size()), faces = std::size_t(lower.size());
  if (cells + 2 * faces > std::size_t(std::numeric_limits<Offset>::max()))
    throw krilu::Error("the matrix has " + std::to_string(cells + 2 * faces) +
                       " entries on one rank, and krilu's hold fewer than 2^31: decompose the case into more parts");

  // Entries of each row in the sequence in which faces bring them, then by columns. Of OpenFOAM's faces, sorted by
  // owner and then by neighbour, nothing has to be sorted.
  struct Entry {
    Index column;
    Offset* place;
  };
  diagonal_.resize(cells);
  upper_.resize(faces);
  lower_.resize(faces);
  std::vector<Offset> begin(cells + 1, 0);
  for (std::size_t c = 0; c < cells; ++c) begin[c + 1] = 1;
  for (std::size_t f = 0; f < faces; ++f) {
    ++begin[std::size_t(lower[label(f)]) + 1];
    ++begin[std::size_t(upper[label(f)]) + 1];
  }
  for (std::size_t c = 0; c < cells; ++c) begin[c + 1] += begin[c];
  std::vector<Entry> entry(cells + 2 * faces);
  std::vector<Offset> next(begin.begin(), begin.end() - 1);
  const auto add = [&](label row, label column, Offset& place) {
    entry[std::size_t(next[std::size_t(row)]++)] = {Index(column), &place};
  };
  for (std::size_t f = 0; f < faces; ++f) add(upper[label(f)], lower[label(f)], lower_[f]);
  for (std::size_t c = 0; c < cells; ++c) add(label(c), label(c), diagonal_[c]);
  for (std::size_t f = 0; f < faces; ++f) add(lower[label(f)], upper[label(f)], upper_[f]);

  matrix_.rows = matrix_.cols = Index(cells);
  matrix_.offsets.resize(cells + 1);
  matrix_.columns.resize(entry.size());
  Offset at = 0;
  matrix_.offsets[0] = 0;
  for (std::size_t c = 0; c < cells; ++c) {
    const auto first = entry.begin() + begin[c], last = entry.begin() + begin[c + 1];
    const auto by_column = [](const Entry& a, const Entry& b) { return a.column < b.column; };
    if (!std::is_sorted(first, last, by_column)) std::stable_sort(first, last, by_column);
    for (auto e = first; e != last; ++e) {
      const bool again = e != first && e->column == (e - 1)->column;
      repeated_ = repeated_ || again;
      if (!again) matrix_.columns[std::size_t(at++)] = e->column;
      *e->place = at - 1;
    }
    matrix_.offsets[c + 1] = at;
  }
  matrix_.columns.resize(std::size_t(at));
  matrix_.values.resize(std::size_t(at));
}

std::int64_t kriluRows::fill(const lduMatrix& matrix) {
  double* const values = matrix_.values.data();
  if (repeated_) std::fill_n(values, matrix_.values.size(), 0.0);
  bool changed = version_ == 0 || repeated_;
  const auto put = [&](const krilu::Buffer<krilu::Offset>& place, const scalarField& from) {
    const scalar* const v = from.begin();
    const krilu::Offset* const at = place.data();
    const std::size_t n = place.size();
    if (repeated_) {
      for (std::size_t i = 0; i < n; ++i) values[at[i]] += v[i];
    } else if (changed) {
      for (std::size_t i = 0; i < n; ++i) values[at[i]] = v[i];
    } else {
      std::size_t i = 0;
      while (i < n && values[at[i]] == v[i]) ++i;
      changed = i < n;
      for (; i < n; ++i) values[at[i]] = v[i];
    }
  };
  put(diagonal_, matrix.diag());
  put(upper_, matrix.upper());
  put(lower_, matrix.lower());  // of a symmetric matrix: upper
  version_ += changed;
  return version_;
}

/// MeshObject's own asks for the mesh's name, and an lduMesh has none.
const kriluPlans& kriluPlans::New(const lduMesh& mesh) {
  const objectRegistry& registry = mesh.thisDb();
  if (registry.foundObject<kriluPlans>(typeName)) return registry.lookupObject<kriluPlans>(typeName);
  auto* plans = new kriluPlans(mesh);
  regIOobject::store(static_cast<TopologicalMeshObject<lduMesh>*>(plans));
  return *plans;
}

kriluPlan& kriluPlans::find(const lduMesh& mesh, const std::string& key) const {
  const lduAddressing& a = mesh.lduAddr();
  std::ostringstream text;
  text << &a << ' ' << a.size() << ' ' << a.lowerAddr().size() << ' ';
  const std::string address = text.str();
  const auto [at, is_new] = plans_.try_emplace(address + key);
  if (is_new)  // its rows may be those of another plan
    for (const auto& [name, plan] : plans_)
      if (plan.rows && name.starts_with(address)) {
        at->second.rows = plan.rows;
        at->second.coupling = plan.coupling;
      }
  return at->second;
}

}  // namespace Foam
