// SPDX-License-Identifier: Apache-2.0
// krilu bench gmres-ir-paper: Tables 2 to 4 of Zheng, Kou and Zhang (2025) with the paper's figures beside ours, what
// their Figure 8 correlates, and their Figures 3, 4, 6, 9 and 10 as pictures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "gmres_ir_paper.hpp"
#include "io/report.hpp"
#include "krilu/version.hpp"

namespace krilu::app::gmres_ir_paper {

namespace {

std::string name_of(const Row& row) { return row.system->name(); }
bool is_small(const Row& row) { return row.rows > 0 && row.rows < paper_fewest_rows; }
/// For tables: a star on what is smaller than any of the paper's.
std::string marked(const Row& row) { return name_of(row) + (is_small(row) ? " *" : ""); }

double speed_up(const Row& row) { return gmres_ir_paper::speed_up(row.in_double, row.mixed); }
double rmse(const Measured& m) { return m.done ? m.result.rmse : not_known; }
double solve_s(const Measured& m) { return m.done ? m.seconds.solve : not_known; }
double set_up_s(const Measured& m) { return m.done ? m.seconds.analyse + m.seconds.factor : not_known; }
double ilu_s(const Row& row) {
  return row.precond == "ilu0" && row.in_double.done ? row.in_double.seconds.factor : not_known;
}

/// Of powers of ten.
std::string small_figure(double value) { return std::isfinite(value) ? fmt::format("{:.2e}", value) : "-"; }
std::string condition(const Row& row) {
  return row.condition && std::isinf(row.condition->value) ? "singular" : small_figure(row.cond());
}
std::string outer(const Measured& m) { return m.done ? std::to_string(m.result.outer_iterations) : "-"; }
std::string joined(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string missing(const std::vector<Row>& rows) {
  std::vector<std::string> fetched, others;
  for (const Row& row : rows)
    if (!row.at_hand()) (row.system->origin == Origin::collection ? fetched : others).push_back(name_of(row));
  std::string text;
  if (!fetched.empty())
    text += fmt::format(
        "\nNot at hand: {0}. `tools/fetch-matrices --to FOLDER {1}` gets them; then `--matrices FOLDER`, or "
        "KRILU_MATRICES.\n",
        joined(fetched), fmt::join(fetched, " "));
  if (!others.empty())
    text += fmt::format("\nNot at hand, and not in the SuiteSparse collection: {}.\n", joined(others));
  return text;
}

std::string table_2(const std::vector<Row>& rows) {
  MarkdownTable table({"", "rows", "nonzeros", "condition", "density, %", "entry"});
  const auto extreme = [&](const std::function<double(const Row&)>& of, bool most) {
    double found = not_known;
    for (const Row& row : rows)
      if (const double value = of(row); row.rows > 0 && std::isfinite(value))
        found = most ? std::fmax(found, value) : std::fmin(found, value);
    return found;
  };
  const auto count = [](double n) { return std::isfinite(n) ? io::thousands(std::int64_t(n)) : "-"; };
  for (const bool most : {true, false}) {
    const char* word = most ? "maximum" : "minimum";
    table.add({fmt::format("{}, ours", word), count(extreme([](const Row& r) { return double(r.rows); }, most)),
               count(extreme([](const Row& r) { return double(r.nnz); }, most)),
               small_figure(extreme([](const Row& r) { return r.cond(); }, most)),
               figure(extreme([](const Row& r) { return 100 * r.density(); }, most)),
               small_figure(extreme([&](const Row& r) { return most ? r.largest : r.smallest; }, most))});
    if (most)
      table.add({"the paper's", "109,460", "2,374,949", "5.63e+12", "1.98", "3.57e+10"});
    else
      table.add({"the paper's", "1,080", "14,133", "8.85e+02", "0.004111", "1.74e-10"});
  }
  return fmt::format(
      "\n## Table 2: the matrices\n\nCondition numbers are estimates of ||A|| ||A^-1|| in the infinity norm, left out "
      "where nothing here solves with the matrix. Entries are by magnitude, zeros left out.\n\n{}",
      table.text());
}

/// The seven lines that the paper printed, where we have the matrix.
std::string paper_table_3(const std::vector<Row>& rows) {
  MarkdownTable table({"matrix", "ILU, s: i7-7700", "ours", "double, s: i7-7700", "ours", "mixed, s: i7-7700", "ours",
                       "speed-up: paper", "ours", "RMSE double: paper", "ours", "RMSE mixed: paper", "ours"});
  bool any = false;
  for (const Row& row : rows) {
    if (!row.system->paper) continue;
    const PaperLine& p = *row.system->paper;
    any = true;
    table.add({name_of(row), figure(p.ilu), figure(ilu_s(row)), figure(p.in_double), figure(solve_s(row.in_double)),
               figure(p.mixed), figure(solve_s(row.mixed)), figure(p.speed_up()), figure(speed_up(row)),
               small_figure(p.rmse_double), small_figure(rmse(row.in_double)), small_figure(p.rmse_mixed),
               small_figure(rmse(row.mixed))});
  }
  if (!any) return "";
  return "\n## Table 3: the matrices that the paper names\n\nOf its 33 matrices it prints these.\n\n" + table.text();
}

std::string table_3(const std::vector<Row>& rows) {
  MarkdownTable table(
      {"matrix", "precond.", "rows", "nonzeros", "condition", "set-up, s: double", "mixed", "ILU, s", "double, s",
       "mixed, s", "speed-up", "iterations: double", "mixed", "outer", "RMSE: double", "mixed", "precision"},
      2);
  bool any = false, stars = false;
  for (const Row& row : rows) {
    if (row.precond.empty()) continue;
    any = true;
    stars = stars || is_small(row);
    table.add({marked(row), row.precond, io::thousands(row.rows), io::thousands(row.nnz), condition(row),
               figure(set_up_s(row.in_double)), figure(set_up_s(row.mixed)), figure(ilu_s(row)),
               figure(solve_s(row.in_double)), figure(solve_s(row.mixed)), figure(speed_up(row)),
               iterations_of(row.in_double), iterations_of(row.mixed), outer(row.mixed),
               small_figure(rmse(row.in_double)), small_figure(rmse(row.mixed)),
               row.mixed.done ? row.mixed.result.precision : "-"});
  }
  if (!any) return "";
  return fmt::format(
      "\n## Table 3 for all matrices\n\nIterations of the mixed solver are inner ones, in so many outer ones. "
      "The precision is that of its last inner solve. There is a speed-up where both converged.{}\n\n{}",
      stars ? fmt::format(" *: fewer rows than any of the paper's ({}).", io::thousands(paper_fewest_rows)) : "",
      table.text());
}

std::string table_4(const Row& row) {
  MarkdownTable table({"case", "outer x inner", "RMSE", "iterations", "outer", "precision", "solve, s", "speed-up",
                       "ex20: RMSE", "iterations", "i7-7700, s", "speed-up"},
                      2);
  const PaperCase& paper_double = paper_cases()[0];
  for (std::size_t k = 0; k < row.cases.size(); ++k) {
    const PaperCase& p = paper_cases()[k];
    const Measured& m = row.cases[k];
    const bool reached = p.outer > 0 && p.rmse <= target_rmse;
    table.add({k == 0 ? "double" : "mixed",
               k == 0 ? fmt::format("restart {}", p.inner) : fmt::format("{} x {}", p.outer, p.inner),
               small_figure(rmse(m)), iterations_of(m), k == 0 ? "-" : outer(m), m.done ? m.result.precision : "-",
               figure(solve_s(m)), k == 0 ? "-" : figure(gmres_ir_paper::speed_up(row.in_double, m)),
               small_figure(p.rmse), std::to_string(p.iterations), figure(p.seconds),
               reached ? figure(paper_double.seconds / p.seconds) : "-"});
  }
  return fmt::format(
      "\n## Table 4: {}, other limits\n\n{} rows, condition {}. The paper's is ex20{}, condition 6e8. Outer x inner is "
      "what is allowed in one precision; ours then raises it, and the paper's ends.\n\n{}",
      name_of(row), io::thousands(row.rows), condition(row), name_of(row) == "ex20" ? "" : ", a matrix of its kind",
      table.text());
}

std::string summary_text(const std::vector<Row>& rows, const BenchOptions& o) {
  const Summary s = summary(rows, o);
  if (s.tried == 0) return "";
  const auto named = [](const Named& n) {
    return n.name.empty() ? std::string("-") : fmt::format("{} ({})", figure(n.value), n.name);
  };
  const std::string first = first_precision(o);
  MarkdownTable table({"", "ours", "paper"});
  table.add({"systems", std::to_string(s.tried), "33"});
  table.add({"converged in double", std::to_string(s.in_double), "-"});
  table.add({"converged in mixed", std::to_string(s.mixed), "-"});
  table.add({"converged in double alone", std::to_string(s.lost.size()), "1 (ex20)"});
  table.add({"converged in mixed alone", std::to_string(s.won.size()), "-"});
  table.add({"mixed faster", fmt::format("{} of {}", s.faster, s.compared), "21 of 33"});
  table.add({"best speed-up", named(s.best), "2.535 (Venkat01)"});
  const std::string above = fmt::format("above {} rows", io::thousands(large));
  table.add({fmt::format("geometric mean of the speed-ups {}", above),
             fmt::format("{} ({} systems)", figure(s.mean), s.large), "-"});
  table.add({fmt::format("slowest {}", above), named(s.slowest_large), "above 1"});
  table.add({fmt::format("slowest where {} sufficed", first), named(s.slowest_sufficed), "-"});
  table.add({fmt::format("slowest of the {} where it was raised", s.raised), named(s.slowest_raised), "-"});
  return fmt::format("\n## Summary\n\n{}\nIn double alone: {}. In mixed alone: {}.\n", table.text(), joined(s.lost),
                     joined(s.won));
}

std::string correlation_table(const std::vector<Row>& rows) {
  MarkdownTable table({"x", "systems", "x, y", "lg x, y", "x, lg y"});
  const auto two = [](double value) { return std::isfinite(value) ? fmt::format("{:.2f}", value) : "-"; };
  for (const Correlation& c : correlations(rows))
    table.add({c.label, std::to_string(c.samples), two(c.plain), two(c.log_x), two(c.log_y)});
  return fmt::format(
      "\n## Figure 8 in numbers: Pearson's coefficients of x and the speed-up y\n\nThe paper leaves out solves that "
      "are too short, and does not say which; here those below {} s in double. It finds condition numbers to matter "
      "most, and large ones to be bad.\n\n{}",
      figure(shortest), table.text());
}

double pearson(const std::vector<double>& x, const std::vector<double>& y) {
  const double n = double(x.size());
  double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mean_x += x[i] / n, mean_y += y[i] / n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += dx * dx, yy += dy * dy, xy += dx * dy;
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : not_known;
}

std::vector<double> logs(std::vector<double> v) {
  for (double& value : v) value = std::log10(value);
  return v;
}

/// Speed-ups against x, in curves by whether the first precision sufficed.
std::vector<io::Curve> speed_ups(const std::vector<Row>& rows, const BenchOptions& o,
                                 const std::function<double(const Row&)>& x) {
  std::vector<io::Curve> curves{{first_precision(o) + " sufficed", {}}, {"precision raised", {}}};
  for (const Row& row : rows)
    if (const double y = speed_up(row); std::isfinite(y))
      curves[was_raised(row.mixed, o)].points.emplace_back(x(row), y);
  std::erase_if(curves, [](const io::Curve& c) { return c.points.empty(); });
  return curves;
}

void add_panel(io::Picture& p, std::vector<io::Curve> curves) {
  if (std::any_of(curves.begin(), curves.end(), [](const io::Curve& c) { return !c.points.empty(); }))
    p.panels.push_back(std::move(curves));
}

io::Picture of_speed_ups(const char* x_label) {
  io::Picture p;
  p.x_label = x_label;
  p.y_label = "speed-up, double to mixed";
  p.log_x = p.marks = true;
  p.target = 1;
  p.target_label = "1";
  return p;
}

io::Picture of_errors() {
  io::Picture p;
  p.y_label = "RMSE";
  p.log_y = p.marks = true;
  p.target = target_rmse;
  p.target_label = "asked";
  return p;
}

}  // namespace

Summary summary(const std::vector<Row>& rows, const BenchOptions& o) {
  Summary s;
  double logarithms = 0;
  const auto keep_if = [](bool better, Named& of, const std::string& name, double value) {
    if (of.name.empty() || better) of = {name, value};
  };
  for (const Row& row : rows) {
    if (!row.tried()) continue;
    const std::string name = name_of(row);
    const bool in_double = converged(row.in_double), mixed = converged(row.mixed);
    ++s.tried;
    s.in_double += in_double;
    s.mixed += mixed;
    if (in_double && !mixed) s.lost.push_back(name);
    if (mixed && !in_double) s.won.push_back(name);
    const double ratio = speed_up(row);
    if (!std::isfinite(ratio)) continue;
    const bool raised = was_raised(row.mixed, o);
    ++s.compared;
    s.faster += ratio > 1;
    s.raised += raised;
    keep_if(ratio > s.best.value, s.best, name, ratio);
    Named& slowest = raised ? s.slowest_raised : s.slowest_sufficed;
    keep_if(ratio < slowest.value, slowest, name, ratio);
    if (row.rows <= large) continue;
    ++s.large;
    logarithms += std::log(ratio);
    keep_if(ratio < s.slowest_large.value, s.slowest_large, name, ratio);
  }
  if (s.large > 0) s.mean = std::exp(logarithms / s.large);
  return s;
}

std::vector<Correlation> correlations(const std::vector<Row>& rows) {
  struct Quantity {
    const char *key, *label;
    double (*of)(const Row&);
  };
  const Quantity quantities[] = {
      {"double_seconds", "seconds in double", [](const Row& r) { return solve_s(r.in_double); }},
      {"double_iterations", "iterations in double", [](const Row& r) { return double(r.in_double.result.iterations); }},
      {"condition", "condition number", [](const Row& r) { return r.cond(); }},
      {"rows", "rows", [](const Row& r) { return double(r.rows); }},
      {"nnz", "nonzeros", [](const Row& r) { return double(r.nnz); }},
      {"density", "density", [](const Row& r) { return r.density(); }},
  };
  std::vector<Correlation> out;
  for (const Quantity& q : quantities) {
    std::vector<double> x, y;
    for (const Row& row : rows) {
      const double value = q.of(row), ratio = speed_up(row);
      if (!std::isfinite(ratio) || row.in_double.seconds.solve < shortest || !std::isfinite(value) || !(value > 0))
        continue;
      x.push_back(value);
      y.push_back(ratio);
    }
    out.push_back({q.key, q.label, int(x.size()), pearson(x, y), pearson(logs(x), y), pearson(x, logs(y))});
  }
  return out;
}

std::string tables(const std::vector<Row>& rows, const Machine& machine, const BenchOptions& o) {
  std::string text =
      "# Zheng, Kou and Zhang (2025), mixed-precision GMRES for matrices of flow simulation, repeated\n\n";
  text += fmt::format("Ours: krilu {} on one core of {}. The paper's: one core of an Intel i7-7700. `{}`\n", version,
                      machine.cpu, o.command);
  text += fmt::format(
      "\nThe paper's rules: ILU(0), right-hand side of ones, from zero, until ||b - A x|| / sqrt(rows), the RMSE, is "
      "{:.0e}. Double is GMRES({}), {} iterations at most. Mixed refines: {} inner iterations in {} at most in each of "
      "{} outer ones. Where that does not do, the paper's ends and ours goes on in a higher precision, {} iterations "
      "at most in all.\n",
      target_rmse, restart, most_iterations, most_inner, first_precision(o), most_outer,
      most_outer * most_inner + most_iterations);
  text += fmt::format(
      "\nSeconds are of the solve, without the set-up (analysis and ILU), and are the median of {}; double and mixed "
      "take turns.\n",
      o.repeat);
  text += missing(rows);
  text += table_2(rows);
  text += paper_table_3(rows);
  text += table_3(rows);
  for (const Row& row : rows)
    if (!row.cases.empty()) text += table_4(row);
  text += summary_text(rows, o);
  text += correlation_table(rows);
  std::string remarks;
  for (const Row& row : rows)
    for (const std::string& remark : row.remarks) remarks += fmt::format("- {}: {}\n", name_of(row), remark);
  if (!remarks.empty()) text += "\n## Remarks\n\n" + remarks;
  return text;
}

io::Picture figure_3(const std::vector<Row>& rows) {
  io::Picture p = of_errors();
  std::vector<io::Curve> curves{{"double", {}}, {"mixed", {}}};
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (!row.tried()) continue;
    const double at = double(names.size());
    curves[0].points.emplace_back(at, rmse(row.in_double));
    curves[1].points.emplace_back(at, rmse(row.mixed));
    names.push_back(name_of(row));
  }
  add_panel(p, std::move(curves));
  p.groups = {std::move(names)};
  return p;
}

io::Picture figure_4(const std::vector<Row>& rows) {
  io::Picture p = of_speed_ups("");
  p.log_x = p.marks = false;
  io::Curve curve;
  std::vector<std::string> names;
  for (const Row& row : rows) {
    const double y = speed_up(row);
    if (!std::isfinite(y)) continue;
    curve.points.emplace_back(double(names.size()), y);
    names.push_back(name_of(row));
  }
  add_panel(p, {std::move(curve)});
  p.groups = {std::move(names)};
  return p;
}

io::Picture figure_6(const std::vector<Row>& rows, const BenchOptions& o) {
  io::Picture p = of_speed_ups("solve in double, s");
  add_panel(p, speed_ups(rows, o, [](const Row& r) { return solve_s(r.in_double); }));
  return p;
}

io::Picture figure_9(const std::vector<Row>& rows, const BenchOptions& o) {
  io::Picture p = of_speed_ups("");
  std::vector<io::Curve> by_condition =
      speed_ups(rows, o, [](const Row& r) { return std::isfinite(r.cond()) ? r.cond() : not_known; });
  for (io::Curve& curve : by_condition) std::erase_if(curve.points, [](auto xy) { return !std::isfinite(xy.first); });
  std::vector<io::Curve> by_rows{{"condition below 1e6", {}}, {"from 1e6", {}}, {"not known", {}}};
  for (const Row& row : rows)
    if (const double y = speed_up(row), c = row.cond(); std::isfinite(y))
      by_rows[std::isnan(c) ? 2 : c < easy_condition ? 0 : 1].points.emplace_back(double(row.rows), y);
  for (auto* curves : {&by_condition, &by_rows})
    std::erase_if(*curves, [](const io::Curve& c) { return c.points.empty(); });
  const struct {
    const char* label;
    std::vector<io::Curve>& curves;
  } panels[] = {{"condition number", by_condition}, {"rows", by_rows}};
  for (const auto& panel : panels)
    if (!panel.curves.empty()) {
      add_panel(p, std::move(panel.curves));
      p.panel_x_labels.push_back(panel.label);
    }
  p.columns = int(p.panels.size());
  return p;
}

io::Picture figure_10(const std::vector<Row>& rows) {
  io::Picture p = of_errors();
  p.x_label = "condition number";
  p.log_x = true;
  std::vector<io::Curve> curves{{"double", {}}, {"mixed", {}}};
  for (const Row& row : rows) {
    if (!std::isfinite(row.cond())) continue;
    if (row.in_double.done) curves[0].points.emplace_back(row.cond(), rmse(row.in_double));
    if (row.mixed.done) curves[1].points.emplace_back(row.cond(), rmse(row.mixed));
  }
  add_panel(p, std::move(curves));
  return p;
}

}  // namespace krilu::app::gmres_ir_paper
