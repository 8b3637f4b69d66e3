// SPDX-License-Identifier: GPL-3.0-or-later
#include "plans.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "PstreamReduceOps.H"
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

namespace {

std::uint64_t scrambled(std::uint64_t position, std::uint64_t value) {
  std::uint64_t z = value + position * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9u;
  return z ^ (z >> 32);
}

}  // namespace

/// One pass over two labels a face, in a plain loop for vectors: less than a product with the matrix, which reads the
/// same labels and more, and of which a solve forms two or three before its first iteration.
std::uint64_t kriluPattern(const lduMesh& mesh) {
  const lduAddressing& addressing = mesh.lduAddr();
  const labelUList &lower = addressing.lowerAddr(), &upper = addressing.upperAddr();
  const label* const owner = lower.begin();
  const label* const neighbour = upper.begin();
  const auto faces = std::size_t(lower.size());
  std::uint64_t sum = 0;
  for (std::size_t f = 0; f < faces; ++f)
    sum += scrambled(f, std::uint64_t(owner[f]) << 32 | std::uint64_t(neighbour[f]));
  std::uint64_t hash = scrambled(scrambled(faces, std::uint64_t(addressing.size())), sum);
  const lduInterfacePtrsList interfaces(mesh.interfaces());
  for (label i = 0; i < interfaces.size(); ++i)
    if (interfaces.set(i)) {
      const labelUList& cells = addressing.patchAddr(i);
      sum = std::uint64_t(cells.size());
      for (label k = 0; k < cells.size(); ++k) sum += scrambled(std::uint64_t(k), std::uint64_t(cells[k]));
      hash += scrambled(~std::uint64_t(i), sum);
    }
  if (UPstream::parRun()) {
    hash = scrambled(std::uint64_t(UPstream::myProcNo(mesh.comm())), hash);
    reduce(hash, sumOp<std::uint64_t>(), UPstream::msgType(), mesh.comm());
  }
  return hash;
}

/// MeshObject's own asks for the mesh's name, and an lduMesh has none.
const kriluPlans& kriluPlans::New(const lduMesh& mesh) {
  const objectRegistry& registry = mesh.thisDb();
  if (registry.foundObject<kriluPlans>(typeName)) return registry.lookupObject<kriluPlans>(typeName);
  auto* plans = new kriluPlans(mesh);
  regIOobject::store(static_cast<TopologicalMeshObject<lduMesh>*>(plans));
  return *plans;
}

kriluPlan& kriluPlans::find(const lduMesh& mesh, std::uint64_t pattern, const std::string& options) const {
  const label comm = mesh.comm();
  const auto same_rows = [&](const Kept& k) { return k.comm == comm && k.pattern == pattern; };
  const auto at =
      std::find_if(plans_.begin(), plans_.end(), [&](const Kept& k) { return same_rows(k) && k.options == options; });
  if (at != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, at);
    plans_.front().mesh = &mesh;
    return plans_.front().plan;
  }
  constexpr int most_patterns = 2;  // of one mesh
  int patterns = 1;
  plans_.remove_if(
      [&](const Kept& k) { return k.mesh == &mesh && k.options == options && ++patterns > most_patterns; });
  Kept made{&mesh, comm, pattern, options, {}};
  const auto other =
      std::find_if(plans_.begin(), plans_.end(), [&](const Kept& k) { return same_rows(k) && k.plan.rows; });
  if (other != plans_.end()) {
    made.plan.rows = other->plan.rows;
    made.plan.coupling = other->plan.coupling;
  }
  plans_.push_front(std::move(made));
  if (debug) Info << "kriluPlans: another plan, of " << label(plans_.size()) << " that are kept" << endl;
  return plans_.front().plan;
}

}  // namespace Foam
