// SPDX-License-Identifier: Apache-2.0
// petsc-peer: PETSc on a system that the benchmark wrote with write_system(); a program of its own because PETSc takes
// more than one core through mpirun. Prints one line of JSON a method.
//
//   [mpirun -n N] petsc-peer SYSTEM [--methods bcgs+ilu,...] [--rtol T] [--max-it N] [--repeat N] [PETSc's options]
//
// On several ranks `ilu` and `icc` are block Jacobi with that factorisation, level 0, of each rank's block. Residuals
// are tested unpreconditioned. Setup includes the factorisation of the blocks, which PETSc otherwise leaves to the
// first solve.
#include <dlfcn.h>
#include <petscksp.h>

#include <charconv>
#include <cstring>
#include <exception>
#include <type_traits>

#include "peer.hpp"

namespace {

using krilu::Error;
using krilu::bench::add_note;
using krilu::bench::Attempt;
using krilu::bench::PeerRun;
using krilu::bench::SystemPart;

static_assert(sizeof(PetscInt) == sizeof(krilu::Index), "petsc-peer needs a PETSc with 32-bit indices");
static_assert(std::is_same_v<PetscScalar, double>, "petsc-peer needs a PETSc with real double scalars");

struct Arguments {
  std::string system;
  std::vector<std::string> methods = {"bcgs+ilu", "gmres+ilu", "cg+icc", "bcgs+jacobi"};
  double rtol = 1e-8;
  int max_iterations = 10000;
  int repeat = 3;
};

const char* const usage =
    "petsc-peer SYSTEM [--methods KSP+PC,...] [--rtol T] [--max-it N] [--repeat N]\n"
    "  SYSTEM     binary system file of the benchmark\n"
    "  --methods  default bcgs+ilu,gmres+ilu,cg+icc,bcgs+jacobi; any of PETSc's KSP and PC types\n";

// Own options begin with two dashes; anything else that begins with a dash, and what follows it, is PETSc's.
Arguments parse(int argc, char** argv) {
  Arguments args;
  const auto number = [](const std::string& option, const std::string& text, auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value <= 0) {
      throw Error(option + " wants a positive number, not '" + text + "'");
    }
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      if (word[0] != '-' && args.system.empty()) args.system = word;
      if (word[0] == '-' && i + 1 < argc && argv[i + 1][0] != '-') ++i;
      continue;
    }
    if (i + 1 == argc) throw Error(word + " wants a value");
    const std::string value = argv[++i];
    if (word == "--rtol") {
      number(word, value, args.rtol);
    } else if (word == "--max-it") {
      number(word, value, args.max_iterations);
    } else if (word == "--repeat") {
      number(word, value, args.repeat);
    } else if (word == "--methods") {
      args.methods.clear();
      for (std::size_t at = 0; at <= value.size();) {
        const std::size_t comma = std::min(value.find(',', at), value.size());
        const std::string method = value.substr(at, comma - at);
        if (method.find('+') == std::string::npos) throw Error("--methods wants KSP+PC, not '" + method + "'");
        args.methods.push_back(method);
        at = comma + 1;
      }
    } else {
      throw Error("there is no option " + word);
    }
  }
  if (args.system.empty()) throw Error("no system's file was named");
  return args;
}

void check(PetscErrorCode code) {
  if (code == 0) return;
  const char* text = nullptr;
  char* specific = nullptr;
  PetscErrorMessage(code, &text, &specific);
  throw Error(std::string("PETSc: ") + (text ? text : "error") + (specific && *specific ? ": " : "") +
              (specific ? specific : ""));
}

// PETSc's objects, destroyed when a method ends, be it by an exception.
template <class T, PetscErrorCode (*Destroy)(T*)>
struct Handle {
  T object = nullptr;
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { Destroy(&object); }
  operator T() const { return object; }
  T* out() { return &object; }
};

struct Problem {
  MPI_Comm comm = PETSC_COMM_WORLD;
  int rank = 0;
  int ranks = 1;
  SystemPart part;       // this rank's rows; negated where `negated` says so
  bool negated = false;  // all diagonals were negative: -A x = -b is solved, which icc needs
  bool symmetric = false;
  double b_norm = 0;
  Handle<Mat, MatDestroy> matrix;
  Handle<Vec, VecDestroy> b, x, whole_x;
  Handle<VecScatter, VecScatterDestroy> gather;
};

