// SPDX-License-Identifier: Apache-2.0
// krilu's preconditioners as PETSc's PC type `krilu`, on sequential AIJ matrices: alone on one rank, as sub-PC of
// bjacobi, asm and others on any number. docs/petsc.md is for users. Nothing is computed here: options become
// krilu::Options, an AIJ matrix is lent to krilu::Solver as it stands, an application is Solver::apply, and krilu's
// exceptions become PETSc's errors.
//
// Private headers of PETSc: no public one lets a type have options and a view of its own.
#include <petsc/private/pcimpl.h>
#include <petscversion.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "krilu/solver.hpp"

#if defined(PETSC_USE_COMPLEX)
#error "krilu solves real systems, and this PETSc was built for complex scalars: take one for real scalars"
#endif
#if !defined(PETSC_USE_REAL_DOUBLE)
#error "krilu works in double precision, and this PETSc was built for another one: take one for double"
#endif
#if PETSC_VERSION_LT(3, 18, 0)
#error "krilu's preconditioner needs PETSc 3.18 or later"
#endif

namespace {

constexpr PetscErrorCode fine = PetscErrorCode(0);

/// What -pc_krilu_... options say.
struct Choice {
  std::string type = "dilu";
  std::string local = "ilu0";  // what ras and block-ilu factor in each part
  PetscInt levels = 1;         // of iluk
  PetscInt fill = 10;          // most entries that ilut keeps in a row of each factor
  PetscReal drop_tolerance = 0.01;
  PetscInt parts = 0;  // of ras and block-ilu; 0: chosen
  PetscInt overlap = 1;
  PetscReal shift = 0;
  std::string scaling = "none";
  std::string triangular = "auto", ordering = "auto";
  std::string device = "host";  // PETSc's vectors are there
  PetscInt threads = 1;         // a rank, a core
  bool operator==(const Choice&) const = default;
};

bool in_parts(const std::string& type) { return type == "ras" || type == "block-ilu"; }
bool uses(const Choice& c, const char* factorisation) {
  return c.type == factorisation || (in_parts(c.type) && c.local == factorisation);
}

std::string number(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

/// The preconditioner's name as krilu has it: ras:0,2,iluk:1. What has a colon is one already.
std::string full_name(const Choice& c) {
  const auto with_arguments = [&](const std::string& kind) {
    if (kind == "iluk") return kind + ":" + std::to_string(c.levels);
    if (kind == "ilut") return kind + ":" + std::to_string(c.fill) + "," + number(c.drop_tolerance);
    return kind;
  };
  if (!in_parts(c.type)) return with_arguments(c.type);
  return c.type + ":" + std::to_string(c.parts) + "," + (c.type == "ras" ? std::to_string(c.overlap) + "," : "") +
         with_arguments(c.local);
}

krilu::Options options_of(const Choice& c) {
  constexpr PetscInt most_threads = 65536;
  if (c.threads > most_threads) throw krilu::Error("threads is a number of cores, or 0 for all");
  krilu::Options o;
  o.solver = c.type == "auto" ? "auto" : "cg";  // never run: the method of the fewest vectors
  o.precond = full_name(c);
  o.triangular = c.triangular;
  o.ordering = c.ordering;
  o.scaling = c.scaling;
  o.device = c.device;
  o.threads = int(c.threads);
  o.shift = c.shift;
  return o;
}

struct State {
  Choice asked;
  std::unique_ptr<krilu::Solver> solver;  // made for what is asked
  bool analysed = false, factored = false;
  std::string trouble;  // of the last factorisation
};

State& state(PC pc) { return *static_cast<State*>(pc->data); }

/// krilu's sentences name options of its command; here they are PETSc's.
std::string in_petsc_words(PC pc, std::string text) {
  const char* prefix = nullptr;
  if (PCGetOptionsPrefix(pc, &prefix) != 0 || !prefix) prefix = "";
  const std::string ours = std::string("-") + prefix + "pc_krilu_";
  static constexpr std::pair<const char*, const char*> words[] = {{"--precond", "type"},  {"precond auto", "type auto"},
                                                                  {"--shift", "shift"},   {"--ordering", "ordering"},
                                                                  {"--device", "device"}, {"--scaling", "scaling"}};
  for (const auto& [from, to] : words)
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
      text.replace(at, std::string_view(from).size(), ours + to);
  return text;
}

/// f(), with exceptions as PETSc's errors: none may reach PETSc, which is C. `code`: of krilu's own.
template <class F>
PetscErrorCode guarded(PC pc, PetscErrorCode code, F f) {
  try {
    return f();
  } catch (const krilu::Error& e) {
    SETERRQ(PETSC_COMM_SELF, code, "krilu: %s", in_petsc_words(pc, e.what()).c_str());
  } catch (const std::bad_alloc&) {
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "krilu found too little memory");
  } catch (const std::exception& e) {
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_LIB, "krilu: %s", e.what());
  } catch (...) {
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_LIB, "krilu: an exception of unknown type");
  }
}

