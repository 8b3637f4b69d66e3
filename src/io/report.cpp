// SPDX-License-Identifier: Apache-2.0
#include "io/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "io/output_file.hpp"
#include "krilu/version.hpp"

namespace krilu::io {

nlohmann::ordered_json to_json(const Result& r, const SystemFacts& system, const Options& asked,
                               const std::vector<RankCost>& ranks) {
  nlohmann::ordered_json j;
  j["krilu"] = version;
  j["matrix"] = {{"name", system.name},
                 {"rows", system.rows},
                 {"nnz", system.nnz},
                 {"symmetric", system.symmetric},
                 {"pattern_symmetric", system.pattern_symmetric},
                 {"bytes", system.matrix_bytes}};
  j["rhs"] = system.rhs;
  j["solver"] = r.solver;
  j["precision"] = r.precision;
  j["precond"] = r.precond;
  j["triangular"] = r.triangular;
  j["ordering"] = r.ordering;
  j["scaling"] = r.scaling;
  j["device"] = r.device;
  j["threads"] = r.threads;
  j["asked"] = {{"solver", asked.solver},
                {"precision", asked.precision},
                {"basis", asked.basis},
                {"inner_iterations", asked.inner_iterations},
                {"outer_iterations", asked.outer_iterations},
                {"inner_tolerance", asked.inner_tolerance},
                {"precond", asked.precond},
                {"triangular", asked.triangular},
                {"ordering", asked.ordering},
                {"scaling", asked.scaling},
                {"device", asked.device},
                {"restart", asked.restart},
                {"rtol", asked.rtol},
                {"atol", asked.atol},
                {"shift", asked.shift},
                {"norm", asked.norm == Norm::openfoam ? "openfoam" : "true2"},
                {"max_iterations", asked.max_iterations}};
  j["status"] = to_string(r.status);
  j["iterations"] = r.iterations;
  j["outer_iterations"] = r.outer_iterations;
  j["values_lost"] = r.values_lost;
  j["relative_residual"] = r.relative_residual;
  j["rmse"] = r.rmse;
  j["initial_residual"] = r.initial_residual;
  j["seconds"] = {{"read", system.read_seconds},
                  {"analyse", r.seconds.analyse},
                  {"factor", r.seconds.factor},
                  {"solve", r.seconds.solve}};
  j["bytes"] = r.bytes;
  j["rungs"] = nlohmann::ordered_json::array();
  for (const Rung& rung : r.rungs)
    j["rungs"].push_back({{"what", rung.what},
                          {"arguments", rung.arguments},
                          {"status", to_string(rung.status)},
                          {"iterations", rung.iterations},
                          {"relative_residual", rung.relative_residual},
                          {"seconds", rung.seconds},
                          {"why_left", rung.why_left}});
  auto notes = system.notes;
  notes.insert(notes.end(), r.notes.begin(), r.notes.end());
  j["notes"] = notes;
  j["history"] = r.history;
  for (const RankCost& c : ranks)
    j["ranks"].push_back({{"device", c.device},
                          {"rows", c.rows},
                          {"nonzeros", c.nonzeros},
                          {"halo", c.halo},
                          {"neighbours", c.neighbours},
                          {"messages", c.messages},
                          {"bytes_sent", c.bytes},
                          {"seconds", c.seconds},
                          {"seconds_in_sums", c.seconds_in_sums},
                          {"seconds_in_exchanges", c.seconds_in_exchanges}});
  return j;
}

void write_json(const std::string& path, const nlohmann::ordered_json& json) {
  const std::string text = json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  OutputFile out(path);
  out.add(text);
  out.commit();
}

std::string thousands(std::int64_t n) {
  std::string text = std::to_string(n);
  for (std::ptrdiff_t at = std::ptrdiff_t(text.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    text.insert(std::size_t(at), ",");
  return text;
}

std::string megabytes(std::size_t bytes) { return fmt::format("{:.1f} MB", 1e-6 * double(bytes)); }

}  // namespace krilu::io
