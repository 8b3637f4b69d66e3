// SPDX-License-Identifier: Apache-2.0
#include "io/gnuplot.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "krilu/error.hpp"

namespace krilu::io {

std::string gnuplot_string(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    if (c == '\'')
      out += "''";
    else
      out += c == '\n' || c == '\r' ? ' ' : c;  // a quote ends with the line, and what follows would be a command
  return out + "'";
}

std::string gnuplot_output(const std::string& path) {
  return fmt::format("set output {}\n", gnuplot_string(path.starts_with('|') ? "./" + path : path));
}

void run_gnuplot(const std::string& script, const std::string& path) {
  std::FILE* gnuplot = ::popen("gnuplot >/dev/null", "w");
  if (!gnuplot) throw Error("could not start gnuplot");
  const bool written = std::fwrite(script.data(), 1, script.size(), gnuplot) == script.size();
  if (::pclose(gnuplot) != 0 || !written) throw Error(fmt::format("gnuplot could not draw {}", path));
}

}  // namespace krilu::io
