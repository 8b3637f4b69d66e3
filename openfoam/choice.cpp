// SPDX-License-Identifier: GPL-3.0-or-later
#include "choice.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "Switch.H"
#include "error.H"
#include "wordList.H"

namespace Foam {

namespace {

const wordList& keywords() {
  static const wordList list{"solver",   "method",          "preconditioner",  "tolerance",      "relTol",
                             "minIter",  "maxIter",         "device",          "threads",        "triangular",
                             "ordering", "scaling",         "restart",         "shift",          "precision",
                             "basis",    "innerIterations", "outerIterations", "innerTolerance", "dump"};
  return list;
}

const wordList methods{"auto", "cg", "bicgstab", "gmres", "fgmres", "gmres-ir"};
const wordList preconditioners{"auto", "none",      "jacobi", "dilu", "dic", "ilu0", "ic0",  "iluk",
                               "ilut", "block-ilu", "ras",    "lu",   "DIC", "DILU", "FDIC", "diagonal"};
const wordList devices{"auto", "host", "cuda", "emulated"};
const wordList triangulars{"auto", "serial", "level-set", "sync-free", "tiled"};
const wordList orderings{"auto", "natural", "rcm", "multicolour", "block-multicolour", "metis"};
const wordList scalings{"none", "rows", "both", "matching"};
const wordList precisions{"auto", "fp64", "fp32", "fp32/fp16", "fp32/bf16"};
const wordList bases{"auto", "fp64", "fp32", "fp16", "bf16"};

/// Levenshtein's.
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t(0));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row.back();
}

void requireKeywords(const dictionary& controls) {
  for (const entry& e : controls) {
    const std::string given = e.keyword();
    if (std::find(keywords().begin(), keywords().end(), given) != keywords().end()) continue;
    for (const word& known : keywords())
      if (edits(given, known) <= (known.size() < 6 ? 1 : 2))
        FatalIOErrorInFunction(controls) << "Unknown keyword " << given << " of solver krilu (did you mean " << known
                                         << "?)\n\nValid keywords :\n\n"
                                         << keywords() << exit(FatalIOError);
  }
}

/// One word or quoted string.
std::string textOf(const dictionary& controls, const word& key, const std::string& otherwise) {
  const entry* e = controls.findEntry(key);
  if (e && e->isDict()) e = e->dict().findEntry(key);  // preconditioner { preconditioner dic; }
  if (!e) return otherwise;
  if (e->isStream()) {
    const ITstream& stream = e->stream();
    if (stream.size() == 1 && stream[0].isWord()) return stream[0].wordToken();
    if (stream.size() == 1 && stream[0].isString()) return stream[0].stringToken();
  }
  FatalIOErrorInFunction(controls) << "Entry " << key << " is one word" << exit(FatalIOError);
  return {};
}

/// The same, of which what stands before a colon is one of the list.
std::string nameOf(const dictionary& controls, const word& key, const wordList& valid, const std::string& otherwise) {
  const std::string text = textOf(controls, key, otherwise);
  const std::string kind = text.substr(0, text.find(':'));
  if (std::find(valid.begin(), valid.end(), kind) == valid.end())
    FatalIOErrorInFunction(controls) << "Unknown krilu " << key << " " << text.c_str() << "\n\nValid names of " << key
                                     << " :\n\n"
                                     << valid << exit(FatalIOError);
  return text;
}

std::string upper(std::string text) {
  for (char& c : text) c = char(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// kriluDILUBiCGStab: of letters, figures, dashes and points, so that what reads logs finds its way.
word nameInLogs(const krilu::Options& o) {
  static const std::pair<const char*, const char*> written[] = {{"cg", "CG"}, {"bicgstab", "BiCGStab"}};
  std::string method = upper(o.solver);
  for (const auto& [name, text] : written)
    if (o.solver == name) method = text;
  std::string precond = o.precond == "none" ? "" : upper(o.precond);
  for (char& c : precond)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.') c = '-';
  return word("krilu" + precond + method);
}

}  // namespace

std::string kriluInFoamWords(std::string text) {
  static constexpr std::pair<const char*, const char*> words[] = {{"--precond", "preconditioner"},
                                                                  {"--solver", "method"},
                                                                  {"inner-iters", "innerIterations"},
                                                                  {"outer-iters", "outerIterations"},
                                                                  {"inner-rtol", "innerTolerance"},
                                                                  {"--max-iters", "maxIter"},
                                                                  {"--", ""}};
  for (const auto& [from, to] : words)
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
      text.replace(at, std::string(from).size(), to);
  return text;
}

std::string kriluChoice::key() const {
  const krilu::Options& o = options;
  std::ostringstream key;
  key.precision(17);
  for (const std::string& text :
       {o.solver, o.precond, o.triangular, o.ordering, o.scaling, o.device, o.precision, o.basis})
    key << text << ' ';
  key << o.threads << ' ' << o.restart << ' ' << o.max_iterations << ' ' << o.shift << ' ' << o.inner_iterations << ' '
      << o.outer_iterations << ' ' << o.inner_tolerance;
  return key.str();
}

kriluChoice kriluRead(const dictionary& controls, bool symmetric, label maxIter) {
  requireKeywords(controls);
  kriluChoice c;
  krilu::Options& o = c.options;
  o.solver = nameOf(controls, "method", methods, "auto");
  o.precond = nameOf(controls, "preconditioner", preconditioners, "auto");
  for (const auto& [foam, ours] :
       {std::pair("DIC", "dic"), std::pair("FDIC", "dic"), std::pair("DILU", "dilu"), std::pair("diagonal", "jacobi")})
    if (o.precond == foam) o.precond = ours;
  o.device = nameOf(controls, "device", devices, "host");
  o.triangular = nameOf(controls, "triangular", triangulars, "auto");
  o.ordering = nameOf(controls, "ordering", orderings, "auto");
  o.scaling = nameOf(controls, "scaling", scalings, "none");
  o.precision = nameOf(controls, "precision", precisions, "auto");
  o.basis = nameOf(controls, "basis", bases, "auto");
  o.threads = int(controls.lookupOrDefault<label>("threads", 1));  // a rank, a core
  o.restart = int(controls.lookupOrDefault<label>("restart", o.restart));
  o.shift = controls.lookupOrDefault<scalar>("shift", 0);
  o.inner_iterations = int(controls.lookupOrDefault<label>("innerIterations", 0));
  o.outer_iterations = int(controls.lookupOrDefault<label>("outerIterations", 0));
  o.inner_tolerance = controls.lookupOrDefault<scalar>("innerTolerance", 0);
  o.max_iterations = int(std::max<label>(maxIter, 1));  // OpenFOAM's solvers do one at least
  c.dump = controls.lookupOrDefault<Switch>("dump", false);

  // OpenFOAM knows which of its matrices are symmetric, so nothing is left to be found out from values.
  const auto one_of = [](const std::string& name, std::initializer_list<const char*> list) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  if (o.solver == "auto")
    o.solver = o.precond == "lu"                                                          ? "gmres"
               : symmetric && one_of(o.precond, {"auto", "none", "jacobi", "dic", "ic0"}) ? "cg"
                                                                                          : "bicgstab";
  if (o.precond == "auto") o.precond = o.solver == "cg" ? "dic" : "dilu";
  c.knows_norm = one_of(o.solver, {"cg", "bicgstab"}) && one_of(o.precision, {"auto", "fp64"});
  o.norm = c.knows_norm ? krilu::Norm::openfoam : krilu::Norm::true2;
  c.name = nameInLogs(o);
  return c;
}

}  // namespace Foam
