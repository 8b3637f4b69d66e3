// SPDX-License-Identifier: Apache-2.0
// krilu._krilu: the class Solver of krilu/solver.hpp for Python, over arrays that have the right types already. The
// Python code of the package makes them so, and is all that users see.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "krilu/error.hpp"
#include "krilu/solver.hpp"
#include "turns.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace krilu::python {

namespace {

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = Vector<const Index>;
using Doubles = Vector<const double>;

CsrView view_of(const Integers& offsets, const Integers& columns, const std::optional<Doubles>& values) {
  if (offsets.size() == 0) throw Error("a CSR matrix has one offset more than rows, and this one has none");
  const std::size_t rows = offsets.size() - 1;
  const Offset nnz = offsets.data()[rows];
  if (nnz < 0 || std::size_t(nnz) > columns.size() || (values && std::size_t(nnz) > values->size()))
    throw Error("the last offset of the matrix is " + std::to_string(nnz) + ", and it has " +
                std::to_string(columns.size()) + " columns of entries");
  return {Index(rows), Index(rows), offsets.data(), columns.data(), values ? values->data() : nullptr};
}

std::span<const double> span_of(const Doubles& v) { return {v.data(), v.size()}; }
std::span<double> span_of(const Vector<double>& v) { return {v.data(), v.size()}; }

/// An array on a GPU: its address, its entries, and the stream in whose order it is written.
using Place = std::tuple<std::uintptr_t, std::size_t, std::uintptr_t>;
template <class T>
DeviceSpan<T> there(const Place& p) {
  return {reinterpret_cast<T*>(std::get<0>(p)), std::get<1>(p), reinterpret_cast<void*>(std::get<2>(p))};
}

nb::object array_of(std::vector<double> v) {
  auto* held = new std::vector<double>(std::move(v));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return nb::ndarray<nb::numpy, double, nb::ndim<1>>(held->data(), {held->size()}, owner).cast();
}

nb::dict dict_of(Result& r) {
  nb::dict d;
  d["status"] = to_string(r.status);
  d["iterations"] = r.iterations;
  d["relative_residual"] = r.relative_residual;
  d["rmse"] = r.rmse;
  d["initial_residual"] = r.initial_residual;
  d["history"] = array_of(std::move(r.history));
  d["solver"] = r.solver;
  d["precond"] = r.precond;
  d["triangular"] = r.triangular;
  d["ordering"] = r.ordering;
  d["scaling"] = r.scaling;
  d["device"] = r.device;
  d["precision"] = r.precision;
  d["outer_iterations"] = r.outer_iterations;
  d["values_lost"] = r.values_lost;
  d["threads"] = r.threads;
  d["bytes"] = r.bytes;
  d["seconds"] = nb::make_tuple(r.seconds.analyse, r.seconds.factor, r.seconds.solve);
  d["notes"] = r.notes;
  nb::list rungs;
  for (const Rung& rung : r.rungs)
    rungs.append(nb::make_tuple(rung.what, rung.arguments, to_string(rung.status), rung.iterations,
                                rung.relative_residual, rung.seconds, rung.why_left));
  d["rungs"] = rungs;
  return d;
}

Norm norm_by_name(const std::string& name) {
  if (name == "true2") return Norm::true2;
  if (name == "openfoam") return Norm::openfoam;
  throw Error("unknown norm '" + name + "': there are true2 and openfoam");
}

/// A krilu::Solver with its turns.
struct Shared {
  explicit Shared(Options options) : solver(std::move(options)) {}
  Solver solver;
  Turns turns;

