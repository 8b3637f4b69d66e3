// SPDX-License-Identifier: Apache-2.0
#include "krilu/mesh.hpp"

namespace krilu {

Mesh read_mesh(const std::string& path_or_generator) {
  if (is_mesh_generator(path_or_generator)) return generate_mesh(path_or_generator);
  return is_su2_mesh(path_or_generator) ? read_su2_mesh(path_or_generator) : read_poly_mesh(path_or_generator);
}

}  // namespace krilu
