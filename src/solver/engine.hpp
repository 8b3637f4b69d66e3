// SPDX-License-Identifier: Apache-2.0
// The solver on one execution space: the system there, preconditioner, method and vectors. The public Solver
// (solver.cpp) chooses the names; this makes the things and keeps them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "krilu/ranks.hpp"
#include "krylov/driver.hpp"
#include "krylov/method.hpp"
#include "precond/registry.hpp"
#include "solver/plan.hpp"
#include "solver/there.hpp"

namespace krilu::solver {

/// y = A x, by what is no stored matrix: vectors in the engine's memory, rows in the caller's order.
using Product = std::function<void(const double* x, double* y)>;

/// How a device's sums and boundaries go between ranks.
struct Connection {
  enum class By { kernels, library, host } by = By::kernels;
  std::string what = {};  // the library; or why there is none, where that was found out
  int at_once = 1;        // iterations, before the host looks whether it is the end
};

class Engine {
 public:
  virtual ~Engine() = default;
  /// The device, for reports: "host", "cuda:0 (NVIDIA H200)".
  virtual std::string device() const = 0;
  /// What it does with arrays in its own memory; null where that is the host's.
  virtual There* there() = 0;
  /// Throws krilu::Error where a is no valid square matrix, or too large for the device.
  virtual Facts look(const CsrView& a, bool values) = 0;
  /// After look, on a GPU: whether the rows are those of a lattice, whose blocks have few colours. False elsewhere.
  virtual bool on_lattice() = 0;
  /// After look, with the same a. graph: the pattern of A + A^T; a itself where its pattern is symmetric, or where the
  /// plan has no sweeps.
  virtual void analyse(const CsrView& a, const CsrView& graph, const Plan& plan) = 0;
  /// Collective, after analyse on all ranks of a team, with the same plan: opens what they reach one another by.
  virtual Connection connect(const Plan& plan) = 0;
  /// `seen`: the values are those that look saw.
  virtual void factor(const CsrView& a, bool seen) = 0;
  /// The caller's values are not asked for again: a device may let its copy of them go.
  virtual void forget_values() = 0;
  /// Launches of one application of a preconditioner in coloured blocks on a GPU; 0 elsewhere.
  virtual Index launches() const = 0;
  /// After factor: what an iteration is made of, timed now.
  virtual Costs costs() = 0;
  /// Another preconditioner on the same analysis, where a pivot of the one before was zero.
  virtual void replace_preconditioner(const CsrView& a, const std::string& name) = 0;
  virtual void set_tolerances(double rtol, double atol) = 0;
  /// Of the next solves: see krylov/control.hpp.
  virtual void set_patience(const krylov::Patience& patience) = 0;
  /// The limit of the next solves in iterations.
  virtual void set_max_iterations(int most) = 0;
  /// The factored matrix as the caller handed it over; not after forget_values. missing_diagonal: rows whose diagonal
  /// the caller did not store, ascending.
  virtual CsrMatrix matrix(std::span<const Index> missing_diagonal) const = 0;
  /// `from_zero`: x holds zeros.
  virtual krylov::Outcome solve(std::span<const double> b, std::span<double> x, bool from_zero, Monitor& monitor) = 0;
  /// After factor: z = M^-1 r, of as many entries as rows, in the caller's order.
  virtual void apply(std::span<const double> r, std::span<double> z) = 0;
  /// Whether this rank of a team failed in the middle of a solve or an application, since analyse: the others, who did
  /// not know, are elsewhere.
  virtual bool gave_up() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual std::optional<triangular::Report> triangular() const = 0;
  /// What the analysis found, of the matrix and of the preconditioner's own, for people.
  virtual std::string shape() const = 0;
  virtual std::string preconditioner() const = 0;
  /// The format of products, where another than that of the sweeps was chosen for them.
  virtual std::string format() const = 0;
};

/// What callers may ask for whose vectors live in the engine's own memory.
template <class Space>
class EngineIn : public Engine, public There {
 public:
  using There::factor_there;
  using There::solve_there;
  explicit EngineIn(Space space) : ex_(std::move(space)) {}
  const Space& space() const { return ex_; }
  /// After analyse: as a member of the team, where there is one.
  virtual const Space& member() const = 0;
  /// factor, where the values stand in the engine's memory, in the order of a's entries. Of a only the pattern is read.
  void factor_there(const CsrView& a, const exec::Array<double>& values) { factor_there(a, values.data(), false); }
  /// A x = b from x = 0; b and x of as many entries as rows, in the caller's order. Products by `product` where there
  /// is one, which in a team includes what the others add, else with the factored matrix.
  virtual krylov::Outcome solve_there(const double* b, double* x, const Product& product, Monitor& monitor) = 0;

 protected:
  Space ex_;
};

/// The way in for rooms above this one.
struct Inside {
  static Engine& engine(Solver& solver);
  /// After analyse: of the whole matrix, with its values where they were looked at.
  static bool symmetric(const Solver& solver);
};

/// A rank's, where there is a team.
std::unique_ptr<Engine> make_host_engine(const Options& options, const Team& team = {});
std::unique_ptr<Engine> make_emulated_engine(const Options& options, const Team& team = {});
/// GPU `number`. Throws krilu::Error where there is none.
std::unique_ptr<Engine> make_cuda_engine(const Options& options, int number, const Team& team = {});
/// GPUs that this build and this machine can use.
int cuda_devices();

}  // namespace krilu::solver
