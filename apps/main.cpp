// SPDX-License-Identifier: Apache-2.0
// The command krilu. Exit status: 0 converged, 1 internal error, 2 bad usage or input, 3 not converged or interrupted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <system_error>

#include "base/names.hpp"
#include "commands.hpp"
#include "krilu/error.hpp"
#include "krilu/version.hpp"
#include "terminal.hpp"

namespace {

using krilu::app::Run;

/// Help texts within 80 columns.
class NarrowFormatter : public CLI::Formatter {
 public:
  NarrowFormatter() { column_width(indent); }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = krilu::app::wrapped(CLI::Formatter::make_option_desc(option), indent);
    const std::string continued = "\n" + std::string(indent, ' ');  // the base class indents by itself
    for (std::size_t at = 0; (at = text.find(continued, at)) != std::string::npos; ++at)
      text.replace(at, continued.size(), "\n");
    return text;
  }

 private:
  static constexpr std::size_t indent = 28;
};

bool is_whole(const CLI::Option& option) { return option.get_type_name().find("INT") != std::string::npos; }
std::string no_number(const std::string& name, bool whole, const std::string& value) {
  return fmt::format("{} takes a {}number, not '{}'", name, whole ? "whole " : "", value);
}

/// What CLI11 says of a value that is no number, "Could not convert: --max-iters = 1e3", as a sentence; else its own
/// text.
std::string sentence(const CLI::App& command, const CLI::ParseError& error) {
  const std::string text = error.what(), begin = "Could not convert: ";
  const std::size_t equals = text.find(" = ");
  if (!text.starts_with(begin) || equals == std::string::npos) return text;
  const std::string name = text.substr(begin.size(), equals - begin.size());
  const CLI::Option* const option = command.get_option_no_throw(name);
  const bool whole = option && is_whole(*option);
  const std::string value = text.substr(equals + 3);
  const std::string digits = value.substr(value.starts_with('-'));
  if (whole && !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos)
    return fmt::format("{} cannot be {}: the number is too large", name, value);
  return no_number(name, whole, value);
}

/// Of nothing, as an unset variable of a shell leaves it, CLI11 makes 0.
void require_numbers(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const bool whole = is_whole(*option);
    if (!whole && option->get_type_name().find("FLOAT") == std::string::npos) continue;
    const std::vector<std::string>& given = option->results();
    if (std::find(given.begin(), given.end(), "") != given.end())
      throw CLI::ConversionError(no_number(option->get_name(), whole, ""));
  }
}

/// An unknown option or subcommand, with the nearest one that exists.
int explain_usage(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> known;
  std::vector<std::string> words;
  const CLI::App* at = &app;
  for (const CLI::App* sub : app.get_subcommands()) at = sub;
  for (const CLI::Option* option : at->get_options()) known.push_back(option->get_name());
  if (at == &app)
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
      known.push_back(sub->get_name());
  for (const std::string& word : at->remaining()) words.push_back(word.substr(0, word.find('=')));
  if (at != &app)
    for (const std::string& word : app.remaining()) words.push_back(word.substr(0, word.find('=')));
  const std::string name = at == &app ? "krilu" : "krilu " + at->get_name();
  for (const std::string& word : words) {
    if (word.empty() || (word[0] != '-' && at != &app)) continue;
    const std::string near = krilu::nearest_name(word, known);
    fmt::print(stderr, "krilu: unknown {} '{}'{}; see {} --help\n", word[0] == '-' ? "option" : "command", word,
               near.empty() ? "" : fmt::format(", did you mean '{}'?", near), name);
    return 2;
  }
  fmt::print(stderr, "krilu: {}; see {} --help\n", sentence(*at, error), name);
  return 2;
}

/// Exit status of a command whose table had nowhere to go; why: errno, where it is known.
int no_output(int why) {
  fmt::print(stderr, "krilu: could not write to standard output{}{}\n", why ? ": " : "", why ? std::strerror(why) : "");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "krilu solves the large sparse linear and nonlinear systems of CFD.\n\n"
      "  krilu solve A.mtx                            solve, and show how it converged\n"
      "  krilu info A.mtx                             what kind of matrix it is\n"
      "  krilu compare A.mtx --precond none,dilu      residual curves side by side\n"
      "  krilu grid --shape naca:0012 --plot g.png    an elliptic grid round a curve\n"
      "  krilu bench dilu-paper                       a paper's measurements, repeated\n",
      "krilu");
  app.formatter(std::make_shared<NarrowFormatter>());
  app.set_version_flag("--version", std::string("krilu ") + krilu::version);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });
  std::map<const CLI::App*, Run> runs;
  const auto add = [&](Run (*adder)(CLI::App&)) {
    Run run = adder(app);
    runs[app.get_subcommands([](const CLI::App*) { return true; }).back()] = std::move(run);
  };
  add(krilu::app::add_solve);
  add(krilu::app::add_info);
  add(krilu::app::add_compare);
  add(krilu::app::add_grid);
  add(krilu::app::add_bench);

  try {
    app.parse(argc, argv);
    require_numbers(*app.get_subcommands().front());
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return explain_usage(app, error);
  }
  krilu::app::install_interrupt_handler();
  try {
    const int status = runs.at(app.get_subcommands().front())();
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) return no_output(errno);
    return status;
  } catch (const krilu::Error& error) {
    fmt::print(stderr, "krilu: {}\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "krilu: the machine's memory does not hold this system; krilu info says how large it is\n");
    return 2;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout)) return no_output(error.code().value());  // by fmt
    fmt::print(stderr, "krilu: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "krilu: internal error: {}\nPlease report it with the command that you gave.\n", error.what());
    return 1;
  }
}
