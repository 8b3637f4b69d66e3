// SPDX-License-Identifier: GPL-3.0-or-later
// OpenFOAM's linear solver `krilu`, for symmetric and asymmetric matrices, serial and parallel; docs/openfoam.md is for
// users. Nothing is computed here but residuals where krilu's method knows another norm than OpenFOAM's: the
// dictionary becomes krilu::Options, the LDU matrix fills a krilu::CsrMatrix whose pattern hangs on the mesh,
// interfaces become a krilu::Coupling, and a krilu::Result a solverPerformance.
#include <algorithm>
#include <cctype>
#include <cfenv>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addToRunTimeSelectionTable.H"
#include "choice.hpp"
#include "dump.hpp"
#include "krilu/error.hpp"
#include "lduMatrix.H"
#include "plans.hpp"
#include "scalarIOField.H"

namespace Foam {

namespace {

/// krilu finds out about divisions by zero from their results; OpenFOAM traps them. Threads that are started meanwhile
/// trap nothing either.
class QuietFloats {
 public:
  QuietFloats() { std::feholdexcept(&before_); }
  ~QuietFloats() { std::fesetenv(&before_); }
  QuietFloats(const QuietFloats&) = delete;
  QuietFloats& operator=(const QuietFloats&) = delete;

 private:
  std::fenv_t before_;
};

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// 7 and 1.5e-3 become #; fp32 stays.
std::string withoutNumbers(const std::string& sentence) {
  const auto is = [](int (*kind)(int), char c) { return kind(static_cast<unsigned char>(c)) != 0; };
  std::string text;
  for (std::size_t i = 0; i < sentence.size();) {
    const char c = sentence[i++];
    if (!is(std::isdigit, c) || (!text.empty() && is(std::isalnum, text.back()))) {
      text += c;
      continue;
    }
    text += '#';
    while (i < sentence.size() &&
           (is(std::isdigit, sentence[i]) || std::string("e.+-").find(sentence[i]) != std::string::npos))
      ++i;
  }
  return text;
}

}  // namespace

class kriluSolver : public lduMatrix::solver {
 public:
  TypeName("krilu");

  kriluSolver(const word& fieldName, const lduMatrix& matrix, const FieldField<Field, scalar>& interfaceBouCoeffs,
              const FieldField<Field, scalar>& interfaceIntCoeffs, const lduInterfaceFieldPtrsList& interfaces,
              const dictionary& solverControls)
      : lduMatrix::solver(fieldName, matrix, interfaceBouCoeffs, interfaceIntCoeffs, interfaces, solverControls) {}
  ~kriluSolver() override = default;

  solverPerformance solve(scalarField& psi, const scalarField& source, const direction cmpt = 0) const override;

 private:
  kriluPlan& find(const kriluChoice& choice) const;
  void lay_out(kriluPlan& plan) const;
  std::unique_ptr<krilu::Solver> make(const krilu::Options& options, const kriluPlan& plan) const;
  void prepare(kriluPlan& plan, std::int64_t version, const kriluChoice& choice) const;
  bool anywhere(bool here) const;
  void tell(const kriluPlan& plan, const kriluChoice& choice) const;
  void tellNotes(kriluPlan& plan, const std::vector<std::string>& notes) const;
  void setFinalResidual(const scalarField& psi, const scalarField& source, direction cmpt) const;

