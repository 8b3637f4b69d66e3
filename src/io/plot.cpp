// SPDX-License-Identifier: Apache-2.0
#include "io/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "io/gnuplot.hpp"
#include "io/output_file.hpp"
#include "krilu/error.hpp"

namespace krilu::io {

namespace {

bool ends_with(const std::string& text, const char* ending) { return text.ends_with(ending); }

bool shown(double value, bool log) { return std::isfinite(value) && value < 1e300 && (!log || value > 0); }

/// What holds for panel k: its own where the panels differ, else what is said for all.
template <class All, class Own>
All of_panel(const Own& own, std::size_t k, const All& all) {
  return k < own.size() ? All(own[k]) : all;
}

/// Axes that gnuplot is to choose, but for bars, which are counts and stand on zero (log_y: below one), and where all
/// points have one x or one y, of which gnuplot would complain.
std::string ranges(const Picture& p, const std::vector<Curve>& panel, bool log_x, bool log_y) {
  constexpr double huge = std::numeric_limits<double>::infinity();
  double left = huge, right = -huge, low = p.target > 0 ? p.target : huge, high = p.target > 0 ? p.target : -huge;
  for (const Curve& curve : panel)
    for (auto [x, y] : curve.points)
      if (shown(x, log_x) && shown(y, log_y)) {
        left = std::min(left, x), right = std::max(right, x);
        low = std::min(low, y), high = std::max(high, y);
      }
  std::string s = "set xrange [*:*]\n";
  if (left == right) s = fmt::format("set xrange [{}:{}]\n", log_x ? left / 10 : left, log_x ? right * 10 : right + 1);
  if (p.steps) return s + fmt::format("set yrange [{}:*]\n", log_y ? 0.5 : 0.0);
  if (low == high)
    return s + fmt::format("set yrange [{}:{}]\n", log_y ? low / 10 : low - 1, log_y ? low * 10 : low + 1);
  return s + "set yrange [*:*]\n";
}

constexpr std::size_t many_groups = 12;  // more have their names upright

/// Room for bars from zero (log_y: below one) or for marks, the groups' names below them, upright where they are many,
/// and the key above.
std::string group_axes(const std::vector<std::string>& names, bool log_y, bool marks) {
  std::string s = fmt::format("set key above horizontal\nset xrange [-0.6:{}]\n", double(names.size()) - 0.4);
  if (!marks) s += fmt::format("set yrange [{}:*]\n", log_y ? 0.5 : 0.0);
  if (!marks && log_y) s += "set format y '%g'\n";
  s += fmt::format("set xtics {} noenhanced (",
                   names.size() > many_groups ? "rotate by 90 right scale 0" : "norotate scale 1");
  for (std::size_t g = 0; g < names.size(); ++g)
    s += fmt::format("{}{} {}", g ? ", " : "", gnuplot_string(names[g]), g);
  return s + ")\n";
}

}  // namespace

void require_drawable(const std::string& path) {
  if (!ends_with(path, ".png") && !ends_with(path, ".svg"))
    throw Error(fmt::format("--plot {}: a picture's name ends in .png or .svg", path));
  if (path.find_first_of("\n\r") != std::string::npos) throw Error("--plot: a picture's name is one line");
  require_writable(path);
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0)
    throw Error("--plot needs gnuplot, which is not installed: apt-get install gnuplot-nox (tools/setup does)");
}