double sum_over_ranks(const Problem& p, double value) {
  double sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, p.comm);
  return sum;
}

void assemble(Problem& p, const std::string& path) {
  p.part = krilu::bench::read_system(path, p.rank, p.ranks);
  SystemPart& part = p.part;
  int negative = krilu::bench::all_diagonals_negative(part.view(), part.first_row);
  MPI_Allreduce(MPI_IN_PLACE, &negative, 1, MPI_INT, MPI_MIN, p.comm);
  p.negated = negative != 0;
  if (p.negated) {
    for (double& v : part.values) v = -v;
    for (double& v : part.b) v = -v;
  }
  p.b_norm = std::sqrt(sum_over_ranks(p, krilu::bench::squared_norm(part.b)));

  const PetscInt rows = part.rows(), total = part.total_rows;
  if (p.ranks == 1) {  // no copy: the matrix keeps our arrays
    check(MatCreateSeqAIJWithArrays(p.comm, rows, total, part.offsets.data(), part.columns.data(), part.values.data(),
                                    p.matrix.out()));
  } else {
    check(MatCreateMPIAIJWithArrays(p.comm, rows, rows, total, total, part.offsets.data(), part.columns.data(),
                                    part.values.data(), p.matrix.out()));
  }
  check(VecCreateMPIWithArray(p.comm, 1, rows, total, part.b.data(), p.b.out()));
  check(MatCreateVecs(p.matrix, p.x.out(), nullptr));
  check(VecScatterCreateToAll(p.x, p.gather.out(), p.whole_x.out()));

  double largest = 0;
  check(MatNorm(p.matrix, NORM_INFINITY, &largest));
  PetscBool symmetric = PETSC_FALSE;
  check(MatIsSymmetric(p.matrix, 1e-12 * largest, &symmetric));
  p.symmetric = symmetric == PETSC_TRUE;
  if (p.symmetric) check(MatSetOption(p.matrix, MAT_SYMMETRIC, PETSC_TRUE));
}

// From the rows as they were read, without PETSc's product: a matrix that was handed over wrongly would show.
double true_residual(Problem& p) {
  check(VecScatterBegin(p.gather, p.x, p.whole_x, INSERT_VALUES, SCATTER_FORWARD));
  check(VecScatterEnd(p.gather, p.x, p.whole_x, INSERT_VALUES, SCATTER_FORWARD));
  const PetscScalar* x = nullptr;
  check(VecGetArrayRead(p.whole_x, &x));
  const double local =
      krilu::bench::squared_residual(p.part.view(), p.part.b, {x, static_cast<std::size_t>(p.part.total_rows)});
  check(VecRestoreArrayRead(p.whole_x, &x));
  return std::sqrt(sum_over_ranks(p, local)) / (p.b_norm > 0 ? p.b_norm : 1);
}

// Seconds of the slowest rank.
template <class Work>
double timed(const Problem& p, Work&& work) {
  MPI_Barrier(p.comm);
  const double start = MPI_Wtime();
  work();
  double seconds = MPI_Wtime() - start;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, p.comm);
  return seconds;
}