/// The sequential AIJ matrix that A is, or holds where A is an MPIAIJ of one rank. Borrowed.
PetscErrorCode local_matrix(Mat A, Mat* local) {
  PetscFunctionBegin;
  PetscBool sequential = PETSC_FALSE, parallel = PETSC_FALSE;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATSEQAIJ, &sequential));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &parallel));
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  if (parallel) {
    PetscMPIInt ranks = 1;
    PetscCallMPI(MPI_Comm_size(comm, &ranks));
    PetscCheck(ranks == 1, comm, PETSC_ERR_SUP,
               "krilu works on the rows of one rank, and this matrix is spread over %d: take it inside a method of "
               "subdomains, -pc_type bjacobi -sub_pc_type krilu, or -pc_type asm -sub_pc_type krilu",
               int(ranks));
    PetscCall(MatMPIAIJGetSeqAIJ(A, local, nullptr, nullptr));
  } else {
    const char* type = nullptr;
    PetscCall(MatGetType(A, &type));
    PetscCheck(sequential, comm, PETSC_ERR_SUP,
               "krilu takes matrices of type aij, and this one is %s: -mat_type aij, or MatConvert, makes it one",
               type ? type : "of no type yet");
    *local = A;
  }
  PetscFunctionReturn(fine);
}

/// krilu's integers where PETSc's are as wide, and a copy of them where they are wider.
template <class Int>
class Integers {
 public:
  Integers(const Int* from, std::size_t n) {
    if constexpr (std::is_same_v<Int, krilu::Index>) {
      data_ = from;
    } else {
      copy_.reserve(n);
      for (std::size_t i = 0; i < n; ++i) copy_.push_back(krilu::Index(from[i]));
      data_ = copy_.data();
    }
  }
  const krilu::Index* data() const { return data_; }

 private:
  std::vector<krilu::Index> copy_;
  const krilu::Index* data_ = nullptr;
};

void require_range(PetscInt count, const char* what) {
  if (std::int64_t(count) > std::int64_t(std::numeric_limits<krilu::Index>::max()))
    throw krilu::Error("the matrix has " + std::to_string(count) + " " + what +
                       " on one rank, and krilu's hold fewer than 2^31: spread it over more ranks");
}

/// f(view of A), without a copy of its values.
template <class F>
PetscErrorCode with_csr(PC pc, Mat A, F f) {
  PetscFunctionBegin;
  PetscInt rows = 0, columns = 0, n = 0;
  const PetscInt *offsets = nullptr, *column = nullptr;
  PetscBool done = PETSC_FALSE;
  PetscCall(MatGetSize(A, &rows, &columns));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &offsets, &column, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP, "krilu needs the rows of the matrix, which its type does not show");
  const PetscScalar* values = nullptr;
  PetscCall(MatSeqAIJGetArrayRead(A, &values));
  const PetscErrorCode code = guarded(pc, PETSC_ERR_ARG_WRONG, [&]() -> PetscErrorCode {
    static const PetscInt none = 0;  // a matrix without rows may have no arrays
    const PetscInt* const first = offsets ? offsets : &none;
    require_range(rows, "rows");
    require_range(columns, "columns");
    require_range(first[rows], "entries");
    const Integers<PetscInt> own_offsets(first, std::size_t(rows) + 1), own_columns(column, std::size_t(first[rows]));
    return f(krilu::CsrView{krilu::Index(rows), krilu::Index(columns), own_offsets.data(), own_columns.data(), values});
  });
  PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &offsets, &column, &done));
  PetscFunctionReturn(code);
}

PetscErrorCode make_solver(PC pc) {
  return guarded(pc, PETSC_ERR_ARG_OUTOFRANGE, [&]() -> PetscErrorCode {
    State& s = state(pc);
    s.analysed = s.factored = false;
    s.solver = std::make_unique<krilu::Solver>(options_of(s.asked));
    return fine;
  });
}

/// What was not done as asked, and why: for -info, at every set-up.
PetscErrorCode say_notes(PC pc) {
  PetscFunctionBegin;
  PetscCall(guarded(pc, PETSC_ERR_LIB, [&]() -> PetscErrorCode {
    for (const std::string& note : state(pc).solver->notes())
      PetscCall(PetscInfo(pc, "krilu: %s\n", in_petsc_words(pc, note).c_str()));
    return fine;
  }));
  PetscFunctionReturn(fine);
}

