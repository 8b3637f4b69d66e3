// SPDX-License-Identifier: Apache-2.0
// krilu bench mesh-paper: what is measured of face loops, as one text for the host (mesh_paper_host.cpp) and a GPU
// (mesh_paper.cu). nvcc reads this file too: no fmt and no JSON here.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "krilu/buffer.hpp"
#include "krilu/error.hpp"
#include "krilu/face_operators.hpp"
#include "krilu/face_plan.hpp"
#include "krilu/mesh.hpp"

namespace krilu::app::mesh_paper {

/// Operators, by their place in arrays: SpMV in symmetric and in unsymmetric storage, Integration, calcLudsFcc.
constexpr int symmetric = 0, unsymmetric = 1, integration = 2, upwind = 3, operators = 4;
template <class T>
using PerOperator = std::array<T, operators>;

/// A mesh's faces with what the operators read, and what plain loops over its faces make of it. A part of a mesh is one
/// too.
struct Fields {
  Index cells = 0;
  Buffer<Index> owner, neighbour;
  Buffer<double> diagonal, x, volume;   // of cells
  Buffer<Vector3> gradient, centre;     // of cells
  Buffer<double> upper, lower, flux;    // of faces
  Buffer<Vector3> face_centre;          // of faces
  PerOperator<Buffer<double>> results;  // of cells, upwind's of faces
  Index faces() const { return static_cast<Index>(owner.size()); }
};

/// How often to measure, and when to leave off.
struct Sampling {
  int repeat = 3;
  std::function<bool()> interrupted;
};
/// What takes less than so many seconds is measured at least so often.
constexpr double short_time = 0.05;
constexpr int short_repeat = 20;

/// Seconds, sample by sample. `clock` runs what is measured once or several times and returns the seconds of one run.
template <class Clock>
std::vector<double> samples(Clock&& clock, const Sampling& how) {
  std::vector<double> seconds;
  if (how.interrupted()) return seconds;
  const double first = clock();  // warm from now on
  const int count = first < short_time ? std::max(how.repeat, short_repeat) : how.repeat;
  for (int k = 0; k < count && !how.interrupted(); ++k) seconds.push_back(clock());
  return seconds;
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of face loops with one set of options.
struct Times {
  bool done = false;
  std::string error;  // why it is not done; empty where it was interrupted
  FaceLoopReport report;
  double set_up = 0;                         // seconds: analysis, and transfer where there is one
  PerOperator<std::vector<double>> seconds;  // sample by sample
  PerOperator<double> difference{};          // largest from the plain loops' results, over their largest value
};

/// Largest difference, over the largest value.
template <class Values>
double difference(const Values& values, const Buffer<double>& expected) {
  double largest = 0, off = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double d = std::abs(values[i] - expected[i]);
    if (!(d <= off)) off = d;  // NaN comes through
  }
  return largest > 0 ? off / largest : off;
}

/// All operators through these loops. timer(loops, call) gives the clock for samples().
template <class Loops, class Timer>
void measure_operators(const Loops& loops, const Fields& in, const Sampling& how, const Timer& timer, Times& times) {
  auto x = loops.cell_field(in.x), diagonal = loops.cell_field(in.diagonal), volume = loops.cell_field(in.volume);
  auto upper = loops.face_field(in.upper), lower = loops.face_field(in.lower), flux = loops.face_field(in.flux);
  auto of_cells = loops.template cell_field<double>();
  const auto take = [&](int k, auto call) {
    times.seconds[std::size_t(k)] = samples(timer(loops, call), how);
    if (times.seconds[std::size_t(k)].empty()) return;
    times.difference[std::size_t(k)] = difference(loops.cell_values(of_cells), in.results[std::size_t(k)]);
  };
  take(symmetric, [&] { multiply_symmetric(loops, diagonal.view(), upper.view(), x.view(), of_cells.view()); });
  take(unsymmetric, [&] { multiply(loops, diagonal.view(), lower.view(), upper.view(), x.view(), of_cells.view()); });
  take(integration, [&] { integrate(loops, flux.view(), volume.view(), of_cells.view()); });

  auto gradient = loops.cell_field(in.gradient), centre = loops.cell_field(in.centre);
  auto face_centre = loops.face_field(in.face_centre);
  auto of_faces = loops.template face_field<double>();
  const auto call = [&] {
    linear_upwind(loops, flux.view(), x.view(), gradient.view(), centre.view(), face_centre.view(), of_faces.view());
  };
  times.seconds[upwind] = samples(timer(loops, call), how);
  if (!times.seconds[upwind].empty())
    times.difference[upwind] = difference(loops.face_values(of_faces), in.results[upwind]);
}

/// Sets loops up by make() and measures them. A krilu::Error becomes Times::error.
template <class Make, class Timer>
Times measured_times(const Make& make, const Fields& in, const Sampling& how, const Timer& timer) {
  Times times;
  try {
    const auto start = std::chrono::steady_clock::now();
    const auto loops = make();
    times.set_up = seconds_since(start);
    times.report = loops.report();
    measure_operators(loops, in, how, timer, times);
    times.done = !how.interrupted();
  } catch (const Error& e) {
    times.error = e.what();
  }
  return times;
}

/// GB/s, 1 GB = 1e9 bytes, as STREAM counts: triad reads two words and writes one, copy reads one and writes one. 0
/// where it could not be measured.
struct Bandwidth {
  double triad = 0, copy = 0;
};

/// Where face loops run.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  virtual bool is_gpu() const = 0;
  virtual Bandwidth bandwidth() = 0;
  virtual Times times(const Mesh& mesh, const Fields& fields, const FaceLoopOptions& options, const Sampling& how) = 0;
};

std::unique_ptr<Device> host_device(int threads);
/// Throws krilu::Error where there is no such GPU, or where this build has no CUDA.
std::unique_ptr<Device> cuda_device(int number, int threads);

}  // namespace krilu::app::mesh_paper