void run_method(Problem& p, const Arguments& args, PeerRun& run) {
  const std::size_t plus = run.method.find('+');
  const std::string ksp_name = run.method.substr(0, plus);
  const std::string pc_name = run.method.substr(plus + 1);
  const bool is_cg = ksp_name == KSPCG;
  if (p.negated) add_note(run, "solved as -A x = -b");
  if ((is_cg || pc_name == PCICC) && !p.symmetric) {
    add_note(run, "the matrix is not symmetric");
    return;
  }

  const bool in_blocks = p.ranks > 1 && (pc_name == PCILU || pc_name == PCICC);
  if (in_blocks) add_note(run, "block Jacobi, " + pc_name + "(0) of each rank's rows");

  Handle<KSP, KSPDestroy> ksp;
  krilu::bench::measure_setup(run, args.repeat, [&] {
    check(KSPDestroy(ksp.out()));
    check(KSPCreate(p.comm, ksp.out()));
    check(KSPSetOperators(ksp, p.matrix, p.matrix));
    check(KSPSetType(ksp, ksp_name.c_str()));
    // Conjugate gradients know no right preconditioning, yet can test the residual itself.
    if (!is_cg) check(KSPSetPCSide(ksp, PC_RIGHT));
    check(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
    if (ksp_name == KSPGMRES || ksp_name == KSPFGMRES) check(KSPGMRESSetRestart(ksp, 30));
    PC pc = nullptr;
    check(KSPGetPC(ksp, &pc));
    check(PCSetType(pc, in_blocks ? PCBJACOBI : pc_name.c_str()));
    // The blocks' own solvers exist only once the setup has begun: the option reaches them by name.
    if (in_blocks) check(PetscOptionsSetValue(nullptr, "-sub_pc_type", pc_name.c_str()));
    check(KSPSetFromOptions(ksp));
    const double seconds = timed(p, [&] {
      check(KSPSetUp(ksp));
      check(KSPSetUpOnBlocks(ksp));  // otherwise the blocks are factored in the first solve
    });
    if (in_blocks) check(PetscOptionsClearValue(nullptr, "-sub_pc_type"));
    return seconds;
  });

  KSPConvergedReason reason = KSP_CONVERGED_ITERATING;
  krilu::bench::measure(run, args.rtol, args.repeat, [&](double rtol) {
    // No absolute test, and no test of divergence: BiCGSTAB may peak high and still arrive.
    check(KSPSetTolerances(ksp, rtol, 1e-300, 1e100, args.max_iterations));
    check(VecSet(p.x, 0));
    Attempt attempt;
    attempt.seconds = timed(p, [&] { check(KSPSolve(ksp, p.b, p.x)); });
    PetscInt iterations = 0;
    check(KSPGetIterationNumber(ksp, &iterations));
    check(KSPGetConvergedReason(ksp, &reason));
    attempt.iterations = iterations;
    attempt.stopped_by_test = reason > 0;
    attempt.true_residual = true_residual(p);
    return attempt;
  });
  if (reason < 0) add_note(run, KSPConvergedReasons[reason]);
}

// A threaded BLAS would let one rank's dot products use every core, and several ranks fight over them.
void keep_blas_serial() {
  if (void* found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(found)(1);
}

int work(const Arguments& args) {
  Problem p;
  MPI_Comm_rank(p.comm, &p.rank);
  MPI_Comm_size(p.comm, &p.ranks);
  assemble(p, args.system);
  PetscInt major = 0, minor = 0, subminor = 0;
  check(PetscGetVersionNumber(&major, &minor, &subminor, nullptr));
  for (const std::string& method : args.methods) {
    PeerRun run;
    run.name = "PETSc";
    run.method = method;
    run.threads_or_ranks = p.ranks;
    run.asked_rtol = args.rtol;
    run.version = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(subminor);
    try {
      run_method(p, args, run);
    } catch (const std::exception& e) {
      run.converged = false;
      add_note(run, e.what());
      if (p.ranks > 1) {  // the others may be waiting in a collective call: no line, a status, and no further method
        std::fprintf(stderr, "petsc-peer: rank %d, %s: %s\n", p.rank, method.c_str(), e.what());
        MPI_Abort(p.comm, 1);
      }
    }
    if (p.rank == 0) {
      std::printf("%s\n", to_json(run).c_str());
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--help") || !std::strcmp(argv[i], "-h")) {
      std::fputs(usage, stdout);
      return 0;
    }
  }
  Arguments args;
  try {
    args = parse(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "petsc-peer: %s\n%s", e.what(), usage);
    return 2;
  }
  if (PetscInitialize(&argc, &argv, nullptr, nullptr)) return 1;
  PetscPushErrorHandler(PetscReturnErrorHandler, nullptr);
  keep_blas_serial();
  int status = 1;
  try {
    status = work(args);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "petsc-peer: %s\n", e.what());
    int ranks = 1;
    MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
    if (ranks > 1) MPI_Abort(PETSC_COMM_WORLD, 1);
  }
  PetscFinalize();
  return status;
}
