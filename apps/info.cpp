// SPDX-License-Identifier: Apache-2.0
// krilu info: what kind of matrix it is, and how parallel its triangles are. Paper of the picture: Wang and Liu (2022),
// Figure 7, rows per level.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.hpp"
#include "exec/host.hpp"
#include "io/plot.hpp"
#include "io/report.hpp"
#include "krilu/condition.hpp"
#include "krilu/version.hpp"
#include "mesh_info.hpp"
#include "schedule/levels.hpp"
#include "sparse/csr.hpp"
#include "system.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace {

struct InfoOptions {
  std::string matrix, json, plot;
  int threads = 0;
  bool condition = false;
};

std::vector<Index> rows_per_level(const exec::Host& host, const CsrView& a, schedule::Triangle triangle) {
  const auto sorted = schedule::sort_by_level(schedule::levels_sync_free(host, {a, triangle, nullptr, nullptr}));
  std::vector<Index> rows;
  for (Index l = 0; l < sorted.count(); ++l)
    rows.push_back(sorted.offsets[std::size_t(l) + 1] - sorted.offsets[std::size_t(l)]);
  return rows;
}

io::Curve curve_of(const std::vector<Index>& rows) {
  io::Curve curve;
  for (std::size_t l = 0; l < rows.size(); ++l) curve.points.emplace_back(double(l), double(rows[l]));
  return curve;
}

std::string level_sentence(const std::vector<Index>& rows) {
  if (rows.empty()) return "none";
  std::vector<Index> sorted = rows;
  std::nth_element(sorted.begin(), sorted.begin() + std::ptrdiff_t(sorted.size() / 2), sorted.end());
  return fmt::format("{} (rows in one: median {}, most {})", io::thousands(std::int64_t(rows.size())),
                     io::thousands(sorted[sorted.size() / 2]),
                     io::thousands(*std::max_element(rows.begin(), rows.end())));
}

std::string condition_sentence(const Condition& c) {
  if (std::isinf(c.value)) return fmt::format("infinite: the matrix is singular ({})", c.by);
  const std::string by = c.by.starts_with("SuperLU") ? "SuperLU" : c.by;  // without its version it fits a line
  return fmt::format("{:.1e} in the infinity norm, estimated ({}, {} solves)", c.value, by, c.solves);
}