/// As PETSc's own factorisations have it: the KSP ends as failed, or, where errors were asked for, this is one.
PetscErrorCode zero_pivot(PC pc, const krilu::ZeroPivot& e) {
  State& s = state(pc);
  s.trouble = in_petsc_words(pc, e.what());
  const bool cholesky = s.asked.type == "dic" || s.asked.type == "ic0";
  PetscCheck(!pc->erroriffailure, PETSC_COMM_SELF, cholesky ? PETSC_ERR_MAT_CH_ZRPVT : PETSC_ERR_MAT_LU_ZRPVT,
             "krilu: %s", s.trouble.c_str());
  PetscCall(PetscInfo(pc, "krilu: %s\n", s.trouble.c_str()));
  pc->failedreason = PC_FACTOR_NUMERIC_ZEROPIVOT;
  return fine;
}

PetscErrorCode set_up(PC pc) {
  PetscFunctionBegin;
  State& s = state(pc);
  Mat local = nullptr;
  PetscCall(local_matrix(pc->pmat, &local));
  if (!s.solver) PetscCall(make_solver(pc));
  pc->failedreason = PC_NOERROR;
  s.factored = false;
  s.trouble.clear();
  const bool same_pattern = pc->flag == SAME_NONZERO_PATTERN && s.analysed;
  PetscCall(with_csr(pc, local, [&](const krilu::CsrView& a) -> PetscErrorCode {
    const int before = s.solver->counts().analyses;
    try {
      if (same_pattern)
        s.solver->factor(a);
      else
        s.solver->setup(a);
      s.analysed = s.factored = true;
    } catch (const krilu::ZeroPivot& e) {
      s.analysed = same_pattern || s.solver->counts().analyses > before;
      return zero_pivot(pc, e);
    }
    return fine;
  }));
  PetscCall(say_notes(pc));
  PetscFunctionReturn(fine);
}

PetscErrorCode apply(PC pc, Vec r, Vec z) {
  PetscFunctionBegin;
  State& s = state(pc);
  if (!s.factored) {  // what PETSc's factorisations answer then; the KSP sees it and ends
    PetscCall(VecSetInf(z));
    PetscFunctionReturn(fine);
  }
  PetscInt n = 0, entries = 0;
  PetscCall(VecGetLocalSize(r, &n));
  PetscCall(VecGetLocalSize(z, &entries));
  const PetscScalar* from = nullptr;
  PetscScalar* to = nullptr;
  PetscCall(VecGetArrayRead(r, &from));
  PetscCall(VecGetArrayWrite(z, &to));
  const PetscErrorCode code = guarded(pc, PETSC_ERR_ARG_SIZ, [&]() -> PetscErrorCode {
    s.solver->apply({from, std::size_t(n)}, {to, std::size_t(entries)});
    return fine;
  });
  PetscCall(VecRestoreArrayWrite(z, &to));
  PetscCall(VecRestoreArrayRead(r, &from));
  PetscFunctionReturn(code);
}

PetscErrorCode set_from_options(PC pc, PetscOptionItems* PetscOptionsObject) {
  PetscFunctionBegin;
  State& s = state(pc);
  Choice now = s.asked;
  const auto text = [&](const char* option, const char* what, std::string& value) -> PetscErrorCode {
    std::array<char, 256> given{};
    PetscBool set = PETSC_FALSE;
    PetscCall(PetscOptionsString(option, what, "", value.c_str(), given.data(), given.size(), &set));
    if (set) value = given.data();
    return fine;
  };
  // An option that says nothing to the type is not asked for, so that PETSc reports it as unused. -help lists all.
  const bool all = PetscOptionsObject->printhelp == PETSC_TRUE;
  PetscOptionsHeadBegin(PetscOptionsObject, "krilu");
  PetscCall(text("-pc_krilu_type", "auto dilu dic ilu0 ic0 iluk ilut ras block-ilu jacobi lu none", now.type));
  if (all || in_parts(now.type)) {
    PetscCall(text("-pc_krilu_local", "What ras and block-ilu factor in a part: dilu ilu0 iluk ilut", now.local));
    PetscCall(PetscOptionsInt("-pc_krilu_parts", "Parts of ras and block-ilu, 0: chosen", "", now.parts, &now.parts,
                              nullptr));
  }
  if (all || now.type == "ras")
    PetscCall(PetscOptionsInt("-pc_krilu_overlap", "Layers of neighbours by which ras extends a part", "", now.overlap,
                              &now.overlap, nullptr));
  if (all || uses(now, "iluk"))
    PetscCall(PetscOptionsInt("-pc_krilu_levels", "Levels of fill of iluk", "", now.levels, &now.levels, nullptr));
  if (all || uses(now, "ilut")) {
    PetscCall(PetscOptionsInt("-pc_krilu_fill", "Most entries that ilut keeps in a row of each factor", "", now.fill,
                              &now.fill, nullptr));
    PetscCall(PetscOptionsReal("-pc_krilu_drop_tolerance", "What ilut drops, relative to the row's norm", "",
                               now.drop_tolerance, &now.drop_tolerance, nullptr));
  }
  PetscCall(PetscOptionsReal("-pc_krilu_shift", "Added to pivots, in units of the row's largest entry", "", now.shift,
                             &now.shift, nullptr));
  PetscCall(text("-pc_krilu_scaling", "Of what is factored: none rows both matching", now.scaling));
  PetscCall(
      text("-pc_krilu_triangular", "Sweeps: auto serial level-set sync-free; on a GPU tiled too", now.triangular));
  PetscCall(
      text("-pc_krilu_ordering", "auto natural rcm multicolour block-multicolour[:ROWS] metis[:PARTS]", now.ordering));
  PetscCall(text("-pc_krilu_device", "host cuda[:N] auto", now.device));
  PetscCall(
      PetscOptionsInt("-pc_krilu_threads", "Threads of a rank, 0: all cores", "", now.threads, &now.threads, nullptr));
  PetscOptionsHeadEnd();
  if (!s.solver || now != s.asked) {
    s.asked = std::move(now);
    s.solver.reset();
    PetscCall(make_solver(pc));
    pc->setupcalled = PETSC_FALSE;  // else a matrix that has not changed would keep what was made of it
  }
  PetscFunctionReturn(fine);
}

