// SPDX-License-Identifier: Apache-2.0
// Pictures: curves, bars and scattered points, drawn by gnuplot into PNG or SVG by the file's ending, and small ones as
// text for a terminal. Where gnuplot is missing, picture() says so.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace krilu::io {

struct Curve {
  std::string label;
  std::vector<std::pair<double, double>> points;
  bool dashed = false;  // so that one under it shows
};

struct Picture {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  bool steps = false;  // bars side by side in place of lines
  bool marks = false;  // a mark at each point in place of lines; with groups, above their names in place of bars
  double target = 0;   // a dashed line there, where positive
  std::string target_label;
  std::vector<std::vector<Curve>> panels;  // one panel each, row by row
  int columns = 1;                         // panels in a row
  std::vector<std::string> panel_titles;
  std::vector<bool> panel_log_y;            // panel by panel, where log_y does not hold for all
  std::vector<std::string> panel_x_labels;  // panel by panel, where x_label does not hold for all
  /// Panel by panel, where not empty: bars in groups in place of lines, a bar of each curve in a group. The names of
  /// the groups, at x = 0, 1, 2, ...
  std::vector<std::vector<std::string>> groups;
};

/// Draws into path (.png or .svg). Throws krilu::Error for another ending, where gnuplot is not installed, or where it
/// fails.
void draw(const Picture& picture, const std::string& path);
/// Throws as draw would for the path alone: to refuse before long work and not after it.
void require_drawable(const std::string& path);

/// One curve as text, `width` columns by `height` rows and the axes; y logarithmic where asked.
std::string text_chart(const Curve& curve, int width, int height, bool log_y);

}  // namespace krilu::io
