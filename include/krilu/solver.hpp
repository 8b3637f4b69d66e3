// SPDX-License-Identifier: Apache-2.0
// The solver for sparse linear systems A x = b: analyse once for a sparsity pattern, factor for every new set of
// values, solve for every right-hand side.
//
//   krilu::Solver solver(options);
//   solver.analyse(A);                       // pattern: ordering, levels, storage
//   for (each time step) {
//     solver.factor(A);                      // values of the same pattern: no new analysis
//     krilu::Result r = solver.solve(b, x);  // x holds the initial guess on entry, the solution on return
//   }
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "krilu/device_span.hpp"
#include "krilu/error.hpp"
#include "krilu/matrix.hpp"
#include "krilu/ranks.hpp"

namespace krilu {

enum class Status { converged, max_iterations, stagnated, breakdown, diverged, interrupted };
const char* to_string(Status s);

/// What the tolerance is held against.
///   true2:    ||b - A x||_2 <= max(rtol ||b||_2, atol), of the true residual.
///   openfoam: OpenFOAM's sum|b - A x| / normFactor, of the recurrence's residual, either below atol or reduced by rtol
///             from its value at the initial guess.
enum class Norm { true2, openfoam };

struct Options {
  std::string solver = "auto";      // auto, cg, bicgstab, gmres, fgmres, gmres-ir
  std::string precond = "auto";     // auto, none, jacobi, dilu, dic, ilu0, ic0, iluk[:LEVEL],
                                    // ilut[:MOST,TOLERANCE], block-ilu[:PARTS[,LOCAL]],
                                    // ras[:PARTS[,OVERLAP[,LOCAL]]]; LOCAL is dilu, ilu0, iluk.. or ilut..; and lu, a
                                    // direct factorisation (host, where krilu was built with SuperLU)
  std::string triangular = "auto";  // auto, serial (host), level-set, sync-free, tiled (GPU)
  std::string ordering = "auto";    // auto (host: natural, GPU: block-multicolour), natural, rcm, multicolour,
                                    // block-multicolour[:ROWS], metis[:PARTS]
  std::string scaling = "none";     // of what ilu0, iluk and ilut factor: none, rows, both, or matching, which also
                                    // permutes rows for a large diagonal. Host only. The system stays the caller's
  std::string device = "auto";      // auto (a GPU where there is one), host, cuda[:N], emulated
  int threads = 0;                  // of the host; 0: all
  int restart = 30;                 // GMRES and FGMRES: basis vectors before a restart
  double rtol = 1e-8;
  double atol = 0;
  Norm norm = Norm::true2;
  int max_iterations = 10000;  // of a solve, which ends after 10^7 whatever this is
  double shift = 0;  // added to |diagonal| when the preconditioner is formed, in units of the row's largest entry

  // Mixed precision: residual, correction and convergence test are in double; what is between them (inner) is not.
  std::string precision = "auto";  // arithmetic[/storage] of the inner solves: auto (fp32 for gmres-ir, else fp64),
                                   // fp64, fp32, fp32/fp16, fp32/bf16. fgmres alone stays in double and takes its
                                   // preconditioner in that precision
  std::string basis = "auto";      // what an inner GMRES keeps its basis in: auto, fp64, fp32, fp16, bf16
  int inner_iterations = 0;        // most in an inner solve; 0: 100 for gmres-ir, restart for gmres, an eighth of
                                   // max_iterations for cg and bicgstab, from 50 to 2000
  int outer_iterations = 0;    // most in one precision before it is raised; 0: 10 for gmres-ir, 2000 for gmres, else 40
  double inner_tolerance = 0;  // of an inner solve, relative; 0: follows the outer residual
};

/// Progress of a running solve, for another thread to read while solve() runs, and to stop it by. Lives as long as the
/// solve, and the Solver as long as it is read.
class Monitor {
 public:
  /// On a GPU, where iterations are short, it is behind by up to 16.
  int iteration() const { return read(&Feed::iteration); }
  /// Of the recurrence, as Result::history has it.
  double relative_residual() const { return read(&Feed::residual); }
  /// The solve ends after its current iteration, on a GPU within some dozens of them, with status `interrupted` and
  /// what it has. Safe in a signal handler.
  void interrupt() {
    store(own_.interrupt, 1);
    with_feed([](Feed& feed) { store(feed.interrupt, 1); });
  }
  bool interrupted() const { return load(own_.interrupt) != 0; }

