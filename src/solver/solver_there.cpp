// SPDX-License-Identifier: Apache-2.0
// The public Solver's calls with arrays in the memory of its GPU (krilu/device_span.hpp). Their values stay there; what
// is wrong with them the host says, in its own words, of a copy that is made for that.
#include <fmt/format.h>

#include "solver/requests.hpp"
#include "solver/solver_body.hpp"

namespace krilu {

solver::There& Solver::Body::there() const {
  if (ranks()) throw Error("a rank of a team takes its matrix, b and x in host memory");
  if (solver::There* there = engine->there()) return *there;
  throw Error(
      fmt::format("the solver works on the host (device {}), and arrays on a GPU were handed to it: bring them "
                  "to host memory, or take --device cuda",
                  options.device));
}

void Solver::Body::admit(const void* array, std::size_t size, std::size_t entries, std::size_t alignment, void* stream,
                         const char* what) const {
  solver::There& memory = there();
  if (size != entries) throw Error(fmt::format("{} has {} entries, and {} are expected", what, size, entries));
  if (size == 0) return;
  if (!array) throw Error(fmt::format("{} has {} entries at no address: hand over where they stand", what, size));
  if (reinterpret_cast<std::uintptr_t>(array) % alignment != 0)
    throw Error(fmt::format("{} does not begin at a multiple of {} bytes: copy it to where it does", what, alignment));
  memory.admit(array, what, stream);
}

void Solver::analyse(const CsrView& pattern, DeviceSpan<const double> values) {
  body_->analyse({{pattern.rows, pattern.cols, pattern.offsets, pattern.columns, nullptr}, values});
}
void Solver::setup(const CsrView& pattern, DeviceSpan<const double> values) {
  body_->setup({{pattern.rows, pattern.cols, pattern.offsets, pattern.columns, nullptr}, values});
}

void Solver::factor(DeviceSpan<const double> values) {
  Body& s = *body_;
  s.agreed([&] {
    s.there();
    if (!s.analysed) throw Error("factor comes after analyse");
    if (s.pattern_here.offsets.empty())
      throw Error("values on the GPU are taken after an analysis that knew of them: call analyse(pattern, values)");
  });
  CsrView a = s.pattern_here;
  a.values = nullptr;
  s.factor({a, values});
}

/// In the ladder's rung, which is the host's.
bool Solver::Body::factor_rung_there(const Given& given) {
  Buffer<double> values(given.there->size);
  there().bring(values.data(), given.there->data, values.size());
  moved =
      "the matrix's values were brought to host memory, where the ladder's rung works that an earlier solve reached";
  CsrView a = given.a;
  a.values = values.data();
  return ladder->factor(a);
}

bool Solver::has_pattern(DeviceSpan<const Offset> offsets, DeviceSpan<const Index> columns) const {
  const Body& s = *body_;
  solver::There& memory = s.there();
  const CsrMatrix& mine = s.pattern_here;
  if (!s.analysed || offsets.size != mine.offsets.size() || columns.size != mine.columns.size()) return false;
  s.admit(offsets, offsets.size, "the array of offsets");
  s.admit(columns, columns.size, "the array of columns");
  return memory.same_pattern_there(mine, offsets.data, columns.data);
}

/// solver::begin_from.
bool Solver::Body::begin_there(const DeviceSpan<const double>& b, const DeviceSpan<double>& x) const {
  solver::There& memory = there();
  const auto n = std::size_t(rows);
  admit(b, n, "the right-hand side");
  admit(x, n, "the initial guess");
  if (n == 0) return true;
  if (b.data == x.data) throw Error("b and x are one array on the GPU: rungs above the first would not find b again");
  const solver::There::Sides seen = memory.examine_there(b.data, x.data);
  const bool zero = options.norm == Norm::true2 && seen.zero_b;
  if (!seen.odd && !zero) return seen.zero_x;
  std::vector<double> b_here(n), x_here(n);
  memory.bring(b_here.data(), b.data, n);
  memory.bring(x_here.data(), x.data, n);
  const bool from_zero =
      solver::begin_from(exec::Host(options.threads), n, options.norm, b_here, x_here, solver::rows_from_1);
  memory.send(x.data, x_here.data(), n);
  return from_zero;
}

Result Solver::solve(DeviceSpan<const double> b, DeviceSpan<double> x, Monitor* monitor) {
  Body& s = *body_;
  const auto n = std::size_t(s.rows);
  std::vector<double> b_here, x_here;
  Body::Sides sides;
  sides.begin = [&] {
    bool from_zero = false;
    s.agreed([&] { from_zero = s.begin_there(b, x); });
    return from_zero;
  };
  sides.run = [&](bool from_zero, Monitor& watch) { return s.there().solve_there(b.data, x.data, from_zero, watch); };
  sides.bring = [&]() -> solver::Ladder::Sides {
    b_here.resize(n);
    x_here.resize(n);
    s.there().bring(b_here.data(), b.data, n);
    s.there().bring(x_here.data(), x.data, n);
    return {b_here, x_here};
  };
  sides.end = [&](Result& r) {
    if (x_here.empty()) return;
    s.there().send(x.data, x_here.data(), n);
    r.notes.push_back("b and x were brought to host memory, where the ladder works beyond its first rung");
  };
  return s.solve(sides, monitor);
}

void Solver::apply(DeviceSpan<const double> r, DeviceSpan<double> z) {
  Body& s = *body_;
  solver::There& memory = s.there();
  if (!s.factored) throw Error("apply comes after analyse and factor");
  const auto n = std::size_t(s.rows);
  s.admit(r, n, "r");
  s.admit(z, n, "z");
  if (n == 0) return;
  if (!s.ladder || !s.ladder->stands()) return memory.apply_there(r.data, z.data);
  std::vector<double> r_here(n), z_here(n);
  memory.bring(r_here.data(), r.data, n);
  s.ladder->apply(r_here, z_here);
  memory.send(z.data, z_here.data(), n);
}

int Solver::gpu() const {
  const solver::There* there = body_->engine->there();
  return there ? there->gpu() : -1;
}

int gpu_of(const void* p) { return solver::gpu_of(p); }

}  // namespace krilu
