// SPDX-License-Identifier: Apache-2.0
// What `krilu info` says of a mesh.
#pragma once

#include <string>

namespace krilu::app {

/// An OpenFOAM case or polyMesh folder, an SU2 mesh, or a generated mesh.
bool names_mesh(const std::string& text);

/// Size, shape and quality of the mesh, and how loops over its faces run here; `json` as --json has it. The exit
/// status.
int mesh_info(const std::string& text, const std::string& json, int threads);

}  // namespace krilu::app
