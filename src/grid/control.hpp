// SPDX-License-Identifier: Apache-2.0
// Control terms phi and psi of the Poisson equations: where lines of a grid shall stand.
//
// Each is a base that is fixed and a correction at the wall that is found.
//   base: along every line psi = -s'' / s' of the start's distribution s, taken in the mapped plane, so that the
//     one-dimensional equation holds for it exactly and, the equations being the same there, no curvature enters
//     [Thomas and Middlecoff 1980]; phi = -s'' / s' of the wall's nodes and of the far field's, each reaching as far as
//     its own spacing needs to change: lines drawn together at the wall come apart again.
//   correction: p(i) and q(i) at the wall, spacing and angle of the first line. q fades by a factor a line. p fades
//     over a distance in the mapped plane and not over lines: thin cells are far too stiff to be turned one by one, and
//     a line that is to leave the wall at 90 degrees must bend where cells are about square.
// p and q are found between solves:
//   sorenson: from the equations at the wall, which must hold where spacing and angle are those wanted [Steger and
//     Sorenson 1979; Sorenson, NASA TM 81198, 1980]. He takes r_ee by a one-sided formula at the wall itself; here it
//     is the first line that is put where it is wanted, with central differences as the equations have them: his
//     formula's own error left spacings up to 5 % off where cells grow by 1.3.
//   hilgenstock: in proportion to the deviations of spacing and angle [Hilgenstock 1988]
// By how much a line answers to p and q is known from the linearised equations: a term q e^(-b j) multiplies the first
// spacing by about e^(q / b); a term p that fades over the distance D leans lines by about p D / h, h being the
// distance of lines, and less between corners nearby. The under-relaxation is the one which that makes best, and both
// rules then take about as many updates: 10 to 20, those of coarser grids included.
//
// Changes that turn back and forth are halved. Where the wall itself opens inwards spacing and angle cannot be had
// both: p and q are interpolated there. Edges and corners that stand out need nothing special in the mapped plane.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "grid/transfinite.hpp"

namespace krilu::grid {

class Control {
 public:
  /// method: sorenson, hilgenstock, none (phi = psi = 0). `fading` is q's b.
  Control(const Start& start, const std::string& method, double fading);

  /// At inner nodes, in the order of PoissonRows.
  const std::vector<double>& phi() const { return phi_; }
  const std::vector<double>& psi() const { return psi_; }

  /// Of spacing (relative) and angle (degrees) at the wall's nodes that count, the largest.
  struct Deviation {
    double spacing = 0, angle = 0;
  };
  Deviation deviation(const Grid& grid) const;

  /// p and q from a grid that solves the equations, nearly; `plane` is the same in the mapped plane.
  void update(const Grid& grid, const Grid& plane);

  /// Makes the next updates half as large.
  void calm();

  /// p and q from those of a grid with half as many cells either way, whose b was twice this one's.
  void take(const Control& coarser);

 private:
  /// Less than what is due where changes turn back and forth: beside corners lines answer more than was thought.
  struct Relaxation {
    double factor = 1, before = 0;
    double of(double change);
  };
  /// Of the nodes between the two ends of the rows' line.
  struct Column {
    Index i;              // of the grid
    bool controlled;      // else p and q are interpolated
    double spacing;       // wanted
    double along, first;  // in the mapped plane: distance of lines at the wall; and of the first line
    double reach;         // over which p fades
    double stiffness;     // p / along that leans a line by 45 degrees, about
    double phi, psi;      // base at the wall
    double p = 0, q = 0;
    Relaxation for_p{}, for_q{};
  };

  /// Changes of p and q by either rule.
  std::vector<std::pair<double, double>> by_equations(const Grid& grid, const Grid& plane) const;
  std::vector<std::pair<double, double>> by_deviations(const Grid& grid) const;
  void fill();
  void mirror();
  void assemble();

  std::string method_;
  ConformalMap map_;
  double fading_;
  bool periodic_, mirrored_;
  Index lines_;
  std::vector<Column> column_;
  std::vector<double> base_phi_, base_psi_, fade_p_;
  std::vector<double> phi_, psi_;
  std::vector<char> counted_;
};

}  // namespace krilu::grid
