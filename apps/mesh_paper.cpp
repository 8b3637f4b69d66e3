// SPDX-License-Identifier: Apache-2.0
// krilu bench mesh-paper: measures what section 4 of the SW26010 paper (2022) measured, operators on unstructured
// meshes of growing size against the plain loop over faces on one core, with every strategy of krilu's face loops.
#include "mesh_paper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/names.hpp"
#include "base/random.hpp"
#include "exec/host.hpp"
#include "krilu/error.hpp"
#include "krilu/version.hpp"
#include "solver/engine.hpp"
#include "terminal.hpp"

namespace krilu::app {

namespace mesh_paper {

const PerOperator<Operator>& operator_table() {
  // Words: what the heads in krilu/face_operators.hpp say.
  static const PerOperator<Operator> all{{{"spmv", "SpMV", "Figure 12", 3, 1, 10},
                                          {"spmv_unsymmetric", "SpMV, unsymmetric", "", 3, 2, not_known},
                                          {"integration", "Integration", "Figure 13", 2, 1, 10.22},
                                          {"linear_upwind", "calcLudsFcc", "Figure 14", 7, 5, 6.82}}};
  return all;
}

std::vector<Variant> strategies(bool gpu) {
  std::vector<Variant> all;
  for (const char* name : {"serial", "diagonal", "tiles", "slices", "gather", "colours", "atomics", "auto"}) {
    if (gpu && std::string(name) == "serial") continue;  // one lane of a GPU is no yardstick
    FaceLoopOptions options;
    options.strategy = name;
    all.push_back({name, name, options});
  }
  return all;
}

std::vector<Ablation> ablations(bool gpu) {
  FaceLoopOptions diagonal;
  diagonal.strategy = "diagonal";
  FaceLoopOptions all_orders = diagonal, fixed = diagonal, in_place = diagonal;
  all_orders.orders = 100;
  fixed.block_cells = gpu ? 128 : 256;
  in_place.renumber = "none";
  return {{{"no_choice", "without the choice of diagonals", all_orders}, 2.64},
          {{"fixed_blocks", "with fixed blocks", fixed}, 1.8},
          {{"in_place", "in the mesh's own numbering", in_place}, not_known}};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    struct Size {
      const char *name, *box, *cubes;  // cubes of six tetrahedra each
    };
    constexpr Size sizes[] = {{"10k", "20x20x25", "12x12x12"},     {"30k", "25x30x40", "17x17x17"},
                              {"100k", "50x50x40", "25x25x27"},    {"300k", "75x80x50", "37x37x37"},
                              {"1M", "100x100x100", "55x55x55"},   {"3M", "150x160x125", "79x79x80"},
                              {"8M", "200x200x200", "110x110x110"}};
    std::vector<Case> out;
    for (const char* shape : {"box", "tetrahedra"})
      for (const char* numbering : {"natural", "random"})
        for (const Size& s : sizes) {
          const std::string size = s.name;
          out.push_back({fmt::format("{}-{}-{}", shape, size, numbering), shape, size, numbering,
                         fmt::format("mesh:{}:{}:{}", shape, std::string(shape) == "box" ? s.box : s.cubes, numbering),
                         size == "3M" || size == "8M"});
        }
    return out;
  }();
  return all;
}

double seconds(const std::vector<double>& samples) { return median(samples); }

double speed_up(const Row& row, const Times& times, int k) {
  return seconds(row.plain[std::size_t(k)]) / seconds(times.seconds[std::size_t(k)]);
}

double fraction_of_bound(const Row& row, const Times& times, int k, const Bandwidth& bandwidth) {
  if (!(bandwidth.triad > 0)) return not_known;
  const double bytes = operator_table()[std::size_t(k)].bytes(row.cells, row.faces);
  return bytes / (1e9 * bandwidth.triad) / seconds(times.seconds[std::size_t(k)]);
}

double set_up_in_products(const Times& times) { return times.set_up / seconds(times.seconds[symmetric]); }

namespace {

using Json = nlohmann::ordered_json;

/// Mean, best and least of the values that are known.
Mean mean_of(const std::vector<double>& values) {
  Mean m;
  double sum = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    ++m.rows;
    sum += v;
    m.best = std::fmax(m.best, v);
    m.least = std::fmin(m.least, v);
  }
  if (m.rows > 0) m.mean = sum / m.rows;
  return m;
}

bool is_numbered(const Row& row, const std::string& numbering) {
  return numbering.empty() || row.mesh->numbering == numbering;
}

std::vector<const Case*> chosen(const std::vector<std::string>& only, bool gpu) {
  std::vector<std::string> names{"all", "box", "tetrahedra"};
  for (const Case& c : cases())
    if (c.numbering == "natural") names.push_back(c.shape + "-" + c.size);
  for (const std::string& name : only) {
    std::string plain = name;
    for (const char* ending : {"-natural", "-random"})
      if (name.ends_with(ending)) plain = name.substr(0, name.size() - std::string(ending).size());
    if (plain == name || plain == "all") plain = name;
    require_name("mesh of mesh-paper (also with -natural or -random behind it)", plain, names);
  }
  std::vector<const Case*> out;
  for (const Case& c : cases()) {
    const std::string numbered = "-" + c.numbering;
    const auto is_it = [&](const std::string& name) {
      for (const std::string& n : {c.shape, c.shape + "-" + c.size})
        if (name == n || name == n + numbered) return true;
      return name == "all";
    };
    if (only.empty() ? gpu || !c.large : std::any_of(only.begin(), only.end(), is_it)) out.push_back(&c);
  }
  return out;
}

std::unique_ptr<Device> make_device(const BenchOptions& o) {
  if (o.device == "emulated")
    throw Error("mesh-paper: face loops run on the host or on a GPU: take --device host or cuda");
  if (o.device.starts_with("cuda"))
    return cuda_device(o.device == "cuda" ? 0 : std::stoi(o.device.substr(5)), o.threads);
  if (o.device == "auto" && solver::cuda_devices() > 0) return cuda_device(0, o.threads);
  return host_device(o.threads);
}

/// Values that depend on cell and face alone; the flux is that of a fluid that turns about an axis.
Fields fields_of(const Mesh& mesh, int threads) {
  const exec::Host host(threads);
  Fields f;
  f.cells = mesh.cells;
  f.owner = mesh.owner;
  f.neighbour = mesh.neighbour;
  f.volume = mesh.volume;
  f.centre = mesh.centre;
  f.face_centre = mesh.face_centre;
  const auto n = std::size_t(mesh.cells), m = std::size_t(mesh.faces());
  for (auto member : {&Fields::diagonal, &Fields::x}) (f.*member).resize(n);
  f.gradient.resize(n);
  for (auto member : {&Fields::upper, &Fields::lower, &Fields::flux}) (f.*member).resize(m);
  const auto random = [](std::size_t i, int k) { return unit_random(8 * i + std::uint64_t(k)); };
  host.for_each_range(n, [&](Index begin, Index end) {
    for (auto i = std::size_t(begin); i < std::size_t(end); ++i) {
      f.diagonal[i] = 4 + random(i, 0);
      f.x[i] = random(i, 1);
      f.gradient[i] = {random(i, 2), random(i, 3), random(i, 4)};
    }
  });
  host.for_each_range(m, [&](Index begin, Index end) {
    for (auto i = std::size_t(begin); i < std::size_t(end); ++i) {
      f.upper[i] = -random(i, 5);
      f.lower[i] = -random(i, 6);
      const Vector3& at = mesh.face_centre[i];
      f.flux[i] = dot(mesh.area[i], Vector3{0.5 - at.y, at.x - 0.5, 0.25});
    }
  });
  return f;
}

void measure(Row& row, Device& device, int threads, const Sampling& how) {
  const std::string& name = row.mesh->name;
  Mesh mesh;
  Fields fields;
  {
    const StepLine step("generating " + row.mesh->generator, true);
    mesh = generate_mesh(row.mesh->generator);
    fields = fields_of(mesh, threads);
  }
  row.cells = mesh.cells;
  row.faces = mesh.faces();
  {
    const StepLine step(name + ": plain loops on one core", true);
    row.plain = plain_times(fields, how);
  }
  if (how.interrupted()) return;
  {
    const StepLine step(name + ": plain loops on all cores", true);
    row.in_parts = plain_times_in_parts(mesh, fields, exec::Host(threads).threads(), how);
  }
  const auto each = [&](const auto& variants, std::vector<Times>& to) {
    for (const auto& v : variants) {
      if (how.interrupted()) return;
      const StepLine step(fmt::format("{}: {}", name, v.label), true);
      to.push_back(device.times(mesh, fields, v.options, how));
    }
  };
  each(strategies(device.is_gpu()), row.strategies);
  each(ablations(device.is_gpu()), row.ablations);
}

/// All of it once on a small mesh: what the device refuses is refused before any work, and no measurement pays for what
/// a process does once.
void warm_up(Device& device, int threads) {
  const StepLine step("warming up", true);
  const Mesh mesh = generate_mesh("mesh:box:8x8x8");
  Fields fields = fields_of(mesh, threads);
  const Sampling once{1, [] { return false; }};
  plain_times(fields, once);
  const Times times = device.times(mesh, fields, {}, once);
  if (!times.error.empty()) throw Error(times.error);
}

Json samples_json(const std::vector<double>& samples) {
  Json j{{"seconds", seconds(samples)}, {"samples", samples.size()}};
  if (!samples.empty()) {
    j["least"] = *std::min_element(samples.begin(), samples.end());
    j["most"] = *std::max_element(samples.begin(), samples.end());
  }
  return j;
}

Json times_json(const Row& row, const Times& t, const Bandwidth& bandwidth) {
  if (!t.error.empty()) return {{"error", t.error}};
  const FaceLoopReport& r = t.report;
  Json j{{"strategy", r.strategy},
         {"renumber", r.renumber},
         {"tiles", r.tiles},
         {"most_cells", r.most_cells},
         {"cut_fraction", r.cut_fraction},
         {"remainder_fraction", r.remainder_fraction},
         {"orders", r.orders},
         {"plan_bytes", r.bytes},
         {"analysis_seconds", r.seconds},
         {"set_up_seconds", t.set_up},
         {"set_up_in_products", set_up_in_products(t)}};
  for (const auto& c : r.measured) j["measured"].push_back({{"strategy", c.strategy}, {"ms", c.milliseconds}});
  for (const auto& c : r.finalists) j["finalists"].push_back({{"strategy", c.strategy}, {"ms", c.milliseconds}});
  for (int k = 0; k < operators; ++k) {
    const Operator& op = operator_table()[std::size_t(k)];
    const auto& samples = t.seconds[std::size_t(k)];
    if (samples.empty()) continue;
    Json s = samples_json(samples);
    s["speed_up"] = speed_up(row, t, k);
    s["speed_up_over_all_cores"] = seconds(row.in_parts.seconds[std::size_t(k)]) / seconds(samples);
    s["fraction_of_bound"] = fraction_of_bound(row, t, k, bandwidth);
    s["difference"] = t.difference[std::size_t(k)];
    j["operators"][op.key] = s;
  }
  return j;
}

Json row_json(const Row& row, const Machine& machine) {
  const Case& c = *row.mesh;
  Json j{{"mesh", c.name},           {"generator", c.generator}, {"shape", c.shape},
         {"numbering", c.numbering}, {"cells", row.cells},       {"faces", row.faces}};
  if (!row.error.empty()) j["error"] = row.error;
  Json plain, parts;
  for (int k = 0; k < operators; ++k) {
    const Operator& op = operator_table()[std::size_t(k)];
    j["bytes"][op.key] = op.bytes(row.cells, row.faces);
    plain[op.key] = samples_json(row.plain[std::size_t(k)]);
    parts[op.key] = samples_json(row.in_parts.seconds[std::size_t(k)]);
    parts[op.key]["speed_up"] = seconds(row.plain[std::size_t(k)]) / seconds(row.in_parts.seconds[std::size_t(k)]);
  }
  j["plain"] = plain;
  j["plain_on_all_cores"] = {
      {"parts", row.in_parts.parts}, {"cut_fraction", row.in_parts.cut_fraction}, {"operators", parts}};
  const auto named = strategies(machine.gpu);
  j["strategies"] = Json::object();
  for (std::size_t s = 0; s < row.strategies.size(); ++s)
    j["strategies"][named[s].key] = times_json(row, row.strategies[s], machine.bandwidth);
  const auto others = ablations(machine.gpu);
  j["ablations"] = Json::object();
  for (std::size_t s = 0; s < row.ablations.size(); ++s)
    j["ablations"][others[s].key] = times_json(row, row.ablations[s], machine.bandwidth);
  return j;
}

Json mean_json(const Mean& m) { return {{"meshes", m.rows}, {"mean", m.mean}, {"best", m.best}, {"least", m.least}}; }

Json summary_json(const std::vector<Row>& rows, bool gpu) {
  Json j;
  const auto named = strategies(gpu);
  for (int k = 0; k < operators; ++k) {
    const Operator& op = operator_table()[std::size_t(k)];
    for (const char* numbering : {"natural", "random"}) {
      Json& to = j[op.key][numbering];
      for (std::size_t s = 0; s < named.size(); ++s)
        to[named[s].key] = mean_json(mean_speed_up(rows, k, int(s), numbering));
      to["fastest"] = mean_json(mean_speed_up(rows, k, -1, numbering));
    }
    j[op.key]["paper"] = {{"mean", op.paper_mean}};
    if (k == symmetric) j[op.key]["paper"]["best"] = paper_best_spmv;
  }
  const auto others = ablations(gpu);
  for (std::size_t s = 0; s < others.size(); ++s) {
    for (const char* numbering : {"natural", "random"})
      j["figure_15"][others[s].key][numbering] = mean_json(mean_of_ablation(rows, int(s), numbering));
    j["figure_15"][others[s].key]["paper"] = others[s].paper;
  }
  return j;
}

}  // namespace