  /// What the solve writes and looks at, in memory that its device reaches too.
  struct Feed {
    int iteration = 0;
    int interrupt = 0;
    double residual = 1;
  };
  /// Called by the solve: from now on `feed` is what the methods above see; null ends that and keeps the last values,
  /// and waits for those who read it, so that the feed may go.
  void attach(Feed* feed) {
    if (feed) {
      feed->interrupt = load(own_.interrupt);
    } else if (const Feed* last = feed_.load()) {
      store(own_.iteration, load(last->iteration));
      store(own_.residual, load(last->residual));
    }
    feed_ = feed;
    if (!feed) wait_for_readers();
    // An interrupt after the first and before the second store to a feed above went to the old place.
    if (feed && load(own_.interrupt)) store(feed->interrupt, 1);
  }

 private:
  template <class T>
  static T load(const T& from) {
    return std::atomic_ref<T>(const_cast<T&>(from)).load(std::memory_order_relaxed);
  }
  template <class T>
  static void store(T& to, T value) {
    std::atomic_ref<T>(to).store(value, std::memory_order_relaxed);
  }
  /// f of the feed, which does not go while somebody is counted.
  template <class F>
  void with_feed(F&& f) const {
    ++readers_;
    Feed* feed = feed_.load();
    f(feed ? *feed : own_);
    --readers_;
  }
  template <class T>
  T read(T Feed::*part) const {
    T value;
    with_feed([&](const Feed& feed) { value = load(feed.*part); });
    return value;
  }
  void wait_for_readers() const;
  mutable Feed own_;
  mutable std::atomic<int> readers_{0};
  std::atomic<Feed*> feed_{nullptr};
};

/// Seconds of wall time by part.
struct Seconds {
  double analyse = 0;
  double factor = 0;
  double solve = 0;
};

/// Milliseconds of what an iteration is made of.
struct Costs {
  double product = 0;      // A x
  double application = 0;  // of the preconditioner: z = M^-1 r
};

/// What the ladder of `auto` tried, in turn (docs/using.md).
struct Rung {
  std::string what;       // "gmres(50) with ilut:20,0.003, scaling both, ordering rcm"
  std::string arguments;  // the options of the command that go straight to it; empty where none do
  Status status = Status::max_iterations;
  int iterations = 0;
  double relative_residual = 0;  // true, at its end
  double seconds = 0;            // of its set-up and its iterations
  std::string why_left;          // empty where it is the last
};

struct Result {
  Status status = Status::max_iterations;
  int iterations = 0;
  double relative_residual = 0;  // ||b - A x||_2 / ||b||_2, the true residual (of x itself where b is zero)
  double rmse = 0;               // ||b - A x||_2 / sqrt(rows)
  double initial_residual = 0;   // of the initial guess, in the norm that was asked for
  std::vector<double> history;   // residual after 0, 1, 2, ... iterations, relative: to ||b|| in norm true2, by
                                 // OpenFOAM's normFactor in norm openfoam; of the recurrence, corrected at restarts
  std::string solver, precond, triangular, ordering, device;  // what was used
  std::string scaling = "none";                               // of what was factored
  std::string precision = "fp64";                             // of the last inner solve; fp64 where there was none
  int outer_iterations = 0;                                   // inner solves of mixed precision; 0 where all is double
  std::int64_t values_lost = 0;  // entries of matrix and factors that became zero when they were rounded
  int threads = 1;
  Seconds seconds;
  std::size_t bytes = 0;           // held by the solver: its copy of the matrix, preconditioner and vectors
  std::vector<std::string> notes;  // every fallback with its reason
  std::vector<Rung> rungs;         // where solver and precond were both `auto`; else none
};

namespace solver {
struct Inside;
}

class Solver {
 public:
  /// Throws krilu::Error for a name that it does not know, with the nearest one that it does.
  explicit Solver(Options options = {});
  /// One rank's solver in a team (krilu/ranks.hpp): matrix, b and x are this rank's rows, the matrix its square block,
  /// and what couples it to the others is the team's. Every call but costs and those that only ask is
  /// collective, in the same sequence on all ranks. The preconditioner is made of the block alone, unless the team has
  /// one, or, for ras, rows beside.
  Solver(Options options, Team team);
  ~Solver();
  Solver(Solver&&) noexcept;
  Solver& operator=(Solver&&) noexcept;