  mutable kriluPlan own_;  // where the mesh has no registry to hang it on
};

defineTypeNameAndDebug(kriluSolver, 0);
lduMatrix::solver::addsymMatrixConstructorToTable<kriluSolver> addkriluSolverSymMatrixConstructorToTable_;
lduMatrix::solver::addasymMatrixConstructorToTable<kriluSolver> addkriluSolverAsymMatrixConstructorToTable_;

bool kriluSolver::anywhere(bool here) const {
  if (UPstream::parRun()) reduce(here, orOp<bool>(), UPstream::msgType(), matrix_.mesh().comm());
  return here;
}

/// In a team where there are other ranks, or interfaces.
std::unique_ptr<krilu::Solver> kriluSolver::make(const krilu::Options& options, const kriluPlan& plan) const {
  try {
    if (!plan.coupling) return std::make_unique<krilu::Solver>(options);
    krilu::Team team;
    team.ranks = std::make_shared<kriluRanks>(matrix_.mesh().comm());
    team.coupling = plan.coupling;
    return std::make_unique<krilu::Solver>(options, std::move(team));
  } catch (const std::exception& e) {
    FatalIOErrorInFunction(controlDict_) << "krilu: " << kriluInFoamWords(e.what()).c_str() << exit(FatalIOError);
  }
  return nullptr;
}

kriluPlan& kriluSolver::find(const kriluChoice& choice) const {
  const lduMesh& mesh = matrix_.mesh();
  if (!mesh.hasDb()) return own_;
  kriluPlan& p = kriluPlans::New(mesh).find(mesh, kriluPattern(mesh), choice.key());
  // All steps of a plan are collective: what one rank has to make, all make anew.
  enum { nothing, analysis, all };
  label missing = !p.rows ? all : p.factored == 0 ? analysis : nothing;
  if (UPstream::parRun()) reduce(missing, maxOp<label>(), UPstream::msgType(), mesh.comm());
  if (missing != nothing) {
    kriluPlan anew;
    if (missing == analysis) {
      anew.rows = p.rows;
      anew.coupling = p.coupling;
    }
    p = std::move(anew);
  }
  return p;
}

/// What of the mesh alone is in a plan.
void kriluSolver::lay_out(kriluPlan& p) const {
  const lduMesh& mesh = matrix_.mesh();
  p.rows = std::make_shared<kriluRows>(mesh.lduAddr());
  const bool coupled = anywhere(kriluHasInterfaces(mesh));
  if (coupled || (UPstream::parRun() && UPstream::nProcs(mesh.comm()) > 1))
    p.coupling = std::make_shared<kriluCoupling>(mesh);
}

/// Brings this set of values to the solver, with an analysis where there was none yet.
void kriluSolver::prepare(kriluPlan& p, std::int64_t version, const kriluChoice& choice) const {
  if (!p.solver) p.solver = make(choice.options, p);
  if (p.factored == 0) {
    p.solver->setup(p.rows->view());
    p.factored = version;
    tell(p, choice);
  } else if (anywhere(p.factored != version)) {
    p.solver->factor(p.rows->view());
    p.factored = version;
  }
}

/// Once a plan.
void kriluSolver::tell(const kriluPlan& p, const kriluChoice& choice) const {
  static bool greeted = false;
  if (!greeted)
    Info << "krilu " << KRILU_VERSION << " for OpenFOAM v" << OPENFOAM << " (labels of " << WM_LABEL_SIZE
         << " bits, double precision)" << nl;
  greeted = true;
  const krilu::Options& o = choice.options;
  Info << "krilu: " << fieldName_ << ": method " << o.solver.c_str() << ", preconditioner " << o.precond.c_str()
       << ", device " << o.device.c_str() << ", threads " << o.threads;
  if (p.coupling)
    Info << ", ranks " << (UPstream::parRun() ? UPstream::nProcs(matrix_.mesh().comm()) : 1) << ", "
         << p.coupling->rows().size() << " cells at interfaces";
  Info << nl;
  for (const std::string& line : p.solver->explanation()) Info << "krilu: " << fieldName_ << ": " << line.c_str() << nl;
  Info << flush;
}

/// What was not done as asked, and why. Once a plan, though later solves may say it with other numbers.
void kriluSolver::tellNotes(kriluPlan& p, const std::vector<std::string>& notes) const {
  for (const std::string& note : notes)
    if (p.told.insert(withoutNumbers(note)).second)
      Info << "krilu: " << fieldName_ << ": " << kriluInFoamWords(note).c_str() << endl;
}

/// As OpenFOAM's own solvers do, the residual of the guess is formed by the matrix's own product, on the field itself
/// (interfaces with a jump add it to the field, and to nothing else), and held against normFactor. krilu solves
/// A d = r from d = 0, in which sum|r| is what its own norm begins with.
solverPerformance kriluSolver::solve(scalarField& psi, const scalarField& source, const direction cmpt) const {
  const Stopwatch whole;
  const kriluChoice choice = kriluRead(controlDict_, matrix_.symmetric(), maxIter_);
  const label comm = matrix_.mesh().comm();
  solverPerformance performance(choice.name, fieldName_);
  scalarField correction(psi.size()), work(psi.size());
  matrix_.Amul(correction, psi, interfaceBouCoeffs_, interfaces_, cmpt);
  scalarField r(source - correction);
  matrix_.setResidualField(r, fieldName_, true);
  const scalar factor = normFactor(psi, source, correction, work);
  const scalar initial = gSumMag(r, comm);
  performance.initialResidual() = performance.finalResidual() = initial / factor;
  if (lduMatrix::debug >= 2) Info << "   Normalisation factor = " << factor << endl;
  const scalar looking = whole.seconds();
  if (minIter_ <= 0 && performance.checkConvergence(tolerance_, relTol_)) return performance;

  krilu::Seconds seconds;
  try {
    const QuietFloats quiet;
    kriluPlan& p = find(choice);
    double laying_out = 0;
    if (!p.rows) {
      const Stopwatch watch;
      lay_out(p);
      laying_out = watch.seconds();
    }
    if (p.coupling) p.coupling->attach(matrix_, interfaceBouCoeffs_, interfaces_, cmpt);
    const std::int64_t version = p.rows->fill(matrix_);
    if (choice.dump) kriluDump(matrix_, p.coupling != nullptr, fieldName_, psi, source, p.rows->view());
    const krilu::Solver::Counts before = p.solver ? p.solver->counts() : krilu::Solver::Counts{};
    prepare(p, version, choice);

    const auto go = [&](double rtol, double atol, int most) {
      correction = 0;
      p.solver->set_tolerances(rtol, atol);
      p.solver->set_max_iterations(most);
      krilu::Result result =
          p.solver->solve({r.begin(), std::size_t(r.size())}, {correction.begin(), std::size_t(correction.size())});
      tellNotes(p, result.notes);
      psi += correction;
      performance.nIterations() += result.iterations;
      seconds.analyse = result.seconds.analyse;
      seconds.factor = result.seconds.factor;
      seconds.solve += result.seconds.solve;
      return result;
    };
    const auto look = [&] {
      matrix_.Amul(work, psi, interfaceBouCoeffs_, interfaces_, cmpt);
      r = source - work;
      performance.finalResidual() = gSumMag(r, comm) / factor;
    };
    if (choice.knows_norm) {
      if (initial > 0) {
        const krilu::Result result =
            go(0, std::max(tolerance_ * factor / initial, relTol_), choice.options.max_iterations);
        performance.finalResidual() = result.history.back() * initial / factor;
        if (!performance.checkConvergence(tolerance_, relTol_) && result.status == krilu::Status::breakdown)
          performance.checkSingularity(0);
      }
    } else {
      // The method reduces the 2-norm as much as sum|r| should be; where that was too little, it goes on.
      constexpr double margin = 0.9;
      constexpr int most_goes = 10;
      for (int k = 0; k < most_goes && performance.nIterations() < choice.options.max_iterations &&
                      !performance.checkConvergence(tolerance_, relTol_);
           ++k) {
        const double wanted = std::max(tolerance_, relTol_ * performance.initialResidual());
        const int left = choice.options.max_iterations - int(performance.nIterations());
        const int done = go(margin * wanted / performance.finalResidual(), 0, left).iterations;
        look();
        if (done == 0) break;
      }
    }
    if (performance.nIterations() < minIter_) {  // what is still to be done, however small the residual
      look();
      go(0, 0, int(minIter_ - performance.nIterations()));
      look();
      performance.checkConvergence(tolerance_, relTol_);
    }
    if (p.solver->counts().analyses == before.analyses) seconds.analyse = 0;
    if (p.solver->counts().factorisations == before.factorisations) seconds.factor = 0;
    seconds.analyse += laying_out;
  } catch (const std::exception& e) {
    FatalErrorInFunction << "krilu: " << fieldName_ << ": " << kriluInFoamWords(e.what()).c_str() << exit(FatalError);
  }
  setFinalResidual(psi, source, cmpt);
  if (debug)
    Info << "krilu: " << fieldName_ << ": " << whole.seconds() << " s, of which first residual " << looking
         << ", analysis " << seconds.analyse << ", factorisation " << seconds.factor << ", iterations " << seconds.solve
         << endl;
  return performance;
}

/// For function objects that look at it: where one has put up a field for it.
void kriluSolver::setFinalResidual(const scalarField& psi, const scalarField& source, direction cmpt) const {
  const lduMesh& mesh = matrix_.mesh();
  if (mesh.hasDb() && mesh.thisDb().foundObject<scalarIOField>("residual:" + fieldName_))
    matrix_.setResidualField(matrix_.residual(psi, source, interfaceBouCoeffs_, interfaces_, cmpt)(), fieldName_,
                             false);
}

}  // namespace Foam
