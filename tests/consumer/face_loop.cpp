// SPDX-License-Identifier: Apache-2.0
// A loop over faces of one's own: dye in a vortex, carried on by upwind fluxes. The step is a template over the loops,
// and its functions are opened by KRILU_FN: compiled by nvcc, it runs on a GPU as it stands.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

#include "krilu/face_loops.hpp"

using krilu::Both, krilu::Face, krilu::Index, krilu::Vector3, krilu::View;

/// next = dye - dt / volume * what leaves a cell through its faces. Flux: m^3/s from owner to neighbour.
template <class Loops>
void advect(const Loops& loops, double dt, View<const double> flux, View<const double> volume, View<const double> dye,
            View<double> next) {
  loops.template sum_over_faces<double, double>(
      KRILU_FN(Index cell) { return dye[cell]; },  // what a face needs of its cells
      KRILU_FN(Face f, double owner, double neighbour) {
        const double carried = flux[f.id] * (flux[f.id] >= 0 ? owner : neighbour);
        return Both<double>{carried, -carried};  // what it adds to each
      },
      KRILU_FN(Index cell, double own, double sum) { next[cell] = own - dt / volume[cell] * sum; });
}

int main() {
  const krilu::Mesh mesh = krilu::generate_mesh("mesh:tetrahedra:12x12x12:random");
  const krilu::FaceLoops loops(mesh);

  // The caller's values stand by the mesh's cells and faces; the walls of the unit cube let nothing through.
  std::vector<double> flux, dye;
  for (Index f = 0; f < mesh.faces(); ++f) {
    const Vector3 at = std::numbers::pi * mesh.face_centre[std::size_t(f)];
    const Vector3 velocity{std::sin(at.x) * std::cos(at.y), -std::cos(at.x) * std::sin(at.y), 0};
    flux.push_back(dot(velocity, mesh.area[std::size_t(f)]));
  }
  for (const Vector3& at : mesh.centre) dye.push_back(at.x < 0.5 ? 1 : 0);
  const auto mass = [&](auto part) {
    double sum = 0;
    for (std::size_t c = 0; c < dye.size(); ++c)
      if (part(mesh.centre[c])) sum += mesh.volume[c] * dye[c];
    return sum;
  };
  const auto everywhere = [](const Vector3&) { return true; };
  const auto right = [](const Vector3& at) { return at.x >= 0.5; };
  const double before = mass(everywhere);

  auto flux_there = loops.face_field(flux);
  auto volume = loops.cell_field(mesh.volume), now = loops.cell_field(dye);
  auto next = loops.cell_field<double>();
  const double dt = 5e-4;  // s
  for (int step = 0; step < 1000; ++step) {
    advect(loops, dt, flux_there.view(), volume.view(), now.view(), next.view());
    std::swap(now, next);
  }
  dye = loops.cell_values(now);

  const double after = mass(everywhere), across = mass(right) / after;
  std::printf("%d cells, strategy %s: mass %.12f before, %.12f after; %.1f %% went across\n", int(mesh.cells),
              loops.report().strategy.c_str(), before, after, 100 * across);
  const bool conserved = std::abs(after - before) <= 1e-12 * before;
  return conserved && across > 0.1 && across < 0.6 ? 0 : 1;
}
