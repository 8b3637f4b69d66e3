// SPDX-License-Identifier: Apache-2.0
// krilu bench mesh-paper on the host: krilu's loops there, and the plain loops over faces that everything is compared
// with, as OpenFOAM's lduMatrix::Amul has them: on one core, and on all cores where each has a part of the mesh for
// itself, in the manner of a domain decomposition that never exchanges anything.
#include <algorithm>
#include <new>

#include "exec/host.hpp"
#include "krilu/face_loops.hpp"
#include "mesh/cell_blocks.hpp"
#include "mesh_paper.hpp"
#ifdef _OPENMP
#include "../bench/stream.hpp"
#endif

namespace krilu::app::mesh_paper {

namespace {

struct HostTimer {
  template <class Loops, class Call>
  auto operator()(const Loops&, const Call& call) const {
    return [call] {
      const auto start = std::chrono::steady_clock::now();
      call();
      return seconds_since(start);
    };
  }
};

class OnHost final : public Device {
 public:
  explicit OnHost(int threads) : threads_(threads) {}
  std::string name() const override { return "host"; }
  bool is_gpu() const override { return false; }
  Bandwidth bandwidth() override { return host_bandwidth(threads_); }
  Times times(const Mesh& mesh, const Fields& fields, const FaceLoopOptions& options, const Sampling& how) override {
    FaceLoopOptions asked = options;
    asked.threads = threads_;
    return measured_times([&] { return FaceLoops(mesh, asked); }, fields, how, HostTimer());
  }