PetscErrorCode view(PC pc, PetscViewer viewer) {
  PetscFunctionBegin;
  PetscBool ascii = PETSC_FALSE;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(fine);
  const State& s = state(pc);
  const Choice& c = s.asked;
  PetscCall(guarded(pc, PETSC_ERR_LIB, [&]() -> PetscErrorCode {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  %s, triangular %s, ordering %s, scaling %s, shift %g\n",
                                     full_name(c).c_str(), c.triangular.c_str(), c.ordering.c_str(), c.scaling.c_str(),
                                     double(c.shift)));
    PetscCall(PetscViewerASCIIPrintf(viewer, "  device %s, threads %s\n", c.device.c_str(),
                                     c.threads == 0 ? "all" : std::to_string(c.threads).c_str()));
    if (!s.solver) return fine;
    const krilu::Solver::Counts counts = s.solver->counts();
    PetscCall(PetscViewerASCIIPrintf(viewer, "  analyses %d, factorisations %d, %.1f MB\n", counts.analyses,
                                     counts.factorisations, double(s.solver->bytes()) / 1e6));
    for (const std::string& line : s.solver->explanation())
      PetscCall(PetscViewerASCIIPrintf(viewer, "  %s\n", line.c_str()));
    for (const std::string& note : s.solver->notes())
      PetscCall(PetscViewerASCIIPrintf(viewer, "  note: %s\n", in_petsc_words(pc, note).c_str()));
    if (!s.trouble.empty()) PetscCall(PetscViewerASCIIPrintf(viewer, "  %s\n", s.trouble.c_str()));
    return fine;
  }));
  PetscFunctionReturn(fine);
}

PetscErrorCode reset(PC pc) {
  PetscFunctionBegin;
  State& s = state(pc);
  s.solver.reset();
  s.analysed = s.factored = false;
  s.trouble.clear();
  PetscFunctionReturn(fine);
}

PetscErrorCode destroy(PC pc) {
  PetscFunctionBegin;
  delete static_cast<State*>(pc->data);
  pc->data = nullptr;
  PetscFunctionReturn(fine);
}

PetscErrorCode create(PC pc) {
  PetscFunctionBegin;
  pc->data = new (std::nothrow) State;
  PetscCheck(pc->data, PETSC_COMM_SELF, PETSC_ERR_MEM, "krilu found too little memory");
  // No transpose: PETSc answers PCApplyTranspose with PETSC_ERR_SUP then.
  pc->ops->setup = set_up;
  pc->ops->apply = apply;
  pc->ops->setfromoptions = set_from_options;
  pc->ops->view = view;
  pc->ops->reset = reset;
  pc->ops->destroy = destroy;
  PetscFunctionReturn(fine);
}

}  // namespace

/// Registers PC type `krilu`. PETSc calls it when it loads libkriluPetsc.so; a program that links the library calls it
/// itself after PetscInitialize.
extern "C" __attribute__((visibility("default"))) PetscErrorCode PetscDLLibraryRegister_kriluPetsc(void) {
  PetscFunctionBegin;
  PetscInt major = 0, minor = 0;
  PetscCall(PetscGetVersionNumber(&major, &minor, nullptr, nullptr));
  PetscCheck(major == PETSC_VERSION_MAJOR && minor == PETSC_VERSION_MINOR, PETSC_COMM_SELF, PETSC_ERR_LIB,
             "libkriluPetsc was built with PETSc %d.%d, and this is %d.%d: build it with the one that loads it",
             PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, int(major), int(minor));
  PetscCall(PCRegister("krilu", create));
  PetscFunctionReturn(fine);
}