Mean mean_speed_up(const std::vector<Row>& rows, int k, int place, const std::string& numbering) {
  std::vector<double> values;
  for (const Row& row : rows) {
    if (!is_numbered(row, numbering)) continue;
    double found = not_known;
    for (std::size_t s = 0; s < row.strategies.size(); ++s) {
      const Times& t = row.strategies[s];
      if (place >= 0 ? int(s) == place : t.report.strategy != "serial" && s + 1 < row.strategies.size())
        found = std::fmax(found, speed_up(row, t, k));
    }
    values.push_back(found);
  }
  return mean_of(values);
}

Mean mean_of_ablation(const std::vector<Row>& rows, int place, const std::string& numbering) {
  std::vector<double> values;
  for (const Row& row : rows)
    if (is_numbered(row, numbering) && std::size_t(place) < row.ablations.size())
      values.push_back(speed_up(row, row.ablations[std::size_t(place)], symmetric));
  return mean_of(values);
}

}  // namespace mesh_paper

BenchReport run_mesh_paper(const BenchOptions& o, Monitor& monitor) {
  using namespace mesh_paper;
  chosen(o.only, false);  // refuses unknown names before a GPU is looked for
  const std::unique_ptr<Device> device = make_device(o);
  const std::vector<const Case*> wanted = chosen(o.only, device->is_gpu());
  const Sampling how{o.repeat, [&monitor] { return monitor.interrupted(); }};

  BenchReport report;
  warm_up(*device, o.threads);
  Machine machine{device->name(), processor(), device->is_gpu(), exec::Host(o.threads).threads(), {}, {}};
  {
    const StepLine step("memory bandwidth", true);
    machine.host_bandwidth = host_bandwidth(machine.threads);
    machine.bandwidth = machine.gpu ? device->bandwidth() : machine.host_bandwidth;
  }
  std::vector<Row> rows;
  for (const Case* mesh : wanted) {
    if (monitor.interrupted()) break;
    Row& row = rows.emplace_back();
    row.mesh = mesh;
    try {
      measure(row, *device, o.threads, how);
    } catch (const Error& e) {
      row.error = e.what();
      report.trouble += fmt::format("{}{}: {}", report.trouble.empty() ? "" : "\nkrilu: ", mesh->name, e.what());
    }
  }

  report.markdown = tables(rows, machine, o);
  report.pictures = {{"-fig11.png", figure_11(rows, machine)},
                     {"-fig12.png", figure_of_speed_ups(rows, machine, symmetric)},
                     {"-fig13.png", figure_of_speed_ups(rows, machine, integration)},
                     {"-fig14.png", figure_of_speed_ups(rows, machine, upwind)},
                     {"-fig15.png", figure_15(rows, machine)}};
  const auto rates = [](const Bandwidth& b) {
    return nlohmann::ordered_json{{"triad_gb_s", b.triad > 0 ? b.triad : not_known},
                                  {"copy_gb_s", b.copy > 0 ? b.copy : not_known}};
  };
  report.json = {{"krilu", version},
                 {"paper", "Unstructured-mesh computing on the SW26010, N-order diagonal colouring, 2022"},
                 {"command", o.command},
                 {"machine",
                  {{"device", machine.device},
                   {"cpu", machine.cpu},
                   {"threads", machine.threads},
                   {"bandwidth", rates(machine.bandwidth)},
                   {"host_bandwidth", rates(machine.host_bandwidth)}}},
                 {"rules", {{"repeat", o.repeat}, {"short_seconds", short_time}, {"repeat_of_short", short_repeat}}},
                 {"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) report.json["rows"].push_back(row_json(row, machine));
  report.json["summary"] = summary_json(rows, machine.gpu);
  return report;
}

}  // namespace krilu::app