 private:
  int threads_;
};

void plain_multiply_symmetric(Fields& f) {
  const Index cells = f.cells, faces = f.faces();
  const Index *owner = f.owner.data(), *neighbour = f.neighbour.data();
  const double *diagonal = f.diagonal.data(), *upper = f.upper.data(), *x = f.x.data();
  double* __restrict y = f.results[symmetric].data();
  for (Index c = 0; c < cells; ++c) y[c] = diagonal[c] * x[c];
  for (Index k = 0; k < faces; ++k) {
    y[owner[k]] += upper[k] * x[neighbour[k]];
    y[neighbour[k]] += upper[k] * x[owner[k]];
  }
}

void plain_multiply(Fields& f) {
  const Index cells = f.cells, faces = f.faces();
  const Index *owner = f.owner.data(), *neighbour = f.neighbour.data();
  const double *diagonal = f.diagonal.data(), *upper = f.upper.data(), *lower = f.lower.data(), *x = f.x.data();
  double* __restrict y = f.results[unsymmetric].data();
  for (Index c = 0; c < cells; ++c) y[c] = diagonal[c] * x[c];
  for (Index k = 0; k < faces; ++k) {
    y[owner[k]] += upper[k] * x[neighbour[k]];
    y[neighbour[k]] += lower[k] * x[owner[k]];
  }
}

void plain_integrate(Fields& f) {
  const Index cells = f.cells, faces = f.faces();
  const Index *owner = f.owner.data(), *neighbour = f.neighbour.data();
  const double *flux = f.flux.data(), *volume = f.volume.data();
  double* __restrict out = f.results[integration].data();
  for (Index c = 0; c < cells; ++c) out[c] = 0;
  for (Index k = 0; k < faces; ++k) {
    out[owner[k]] += flux[k];
    out[neighbour[k]] -= flux[k];
  }
  for (Index c = 0; c < cells; ++c) out[c] /= volume[c];
}

void plain_linear_upwind(Fields& f) {
  const Index faces = f.faces();
  const Index *owner = f.owner.data(), *neighbour = f.neighbour.data();
  const double *flux = f.flux.data(), *x = f.x.data();
  const Vector3 *gradient = f.gradient.data(), *centre = f.centre.data(), *face_centre = f.face_centre.data();
  double* __restrict out = f.results[upwind].data();
  for (Index k = 0; k < faces; ++k) {
    const Index c = flux[k] >= 0 ? owner[k] : neighbour[k];
    out[k] = x[c] + dot(gradient[c], face_centre[k] - centre[c]);
  }
}

template <class T>
void pick(Buffer<T>& to, const Buffer<T>& from, const std::vector<Index>& which) {
  to.resize(which.size());
  for (std::size_t i = 0; i < which.size(); ++i) to[i] = from[std::size_t(which[i])];
}

void make_room(Fields& f) {
  for (int k = 0; k < operators; ++k) f.results[std::size_t(k)].resize(k == upwind ? f.owner.size() : f.x.size());
}

}  // namespace

std::unique_ptr<Device> host_device(int threads) { return std::make_unique<OnHost>(threads); }

Bandwidth host_bandwidth([[maybe_unused]] int threads) {
#ifdef _OPENMP
  try {
    const bench::Bandwidth found = bench::measure_bandwidth(threads);
    if (found.checked) return {found.triad_median, found.copy_median};
  } catch (const std::bad_alloc&) {
  }
#endif
  return {};
}

void plain_loop(int k, Fields& f) {
  switch (k) {
    case symmetric: return plain_multiply_symmetric(f);
    case unsymmetric: return plain_multiply(f);
    case integration: return plain_integrate(f);
    default: return plain_linear_upwind(f);
  }
}

PerOperator<std::vector<double>> plain_times(Fields& f, const Sampling& how) {
  make_room(f);
  PerOperator<std::vector<double>> seconds;
  for (int k = 0; k < operators; ++k) {
    const auto call = [&] { plain_loop(k, f); };
    seconds[std::size_t(k)] = samples(HostTimer()(0, call), how);
  }
  return seconds;
}

PartTimes plain_times_in_parts(const Mesh& mesh, const Fields& whole, int threads, const Sampling& how) {
  const exec::Host host(threads);
  const Index share = std::max(Index(1), (mesh.cells + threads - 1) / threads);
  const Buffer<Index> part_of =
      krilu::mesh::block_of_cells(host, krilu::mesh::cell_blocks(host, mesh, share, krilu::mesh::Renumber::bisection));
  std::vector<Index> local(std::size_t(mesh.cells));
  const auto count = static_cast<std::size_t>(threads);
  std::vector<std::vector<Index>> cells(count), faces(count);
  for (Index c = 0; c < mesh.cells; ++c) {
    std::vector<Index>& own = cells[std::size_t(part_of[std::size_t(c)])];
    local[std::size_t(c)] = Index(own.size());
    own.push_back(c);
  }
  std::size_t kept = 0;
  for (Index f = 0; f < mesh.faces(); ++f) {
    const Index a = part_of[std::size_t(mesh.owner[std::size_t(f)])],
                b = part_of[std::size_t(mesh.neighbour[std::size_t(f)])];
    if (a != b) continue;
    faces[std::size_t(a)].push_back(f);
    ++kept;
  }
  PartTimes times;
  times.parts = threads;
  times.cut_fraction = mesh.faces() ? 1 - double(kept) / double(mesh.faces()) : 0;

  std::vector<Fields> parts(count);
  const auto each_part = [&](auto work) {
    host.parallel(threads, [&](int thread, int team) {
      for (int p = thread; p < threads; p += team) work(std::size_t(p));
    });
  };
  each_part([&](std::size_t p) {  // by the thread that will use it
    Fields& f = parts[p];
    f.cells = Index(cells[p].size());
    pick(f.owner, whole.owner, faces[p]);
    pick(f.neighbour, whole.neighbour, faces[p]);
    for (Buffer<Index>* side : {&f.owner, &f.neighbour})
      for (Index& c : *side) c = local[std::size_t(c)];
    for (auto member : {&Fields::diagonal, &Fields::x, &Fields::volume}) pick(f.*member, whole.*member, cells[p]);
    for (auto member : {&Fields::gradient, &Fields::centre}) pick(f.*member, whole.*member, cells[p]);
    for (auto member : {&Fields::upper, &Fields::lower, &Fields::flux}) pick(f.*member, whole.*member, faces[p]);
    pick(f.face_centre, whole.face_centre, faces[p]);
    make_room(f);
    std::vector<Index>().swap(cells[p]);
    std::vector<Index>().swap(faces[p]);
  });
  for (int k = 0; k < operators; ++k) {
    const auto call = [&] { each_part([&](std::size_t p) { plain_loop(k, parts[p]); }); };
    times.seconds[std::size_t(k)] = samples(HostTimer()(0, call), how);
  }
  return times;
}

}  // namespace krilu::app::mesh_paper