  /// What takes no time is not worth another thread.
  template <class F>
  auto look(F f) {
    decltype(f()) found{};
    turns.run(false, nullptr, [&] { found = f(); });
    return found;
  }
};

/// The calls whose arrays are on the solver's GPU: tuples of address, entries and stream.
void add_calls_there(nb::class_<Shared>& type) {
  type.def(
          "analyse_there",
          [](Shared& s, bool main, const Integers& offsets, const Integers& columns, const Place& values) {
            const CsrView a = view_of(offsets, columns, std::nullopt);
            s.turns.run(main, nullptr, [&] { s.solver.analyse(a, there<const double>(values)); });
          },
          "main"_a, "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a)
      .def(
          "setup_there",
          [](Shared& s, bool main, const Integers& offsets, const Integers& columns, const Place& values) {
            const CsrView a = view_of(offsets, columns, std::nullopt);
            s.turns.run(main, nullptr, [&] { s.solver.setup(a, there<const double>(values)); });
          },
          "main"_a, "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a)
      .def(
          "factor_there",
          [](Shared& s, bool main, const Place& values) {
            s.turns.run(main, nullptr, [&] { s.solver.factor(there<const double>(values)); });
          },
          "main"_a, "values"_a)
      .def(
          "has_pattern",
          [](Shared& s, bool main, const Place& offsets, const Place& columns) {
            bool has = false;
            s.turns.run(main, nullptr,
                        [&] { has = s.solver.has_pattern(there<const Offset>(offsets), there<const Index>(columns)); });
            return has;
          },
          "main"_a, "offsets"_a, "columns"_a)
      .def(
          "solve_there",
          [](Shared& s, bool main, const Place& b, const Place& x) {
            Monitor monitor;
            Result r;
            s.turns.run(main, &monitor,
                        [&] { r = s.solver.solve(there<const double>(b), there<double>(x), &monitor); });
            return dict_of(r);
          },
          "main"_a, "b"_a, "x"_a, "x: the guess on entry, the solution on return.")
      .def(
          "apply_there",
          [](Shared& s, bool main, const Place& r, const Place& z) {
            s.turns.run(main, nullptr, [&] { s.solver.apply(there<const double>(r), there<double>(z)); });
          },
          "main"_a, "r"_a, "z"_a)
      .def(
          "gpu", [](Shared& s) { return s.look([&] { return s.solver.gpu(); }); },
          "The number of the GPU that it works on, or -1.");
}

void add_solver(nb::module_& m) {
  nb::class_<Shared> type(m, "Solver",
                          "krilu::Solver; see krilu.Solver. `main` says that the caller is the main thread.");
  type.def(
          "__init__",
          [](Shared* self, std::string solver, std::string precond, std::string triangular, std::string ordering,
             std::string scaling, std::string device, int threads, int restart, double rtol, double atol,
             const std::string& norm, int max_iterations, double shift, std::string precision, std::string basis,
             int inner_iterations, int outer_iterations, double inner_tolerance) {
            Options o;
            o.solver = std::move(solver);
            o.precond = std::move(precond);
            o.triangular = std::move(triangular);
            o.ordering = std::move(ordering);
            o.scaling = std::move(scaling);
            o.device = std::move(device);
            o.threads = threads;
            o.restart = restart;
            o.rtol = rtol;
            o.atol = atol;
            o.norm = norm_by_name(norm);
            o.max_iterations = max_iterations;
            o.shift = shift;
            o.precision = std::move(precision);
            o.basis = std::move(basis);
            o.inner_iterations = inner_iterations;
            o.outer_iterations = outer_iterations;
            o.inner_tolerance = inner_tolerance;
            new (self) Shared(std::move(o));
          },
          nb::kw_only(), "solver"_a, "precond"_a, "triangular"_a, "ordering"_a, "scaling"_a, "device"_a, "threads"_a,
          "restart"_a, "rtol"_a, "atol"_a, "norm"_a, "max_iterations"_a, "shift"_a, "precision"_a, "basis"_a,
          "inner_iterations"_a, "outer_iterations"_a, "inner_tolerance"_a)
      .def(
          "analyse",
          [](Shared& s, bool main, const Integers& offsets, const Integers& columns, std::optional<Doubles> values) {
            const CsrView a = view_of(offsets, columns, values);
            s.turns.run(main, nullptr, [&] { s.solver.analyse(a); });
          },
          "main"_a, "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert().none())
      .def(
          "factor",
          [](Shared& s, bool main, const Integers& offsets, const Integers& columns, const Doubles& values) {
            const CsrView a = view_of(offsets, columns, values);
            s.turns.run(main, nullptr, [&] { s.solver.factor(a); });
          },
          "main"_a, "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert())
      .def(
          "setup",
          [](Shared& s, bool main, const Integers& offsets, const Integers& columns, const Doubles& values) {
            const CsrView a = view_of(offsets, columns, values);
            s.turns.run(main, nullptr, [&] { s.solver.setup(a); });
          },
          "main"_a, "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert())
      .def(
          "solve",
          [](Shared& s, bool main, const Doubles& b, const Vector<double>& x) {
            Monitor monitor;
            Result r;
            s.turns.run(main, &monitor, [&] { r = s.solver.solve(span_of(b), span_of(x), &monitor); });
            return dict_of(r);
          },
          "main"_a, "b"_a.noconvert(), "x"_a.noconvert(), "x: the guess on entry, the solution on return.")
      .def(
          "apply",
          [](Shared& s, bool main, const Doubles& r, const Vector<double>& z) {
            s.turns.run(main, nullptr, [&] { s.solver.apply(span_of(r), span_of(z)); });
          },
          "main"_a, "r"_a.noconvert(), "z"_a.noconvert())
      .def(
          "set_tolerances",
          [](Shared& s, double rtol, double atol) {
            s.turns.run(false, nullptr, [&] { s.solver.set_tolerances(rtol, atol); });
          },
          "rtol"_a, "atol"_a)
      .def("counts",
           [](Shared& s) {
             const Solver::Counts c = s.look([&] { return s.solver.counts(); });
             return nb::make_tuple(c.analyses, c.factorisations, c.solves);
           })
      .def("rows", [](Shared& s) { return s.look([&] { return s.solver.rows(); }); })
      .def("bytes", [](Shared& s) { return s.look([&] { return s.solver.bytes(); }); })
      .def("explanation", [](Shared& s) { return s.look([&] { return s.solver.explanation(); }); });
  add_calls_there(type);
}

}  // namespace

}  // namespace krilu::python

NB_MODULE(_krilu, m) {
  m.doc() = "The solvers of the C++ library. Use the package krilu, which stands on this module.";
  m.attr("version") = KRILU_VERSION;
  const nb::exception<krilu::Error> error(m, "Error", PyExc_ValueError);
  nb::exception<krilu::ZeroPivot>(m, "ZeroPivot", error.ptr());
  nb::exception<krilu::StructurallySingular>(m, "StructurallySingular", error.ptr());
  krilu::python::add_solver(m);
  m.def(
      "gpu_of", [](std::uintptr_t address) { return krilu::gpu_of(reinterpret_cast<const void*>(address)); },
      "address"_a, "The number of the GPU in whose memory that is, or -1.");
}