void draw(const Picture& p, const std::string& path) {
  require_drawable(path);
  std::string s;
  const int columns = std::max(1, p.columns), rows = std::max(1, (int(p.panels.size()) + columns - 1) / columns);
  std::size_t names = 0;
  for (const auto& group : p.groups) names = std::max(names, group.size());
  const int width = std::max(800, 26 * int(names)) * columns, height = (names > many_groups ? 600 : 420) * rows + 40;
  // SVG in plain fonts; PNG at twice the size that it will be looked at.
  s += ends_with(path, ".svg")
           ? fmt::format("set terminal svg size {},{} dynamic font 'DejaVu Sans,13' background '#ffffff'\n", width,
                         height)
           : fmt::format("set terminal pngcairo size {},{} font 'DejaVu Sans,22' linewidth 2 background '#ffffff'\n",
                         2 * width, 2 * height);
  s += gnuplot_output(path);
  s += "set border 3 lc rgb '#606060'\nset tics nomirror textcolor rgb '#303030'\n";
  s += "set grid lc rgb '#e4e4e4' lt 1\nset key top right spacing 1.2 samplen 2\nset encoding utf8\n";
  const char* colours[] = {"#1965b0", "#dc050c", "#4eb265", "#f1932d", "#882e72", "#777777", "#7bafde", "#b17ba6"};
  const int marks[] = {7, 8, 5, 12};  // filled circle, open triangle, filled square, open diamond
  for (std::size_t c = 0; c < std::size(colours); ++c)
    s += fmt::format("set linetype {} lc rgb '{}' lw 1.6\n", c + 1, colours[c]);
  if (p.panels.size() > 1) s += fmt::format("set multiplot layout {},{}\n", rows, columns);
  for (std::size_t k = 0; k < p.panels.size(); ++k) {
    const bool log_x = p.log_x, log_y = of_panel(p.panel_log_y, k, p.log_y);
    for (auto [axis, log] : {std::pair{'x', log_x}, {'y', log_y}})
      s += log ? fmt::format("set logscale {0}\nset format {0} '10^{{%L}}'\n", axis)
               : fmt::format("unset logscale {0}\nset format {0}\n", axis);
    s += ranges(p, p.panels[k], log_x, log_y);
    s += fmt::format("set title {} noenhanced\nset xlabel {} noenhanced\nset ylabel {} noenhanced\n",
                     gnuplot_string(of_panel(p.panel_titles, k, p.title)),
                     gnuplot_string(of_panel(p.panel_x_labels, k, p.x_label)), gnuplot_string(p.y_label));
    const bool grouped = k < p.groups.size() && !p.groups[k].empty();
    const double bar = 0.8 / double(std::max<std::size_t>(p.panels[k].size(), 1));
    s += grouped ? group_axes(p.groups[k], log_y, p.marks) + fmt::format("set boxwidth {}\n", bar)
                 : fmt::format("set key {}\nset xtics autofreq norotate scale 1 enhanced\n",
                               p.marks ? "above horizontal" : "inside vertical");
    std::string plot = "plot ";
    for (std::size_t c = 0; c < p.panels[k].size(); ++c) {
      const Curve& curve = p.panels[k][c];
      s += fmt::format("$data{}_{} << EOD\n", k, c);
      for (auto [x, y] : curve.points)
        if (shown(x, log_x) && shown(y, log_y))
          s += fmt::format("{:.9g} {:.9g}\n", grouped && !p.marks ? x + bar * (double(c) + 0.5) - 0.4 : x, y);
      s += "EOD\n";
      const std::string look = p.marks   ? fmt::format("points pt {} ps 1.4", marks[c % std::size(marks)])
                               : grouped ? fmt::format("boxes fs solid {} noborder", curve.dashed ? 0.4 : 0.9)
                               : p.steps ? "fillsteps fs solid 0.6 noborder"
                                         : "lines";
      plot += fmt::format(
          "{}$data{}_{} using 1:2 with {} lt {}{} {}", c ? ", " : "", k, c, look, c % 8 + 1,
          curve.dashed && !p.steps && !p.marks && !grouped ? " dt (9,9)" : "",
          curve.label.empty() ? "notitle" : fmt::format("title {} noenhanced", gnuplot_string(curve.label)));
    }
    if (p.target > 0)
      plot += fmt::format(", {:.9g} with lines lc rgb '#909090' dt 2 lw 1 title {} noenhanced", p.target,
                          gnuplot_string(p.target_label));
    s += plot + "\n";
  }
  if (p.panels.size() > 1) s += "unset multiplot\n";
  run_gnuplot(s, path);
}

std::string text_chart(const Curve& curve, int width, int height, bool log_y) {
  const auto scaled = [&](double y) { return log_y ? std::log10(std::max(y, 1e-300)) : y; };
  double low = std::numeric_limits<double>::infinity(), high = -low, last_x = 0;
  for (auto [x, y] : curve.points) {
    if (!std::isfinite(y) || y > 1e300 || (log_y && y <= 0)) continue;
    low = std::min(low, scaled(y));
    high = std::max(high, scaled(y));
    last_x = std::max(last_x, x);
  }
  if (!(low <= high)) return "";
  if (log_y) low = std::floor(low), high = std::ceil(high);
  if (high == low) high = low + 1;
  std::vector<std::string> rows(std::size_t(height), std::string(std::size_t(width), ' '));
  for (auto [x, y] : curve.points) {
    if (!std::isfinite(y) || y > 1e300 || (log_y && y <= 0)) continue;
    const int c = std::min(width - 1, int(last_x > 0 ? x / last_x * (width - 1) + 0.5 : 0));
    const int r = std::clamp(int((high - scaled(y)) / (high - low) * (height - 1) + 0.5), 0, height - 1);
    rows[std::size_t(r)][std::size_t(c)] = '*';
  }
  std::string text;
  for (int r = 0; r < height; ++r) {
    const double at = high - (high - low) * r / (height - 1);
    const bool labelled = r == 0 || r == height - 1 || r == height / 2;
    const std::string label = log_y ? fmt::format("{:8.0e}", std::pow(10, at)) : fmt::format("{:8.0f}", at);
    text += fmt::format("{} |{}\n", labelled ? label : std::string(8, ' '), rows[std::size_t(r)]);
  }
  text += fmt::format("{} +{}\n", std::string(8, ' '), std::string(std::size_t(width), '-'));
  const std::string right = fmt::format("{:.0f}", last_x);
  text += fmt::format("{}  0{:>{}}\n", std::string(8, ' '), right, width - 1);
  return text;
}

}  // namespace krilu::io