int run(const InfoOptions& o) {
  require_outputs({o.matrix}, {o.json, o.plot});
  exec::require_threads(o.threads);
  if (!o.plot.empty()) io::require_drawable(o.plot);
  if (names_mesh(o.matrix)) {
    if (o.condition || !o.plot.empty()) throw Error(o.matrix + ": --condition and --plot are for matrices, not meshes");
    return mesh_info(o.matrix, o.json, o.threads);
  }
  CsrMatrix a;
  MatrixFacts facts;
  {
    const StepLine step("reading " + o.matrix, true);
    if (is_generator(o.matrix)) {
      a = generate(o.matrix);
      facts.name = o.matrix;
      facts.declared = "generated";
      facts.stored = a.nnz();
    } else {
      ReadMatrix read = read_matrix_market(o.matrix, o.threads);
      a = std::move(read.matrix);
      facts = std::move(read.facts);
    }
  }
  const bool square = a.rows == a.cols;
  Index longest = 0, shortest = a.rows ? std::numeric_limits<Index>::max() : 0;
  double smallest_value = std::numeric_limits<double>::infinity(), largest_value = 0;
  std::int64_t zeros = 0;
  for (Index i = 0; i < a.rows; ++i) {
    const Index length = a.offsets[std::size_t(i) + 1] - a.offsets[std::size_t(i)];
    longest = std::max(longest, length);
    shortest = std::min(shortest, length);
  }
  for (double v : a.values) {
    zeros += v == 0;
    if (v != 0) smallest_value = std::min(smallest_value, std::abs(v));
    largest_value = std::max(largest_value, std::abs(v));
  }

  nlohmann::ordered_json j;
  const bool to_stdout = o.json == "-";
  int status = 0;
  const auto say = [&](const char* name, const std::string& value) {
    if (!to_stdout) print_row(name, value);
  };
  if (!to_stdout) fmt::print("{}  {}\n\n", bold(fmt::format("krilu {}", version)), facts.name);
  say("declared", facts.declared);
  say("size", fmt::format("{} rows, {} columns", io::thousands(a.rows), io::thousands(a.cols)));
  say("nonzeros",
      fmt::format("{} ({:.2f} a row, {} to {}){}", io::thousands(a.nnz()), a.rows ? double(a.nnz()) / a.rows : 0.0,
                  shortest, longest, zeros ? fmt::format(", {} of them stored zeros", io::thousands(zeros)) : ""));
  say("magnitudes", largest_value > 0 ? fmt::format("{:.3e} to {:.3e}", smallest_value, largest_value) : "all zero");
  if (facts.duplicates) say("duplicates", fmt::format("{} summed", io::thousands(facts.duplicates)));
  say("memory", io::megabytes(a.bytes()));
  j["krilu"] = version;
  j["name"] = facts.name;
  j["declared"] = facts.declared;
  j["rows"] = a.rows;
  j["columns"] = a.cols;
  j["nnz"] = a.nnz();
  j["stored_zeros"] = zeros;
  j["duplicates"] = facts.duplicates;
  j["row_length"] = {{"least", shortest}, {"most", longest}};
  j["magnitude"] = {{"least", largest_value > 0 ? smallest_value : 0}, {"most", largest_value}};
  j["bytes"] = a.bytes();

  if (square && a.rows > 0) {
    const exec::Host host(o.threads);
    std::optional<StepLine> step;
    step.emplace("analysing", true);
    const sparse::Symmetry symmetry = sparse::symmetry(a);
    const sparse::DiagonalFacts d = sparse::diagonal_facts(a);
    const Index band = sparse::bandwidth(a);
    const auto lower = rows_per_level(host, a, schedule::Triangle::lower);
    const auto upper = rows_per_level(host, a, schedule::Triangle::upper);
    std::optional<Condition> condition;
    std::string no_condition;
    if (o.condition) {
      step.emplace("estimating the condition number", true);
      try {
        condition = estimate_condition(a, ConditionNorm::infinity, o.threads);
      } catch (const Error& e) {
        no_condition = e.what();
        status = 3;
      }
    }
    step.reset();
    say("symmetry", !symmetry.pattern ? "neither pattern nor values"
                    : symmetry.values
                        ? "pattern and values"
                        : fmt::format("pattern; values differ by up to {:.1e} of the largest", symmetry.largest));
    say("diagonal",
        fmt::format("{} missing, {} zero, {} negative{}", io::thousands(d.missing), io::thousands(d.zero),
                    io::thousands(d.negative),
                    d.first_bad >= 0 ? fmt::format("; first missing or zero in row {}", d.first_bad + 1) : ""));
    say("dominance", fmt::format("{} of {} rows; least |a_ii| / sum |a_ij| {:.3g}", io::thousands(d.dominant_rows),
                                 io::thousands(a.rows), d.least_dominance));
    if (condition) say("condition", condition_sentence(*condition));
    if (!no_condition.empty()) say("condition", no_condition);
    if (d.empty_rows) say("empty rows", fmt::format("{}, the first is row {}", d.empty_rows, d.first_empty + 1));
    say("bandwidth", io::thousands(band));
    say("levels below", level_sentence(lower));
    say("levels above", level_sentence(upper));
    if (!to_stdout && lower.size() > 1) {
      fmt::print("\n  rows in each level of the lower triangle\n{}", io::text_chart(curve_of(lower), 66, 9, false));
    }
    j["symmetric"] = symmetry.values;
    j["pattern_symmetric"] = symmetry.pattern;
    if (symmetry.pattern) j["asymmetry"] = symmetry.largest;
    j["diagonal"] = {{"missing", d.missing}, {"zero", d.zero}, {"negative", d.negative}};
    if (d.first_bad >= 0) j["diagonal"]["first_bad_row"] = d.first_bad + 1;
    j["dominant_rows"] = d.dominant_rows;
    if (std::isfinite(d.least_dominance)) j["least_dominance"] = d.least_dominance;
    j["empty_rows"] = d.empty_rows;
    if (condition) {
      const Condition& c = *condition;
      j["condition"] = {{"norm", "infinity"}, {"singular", std::isinf(c.value)}};
      if (!std::isinf(c.value)) j["condition"]["estimate"] = c.value;
      j["condition"]["solves"] = c.solves;
      j["condition"]["by"] = c.by;
    }
    if (!no_condition.empty()) j["condition"] = {{"norm", "infinity"}, {"why_not", no_condition}};
    j["bandwidth"] = band;
    j["levels"] = {{"lower", lower.size()}, {"upper", upper.size()}};
    j["rows_per_level"] = {{"lower", lower}, {"upper", upper}};
    if (!o.plot.empty()) {
      io::Picture p;
      p.title = facts.name;
      p.x_label = "level";
      p.y_label = "rows";
      p.steps = true;
      p.panels = {{curve_of(lower)}, {curve_of(upper)}};
      p.panel_titles = {fmt::format("{}: lower triangle, {} levels", facts.name, lower.size()),
                        fmt::format("upper triangle, {} levels", upper.size())};
      io::draw(p, o.plot);
      say("picture", o.plot);
    }
  } else if (!square) {
    say("levels", "none: the matrix is not square");
    if (o.condition) throw Error(fmt::format("{}: only a square matrix has a condition number", facts.name));
    if (!o.plot.empty()) throw Error(fmt::format("{}: only a square matrix has levels to draw", facts.name));
  }
  if (!o.json.empty()) io::write_json(o.json, j);
  return status;
}

}  // namespace

Run add_info(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "info", "Size, symmetry, dominance, diagonal, bandwidth, and levels of both triangles; or a mesh");
  auto o = std::make_shared<InfoOptions>();
  command
      .add_option("MATRIX", o->matrix,
                  "Matrix Market file, plain or gzip, or a generator; or a mesh: an OpenFOAM case, or mesh:...")
      ->required();
  command.add_option("--json", o->json, "Write all of it here as JSON (- for standard output)")->check(a_name());
  command.add_flag("--condition", o->condition, "Estimate the condition number, which factors the matrix");
  command.add_option("--plot", o->plot, "Draw the rows of each level here (.png or .svg)")->check(a_name());
  command.add_option("--threads", o->threads, "Threads [all]");
  return [o] { return run(*o); };
}

}  // namespace krilu::app