  /// Studies the pattern of a. Values, where there are any, serve to choose what was left to `auto`, and on a GPU to
  /// grow blocks along strong couplings. Throws krilu::Error where a is not square or not a valid CSR matrix, and where
  /// it is too large for the device.
  void analyse(const CsrView& a);

  /// analyse and factor in one: values go to a GPU once, where calling the two brings them there twice. Throws as they
  /// do.
  void setup(const CsrView& a);

  /// Takes values of the analysed pattern and forms the preconditioner. Where `auto` took CG with DIC and these are
  /// values of no symmetric matrix, it analyses anew. Throws krilu::Error for NaN or infinity, for a zero pivot (naming
  /// its row), and where the pattern is not the analysed one.
  void factor(const CsrView& a);

  /// Solves A x = b from the guess in x, both of length rows(). Not converging is a status of the result.
  /// Throws krilu::Error for wrong lengths, and for NaN or infinity in b or x.
  Result solve(std::span<const double> b, std::span<double> x, Monitor* monitor = nullptr);

  /// z = M^-1 r: the preconditioner that factor formed, in double, applied once; for the Krylov methods of others. r
  /// and z of length rows(). Where solver and precond are both `auto`, it is the
  /// rung's that a solve ended at, the first one's until then. Throws krilu::Error
  /// before factor and for wrong lengths. Not while another thread solves.
  void apply(std::span<const double> r, std::span<double> z);

  // The same with arrays in the memory of the solver's GPU (krilu/device_span.hpp): the same numbers, bit for bit.
  // What has to be brought to host memory even so stands in the notes of the next result: rungs above the first and
  // some preconditioners work there. All throw krilu::Error, beside what the others throw, where the solver works on
  // the host, where the array is not in its GPU's memory or has another length, and for a rank of a team.

  /// The pattern is in host memory, its values are not looked at; `values` has one for each of its entries, or none,
  /// where only the pattern is studied. The solver keeps a copy of the pattern in host memory.
  void analyse(const CsrView& pattern, DeviceSpan<const double> values);
  void setup(const CsrView& pattern, DeviceSpan<const double> values);
  /// After one of these two: new values, in the sequence of the pattern's entries.
  void factor(DeviceSpan<const double> values);
  /// Likewise: whether offsets and columns, on the GPU, are those of the analysed pattern.
  bool has_pattern(DeviceSpan<const Offset> offsets, DeviceSpan<const Index> columns) const;
  /// b and x are two arrays.
  Result solve(DeviceSpan<const double> b, DeviceSpan<double> x, Monitor* monitor = nullptr);
  void apply(DeviceSpan<const double> r, DeviceSpan<double> z);
  /// The number of the GPU that the solver works on; -1 where it works on the host.
  int gpu() const;

  /// The tolerances of the next solves, in place of those of the options. Throws krilu::Error for negative ones.
  void set_tolerances(double rtol, double atol);
  /// Their most iterations, in a team the same on all ranks. Throws krilu::Error for fewer than none.
  void set_max_iterations(int most);
  /// What was not done as asked until now, and why: what the notes of a result begin with.
  const std::vector<std::string>& notes() const;

  /// Times, now, one product with the factored matrix and one application of its preconditioner, each after one that
  /// is not counted; on the host it is the median of a few. Where `auto` has yet to choose between sweeps, it does so
  /// first. Zeros where the matrix has no rows. Throws krilu::Error before factor, and for ras in a team with
  /// rows beside. Not while another thread solves.
  Costs costs();

  /// How often each step ran: updating values repeats no analysis.
  struct Counts {
    int analyses = 0, factorisations = 0, solves = 0;
  };
  Counts counts() const;
  Index rows() const;
  std::size_t bytes() const;
  /// What was chosen and why, a line each.
  std::vector<std::string> explanation() const;

 private:
  friend struct solver::Inside;
  struct Body;
  std::unique_ptr<Body> body_;
};

/// One call for the hurried: analyse, factor, solve.
Result solve(const CsrView& a, std::span<const double> b, std::span<double> x, const Options& options = {});

}  // namespace krilu
