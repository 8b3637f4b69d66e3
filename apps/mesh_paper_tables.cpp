// SPDX-License-Identifier: Apache-2.0
// krilu bench mesh-paper: tables of times and speed-ups with the SW26010 paper's averages beside them, and its Figures
// 11 to 15 as pictures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "io/report.hpp"
#include "krilu/version.hpp"
#include "mesh_paper.hpp"

namespace krilu::app::mesh_paper {

namespace {

const std::string numberings[] = {"natural", "random"};
constexpr const char* shapes[] = {"box", "tetrahedra"};

std::string percent(double fraction) { return std::isfinite(fraction) ? fmt::format("{:.0f}%", 100 * fraction) : "-"; }
const std::string& name_of(const Row& row) { return row.mesh->name; }

/// Times of the strategy in this place; null where it was not come to.
const Times* times_at(const Row& row, std::size_t place) {
  return place < row.strategies.size() && row.strategies[place].error.empty() ? &row.strategies[place] : nullptr;
}

std::string meshes(const std::vector<Row>& rows) {
  MarkdownTable table({"mesh", "cells", "faces", "cells in a block", "faces between blocks", "left to the rest",
                       "orders", "auto took"});
  for (const Row& row : rows) {
    // Strategy diagonal, as the paper has it.
    const auto diagonal = std::find_if(row.strategies.begin(), row.strategies.end(),
                                       [](const Times& t) { return t.report.strategy == "diagonal"; });
    const bool there = diagonal != row.strategies.end();
    const FaceLoopReport r = there ? diagonal->report : FaceLoopReport();
    table.add({name_of(row), io::thousands(row.cells), io::thousands(row.faces),
               there ? io::thousands(r.most_cells) : "-", there ? percent(r.cut_fraction) : "-",
               there ? percent(r.remainder_fraction) : "-", there ? std::to_string(r.orders.size()) : "-",
               row.strategies.empty() ? "-" : row.strategies.back().report.strategy});
  }
  return "\n## The meshes\n\nBlocks, and what of the faces lies between them and is left to the rest, are those of "
         "strategy diagonal.\n\n" +
         table.text();
}

/// Figure 11: times of SpMV.
std::string times_table(const std::vector<Row>& rows, const Machine& machine) {
  std::vector<std::string> head{"mesh", "plain, one core", "plain, all cores"};
  const auto named = strategies(machine.gpu);
  for (const Variant& v : named) head.emplace_back(v.label);
  MarkdownTable table(head);
  for (const Row& row : rows) {
    std::vector<std::string> line{name_of(row), milliseconds(seconds(row.plain[symmetric])),
                                  milliseconds(seconds(row.in_parts.seconds[symmetric]))};
    for (std::size_t s = 0; s < named.size(); ++s) {
      const Times* t = times_at(row, s);
      line.push_back(t ? milliseconds(seconds(t->seconds[symmetric])) : "-");
    }
    table.add(std::move(line));
  }
  return "\n## Figure 11: SpMV, milliseconds\n\n" + table.text();
}

/// Figures 12 to 14.
std::string speed_up_table(const std::vector<Row>& rows, const Machine& machine, int k) {
  const Operator& op = operator_table()[std::size_t(k)];
  std::vector<std::string> head{"mesh", "plain, ms", "plain, all cores"};
  const auto named = strategies(machine.gpu);
  for (const Variant& v : named) head.emplace_back(v.label);
  for (const char* text : {"auto, ms", "auto over all cores", "auto, of the bound"}) head.emplace_back(text);
  MarkdownTable table(head);
  for (const Row& row : rows) {
    const double plain = seconds(row.plain[std::size_t(k)]), all_cores = seconds(row.in_parts.seconds[std::size_t(k)]);
    std::vector<std::string> line{name_of(row), milliseconds(plain), figure(plain / all_cores)};
    for (std::size_t s = 0; s < named.size(); ++s) {
      const Times* t = times_at(row, s);
      line.push_back(t ? figure(speed_up(row, *t, k)) : "-");
    }
    if (const Times* t = times_at(row, named.size() - 1)) {
      const double own = seconds(t->seconds[std::size_t(k)]);
      line.insert(line.end(), {milliseconds(own), figure(all_cores / own),
                               percent(fraction_of_bound(row, *t, k, machine.bandwidth))});
    }
    table.add(std::move(line));
  }
  return fmt::format("\n## {}{}{}, speed-up over one core\n\n{}", op.figure, *op.figure ? ": " : "", op.label,
                     table.text());
}

std::string set_up_table(const std::vector<Row>& rows, const Machine& machine) {
  std::vector<std::string> head{"mesh"};
  const auto named = strategies(machine.gpu);
  for (const Variant& v : named) head.push_back(std::string(v.label) + ", s");
  for (const Variant& v : named) head.push_back(std::string(v.label) + ", SpMVs");
  MarkdownTable table(head);
  for (const Row& row : rows) {
    std::vector<std::string> line{name_of(row)};
    for (std::size_t s = 0; s < named.size(); ++s) {
      const Times* t = times_at(row, s);
      line.push_back(t ? figure(t->set_up) : "-");
    }
    for (std::size_t s = 0; s < named.size(); ++s) {
      const Times* t = times_at(row, s);
      const double products = t ? set_up_in_products(*t) : not_known;
      line.push_back(std::isfinite(products) ? io::thousands(std::int64_t(products + 0.5)) : "-");
    }
    table.add(std::move(line));
  }
  return fmt::format(
      "\n## Set-up\n\nSeconds{}, and the same in SpMVs of the strategy's own; auto's with its trials.\n\n{}",
      machine.gpu ? " with the transfer to the GPU" : "", table.text());
}

std::size_t place_of_diagonal(bool gpu) {
  const auto named = strategies(gpu);
  return std::size_t(
      std::find_if(named.begin(), named.end(), [](const Variant& v) { return v.key == std::string("diagonal"); }) -
      named.begin());
}

std::string table_15(const std::vector<Row>& rows, const Machine& machine) {
  std::vector<std::string> head{"mesh"};
  const auto others = ablations(machine.gpu);
  for (const Ablation& a : others) head.emplace_back(a.label);
  head.emplace_back("with both");
  MarkdownTable table(head);
  for (const Row& row : rows) {
    std::vector<std::string> line{name_of(row)};
    for (std::size_t s = 0; s < others.size(); ++s)
      line.push_back(s < row.ablations.size() ? figure(speed_up(row, row.ablations[s], symmetric)) : "-");
    const Times* t = times_at(row, place_of_diagonal(machine.gpu));
    line.push_back(t ? figure(speed_up(row, *t, symmetric)) : "-");
    table.add(std::move(line));
  }
  std::vector<std::string> paper{"the paper's mean"};
  for (const Ablation& a : others) paper.push_back(figure(a.paper));
  paper.push_back(figure(operator_table()[symmetric].paper_mean));
  table.add(std::move(paper));
  return fmt::format(
      "\n## Figure 15: SpMV by strategy diagonal, speed-up over one core\n\nWithout the choice of diagonals blocks "
      "work "
      "on the first {} orders, dense or not. Fixed blocks have {} cells. The mesh's own numbering is what the paper "
      "has; krilu's other loops renumber cells first.\n\n{}",
      others[0].options.orders, others[1].options.block_cells, table.text());
}

std::string summary(const std::vector<Row>& rows, const Machine& machine) {
  MarkdownTable table({"operator", "numbering", "meshes", "diagonal: mean", "best", "auto: mean", "best",
                       "fastest: mean", "best", "paper: mean", "best"},
                      2);
  const auto named = strategies(machine.gpu);
  for (int k = 0; k < operators; ++k)
    for (const std::string& numbering : numberings) {
      const Mean diagonal = mean_speed_up(rows, k, int(place_of_diagonal(machine.gpu)), numbering),
                 chosen = mean_speed_up(rows, k, int(named.size()) - 1, numbering),
                 fastest = mean_speed_up(rows, k, -1, numbering);
      if (fastest.rows == 0) continue;
      const Operator& op = operator_table()[std::size_t(k)];
      table.add({op.label, numbering, std::to_string(fastest.rows), figure(diagonal.mean), figure(diagonal.best),
                 figure(chosen.mean), figure(chosen.best), figure(fastest.mean), figure(fastest.best),
                 figure(op.paper_mean), k == symmetric ? figure(paper_best_spmv) : "-"});
    }
  return "\n## Summary: speed-ups over one core\n\nArithmetic means over the meshes. The paper's are of 64 cores over "
         "the one that leads them.\n\n" +
         table.text();
}

std::string remarks(const std::vector<Row>& rows, const Machine& machine) {
  constexpr double rounding = 1e-12;
  std::string text;
  const auto look = [&](const Row& row, const char* label, const Times& t) {
    if (!t.error.empty()) text += fmt::format("- {}: {}: {}\n", name_of(row), label, t.error);
    for (int k = 0; k < operators; ++k)
      if (const double d = t.difference[std::size_t(k)]; !(d <= rounding))
        text += fmt::format("- {}: {}: {} differs from the plain loop by {:.1e}\n", name_of(row), label,
                            operator_table()[std::size_t(k)].label, d);
  };
  int measured = 0, unsteady = 0;
  const auto count = [&](const std::vector<double>& samples) {
    if (samples.empty()) return;
    ++measured;
    unsteady += seconds(samples) > 2 * *std::min_element(samples.begin(), samples.end());
  };
  for (const Row& row : rows) {
    for (const auto* per_operator : {&row.plain, &row.in_parts.seconds})
      for (const auto& samples : *per_operator) count(samples);
    for (const auto* all : {&row.strategies, &row.ablations})
      for (const Times& t : *all)
        for (const auto& samples : t.seconds) count(samples);
  }
  if (unsteady > 0)
    text += fmt::format(
        "- {} of {} times are unsteady, their median more than twice their least: something else runs on this machine. "
        "The least ones are in the JSON\n",
        unsteady, measured);
  const auto named = strategies(machine.gpu);
  const auto others = ablations(machine.gpu);
  for (const Row& row : rows) {
    if (!row.error.empty()) text += fmt::format("- {}: {}\n", name_of(row), row.error);
    for (std::size_t s = 0; s < row.strategies.size(); ++s) look(row, named[s].label, row.strategies[s]);
    for (std::size_t s = 0; s < row.ablations.size(); ++s) look(row, others[s].label, row.ablations[s]);
  }
  return text.empty() ? text : "\n## Remarks\n\n" + text;
}

constexpr double dash = 1.2;  // a single point is drawn as a level line as long as this ratio

/// Room for the key to the right of lines over cells: a nameless curve of a single point there, which draws nothing.
io::Curve room_for_key(const std::vector<const Row*>& rows, double y) {
  double least = rows[0]->cells, most = least;
  for (const Row* row : rows) least = std::fmin(least, row->cells), most = std::fmax(most, row->cells);
  constexpr double width = 0.6;  // over that of the lines
  return {"", {{most * std::pow(std::fmax(most / least, dash), width), y}}};
}

/// Panels by shape and numbering; curves(rows of the panel) gives what is in them.
template <class Curves>
void add_panels(io::Picture& p, const std::vector<Row>& rows, const Curves& curves) {
  for (const std::string& numbering : numberings)
    for (const char* shape : shapes) {
      std::vector<const Row*> of_panel;
      for (const Row& row : rows)
        if (row.mesh->shape == shape && row.mesh->numbering == numbering && row.cells > 0) of_panel.push_back(&row);
      if (of_panel.empty()) continue;
      std::vector<io::Curve> found = curves(of_panel);
      std::erase_if(found, [](const io::Curve& c) { return c.points.empty(); });
      if (found.empty()) continue;
      if (p.log_x) found.push_back(room_for_key(of_panel, found[0].points[0].second));
      p.panels.push_back(std::move(found));
      p.panel_titles.push_back(fmt::format("{}, {} numbering", shape, numbering));
    }
  p.columns = p.panels.size() > 1 ? 2 : 1;
}

/// A curve over the cells, where value(row) is known.
template <class Value>
io::Curve over_cells(const std::string& label, const std::vector<const Row*>& rows, const Value& value) {
  io::Curve curve{label, {}};
  for (const Row* row : rows)
    if (const double y = value(*row); std::isfinite(y)) curve.points.emplace_back(double(row->cells), y);
  if (rows.size() == 1 && !curve.points.empty())
    curve.points.emplace_back(dash * curve.points[0].first, curve.points[0].second);
  return curve;
}

template <class Value>
void add_strategies(std::vector<io::Curve>& curves, const std::vector<const Row*>& rows, const Machine& machine,
                    const Value& value) {
  const auto named = strategies(machine.gpu);
  for (std::size_t s = 0; s < named.size(); ++s) {
    if (named[s].key == std::string("serial")) continue;
    curves.push_back(over_cells(named[s].label, rows, [&](const Row& row) {
      const Times* t = times_at(row, s);
      return t ? value(row, *t) : not_known;
    }));
    curves.back().dashed = s + 1 == named.size();
  }
}

}  // namespace

std::string tables(const std::vector<Row>& rows, const Machine& machine, const BenchOptions& o) {
  std::string text = "# Unstructured-mesh computing on the SW26010 (2022), Figures 11 to 15, repeated\n\n";
  text += fmt::format("Ours: krilu {} on {}; plain loops on one core and on {} of {}. `{}`\n", version,
                      machine.gpu ? machine.device : "the host", machine.threads, machine.cpu, o.command);
  const auto rates = [](const char* whose, const Bandwidth& b) {
    return b.triad > 0 ? fmt::format(" {}: triad {} GB/s, copy {} GB/s.", whose, figure(b.triad), figure(b.copy)) : "";
  };
  text += "\nMemory." + rates("Host", machine.host_bandwidth) +
          (machine.gpu ? rates("GPU", machine.bandwidth) : std::string()) + "\n";
  text += fmt::format(
      "\nTimes are medians of {} runs, of {} where one takes less than {} ms. The plain loop is y = D x and then a "
      "pass "
      "over the faces in the mesh's own order, in one thread; on all cores each has a part of the mesh for itself, "
      "without the faces between parts. The bound is what reading each input once and writing each output once takes "
      "at the triad rate, 8 bytes of addressing a face included; above 100% caches helped.\n",
      o.repeat, std::max(o.repeat, short_repeat), milliseconds(short_time));
  text += meshes(rows);
  text += times_table(rows, machine);
  for (int k = 0; k < operators; ++k) text += speed_up_table(rows, machine, k);
  text += set_up_table(rows, machine);
  text += table_15(rows, machine);
  text += summary(rows, machine);
  text += remarks(rows, machine);
  return text;
}

io::Picture figure_11(const std::vector<Row>& rows, const Machine& machine) {
  io::Picture p;
  p.x_label = "cells";
  p.y_label = "SpMV, ms";
  p.log_x = p.log_y = true;
  add_panels(p, rows, [&](const std::vector<const Row*>& of_panel) {
    std::vector<io::Curve> curves;
    curves.push_back(
        over_cells("plain, one core", of_panel, [](const Row& r) { return 1e3 * seconds(r.plain[symmetric]); }));
    curves.push_back(over_cells("plain, all cores", of_panel,
                                [](const Row& r) { return 1e3 * seconds(r.in_parts.seconds[symmetric]); }));
    add_strategies(curves, of_panel, machine,
                   [](const Row&, const Times& t) { return 1e3 * seconds(t.seconds[symmetric]); });
    return curves;
  });
  return p;
}

io::Picture figure_of_speed_ups(const std::vector<Row>& rows, const Machine& machine, int k) {
  const Operator& op = operator_table()[std::size_t(k)];
  io::Picture p;
  p.x_label = "cells";
  p.y_label = fmt::format("{}, speed-up over one core", op.label);
  p.log_x = true;
  p.target = op.paper_mean;
  p.target_label = "the paper's mean";
  add_panels(p, rows, [&](const std::vector<const Row*>& of_panel) {
    std::vector<io::Curve> curves;
    curves.push_back(over_cells("plain, all cores", of_panel, [&](const Row& r) {
      return seconds(r.plain[std::size_t(k)]) / seconds(r.in_parts.seconds[std::size_t(k)]);
    }));
    add_strategies(curves, of_panel, machine, [&](const Row& row, const Times& t) { return speed_up(row, t, k); });
    return curves;
  });
  return p;
}

io::Picture figure_15(const std::vector<Row>& rows, const Machine& machine) {
  io::Picture p;
  p.y_label = "SpMV, speed-up over one core";
  const auto others = ablations(machine.gpu);
  add_panels(p, rows, [&](const std::vector<const Row*>& of_panel) {
    std::vector<io::Curve> curves(others.size() + 1);
    std::vector<std::string> names;
    for (const Row* row : of_panel) {
      const double at = double(names.size());
      for (std::size_t s = 0; s < others.size(); ++s) {
        curves[s].label = others[s].label;
        if (s < row->ablations.size()) curves[s].points.emplace_back(at, speed_up(*row, row->ablations[s], symmetric));
      }
      curves.back().label = "with both";
      if (const Times* t = times_at(*row, place_of_diagonal(machine.gpu)))
        curves.back().points.emplace_back(at, speed_up(*row, *t, symmetric));
      names.push_back(row->mesh->size);
    }
    if (std::any_of(curves.begin(), curves.end(), [](const io::Curve& c) { return !c.points.empty(); }))
      p.groups.push_back(std::move(names));
    return curves;
  });
  return p;
}

}  // namespace krilu::app::mesh_paper
