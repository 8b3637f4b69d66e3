// SPDX-License-Identifier: Apache-2.0
// Structured grids round a closed curve in the plane, by the transformed Poisson equations. Lengths are in chords:
// shapes are scaled and moved so that they reach from x = 0 to x = 1.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "krilu/newton.hpp"

namespace krilu {

/// A point of the plane.
struct Point {
  double x = 0, y = 0;
};

/// Nodes (i, j): i goes round the curve clockwise, from the trailing edge over the lower side first; j from the wall
/// (0) outwards. Cells have positive area then.
///   O: the line i = ni - 1 is the line i = 0 again.
///   C: the first and the last `wake` cells of j = 0 are the cut behind the trailing edge: node (i, 0) is node
///      (ni - 1 - i, 0) for i <= wake.
struct Grid {
  enum class Topology { O, C };
  Topology topology = Topology::O;
  Index ni = 0, nj = 0;     // nodes, the repeated ones included
  Index wake = 0;           // cells of the cut; 0 for O
  std::vector<Point> node;  // ni nj; (i, j) at j ni + i

  Point& at(Index i, Index j) { return node[std::size_t(j) * std::size_t(ni) + std::size_t(i)]; }
  const Point& at(Index i, Index j) const { return node[std::size_t(j) * std::size_t(ni) + std::size_t(i)]; }
};

/// What is good and bad about a grid.
struct GridQuality {
  double smallest_jacobian = 0;  // of all corners of all cells: area of the parallelogram there, chords^2; folded where
                                 // it is not positive
  Index folded_cells = 0;
  double worst_angle = 0;     // between lines, anywhere inside: least of angle and 180 - angle, degrees
  double mean_deviation = 0;  // from 90 degrees, over inner nodes, degrees
  double wall_deviation = 0;  // largest |angle - 90| at the wall, trailing edge and corners apart, degrees
  double wall_deviation_anywhere = 0;
  double largest_aspect = 0;      // of cells: longer mean side over the shorter
  double wall_spacing = 0;        // asked for, chords
  double least_wall_spacing = 0;  // reached, trailing edge and corners apart
  double largest_wall_spacing = 0;
  double largest_growth = 0;  // of neighbouring spacings along a line j
};

struct GridOptions {
  std::string shape = "naca:0012";       // naca:DDDD, or a file of coordinates: docs/grids.md
  std::string trailing_edge = "closed";  // of NACA shapes: closed (the modified last coefficient), open (a short base)
  std::string topology = "O";            // O, C
  Index around = 257;                    // nodes ni, the repeated ones included
  Index outward = 129;                   // nodes nj
  double far_field = 20;                 // distance of the outer boundary from mid-chord, chords
  double wall_spacing = 1e-3;            // of the first line j, chords
  std::string control = "sorenson";      // of spacing and angle at the wall: sorenson, hilgenstock, none
  int max_updates = 100;                 // of the control terms
  double tolerance = 1e-10;  // of the equations' residual, relative to the start's, control terms held fixed; not less
                             // than what rounding of the nodes leaves is asked for
  NewtonOptions newton;
};

struct GridUpdate {  // of the control terms: a line of progress
  int update = 0;
  double wall_spacing_error = 0;  // largest, relative
  double wall_angle_error = 0;    // largest, degrees
  double residual = 0;            // of the equations, after Newton's steps
  int newton_steps = 0, inner_iterations = 0;
};

struct GridResult {
  Status status = Status::max_iterations;  // converged: equations and control met, and no cell is folded
  Grid grid;
  GridQuality quality;
  std::vector<GridUpdate> history;
  std::vector<NewtonStep> newton;  // of the last solve, control terms held fixed
  NewtonSeconds seconds;           // over all solves
  double total_seconds = 0;
  std::string device, solver, precond;  // of the linear systems
  std::vector<std::string> notes;
};

/// An elliptic grid. Transfinite interpolation is its start; Newton's method solves the equations, control terms are
/// updated between its solves. Throws krilu::Error for a shape that is none (self-crossing, open, two points, ...),
/// with file and line where it came from a file, and for sizes and distances that make no grid. `progress` is called
/// after every update, `go_on` after every step of Newton's method; where either returns false the grid ends as
/// interrupted, over ranks for all. Over ranks all call this, with the same options but for threads and the GPU's
/// number; each solves for its lines of nodes, and the grid comes back on all. Sources: Thompson, Thames, Mastin
/// (1974); Steger and Sorenson (1979), Sorenson (NASA TM 81198, 1980); Hilgenstock (1988).
GridResult elliptic_grid(const GridOptions& options, const std::function<bool(const GridUpdate&)>& progress = {},
                         std::shared_ptr<Communicator> ranks = nullptr, const std::function<bool()>& go_on = {});

/// Of any grid: what elliptic_grid reports.
GridQuality quality_of(const Grid& grid, double wall_spacing);

/// CGNS (one structured zone in the plane, boundary conditions wall, far field and the cut's connectivity), in double.
/// Written beside the target and renamed. Throws krilu::Error where krilu was built without CGNS, and where it cannot
/// be written whole.
void write_cgns(const Grid& grid, const std::string& path);
/// Plot3D, formatted, one block of two dimensions (ni, nj, then x and y). Throws krilu::Error as above.
void write_plot3d(const Grid& grid, const std::string& path);

}  // namespace krilu
