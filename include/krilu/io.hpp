// SPDX-License-Identifier: Apache-2.0
// Reading, generating and writing matrices and vectors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "krilu/matrix.hpp"

namespace krilu {

/// What a Matrix Market file said of itself, beside the matrix.
struct MatrixFacts {
  std::string name;             // file name without folder and ending, or the generator's text
  std::string declared;         // e.g. "coordinate real symmetric"
  std::int64_t stored = 0;      // entries in the file
  std::int64_t duplicates = 0;  // entries that were added to an earlier one of the same place
};

struct ReadMatrix {
  CsrMatrix matrix;
  MatrixFacts facts;
};

/// Reads a Matrix Market file (coordinate or array; real, integer or pattern; general, symmetric or skew-symmetric),
/// plain or gzip, with `threads` threads (0: all). The full matrix is returned, both triangles. Duplicates are summed
/// and counted. Throws krilu::Error with file and line for anything that is not such a file, for complex and Hermitian
/// ones, for NaN and infinity, and for 2^31 or more nonzeros. The matrix need not be square.
/// Source: the Matrix Market exchange formats (Boisvert, Pozo, Remington 1996).
ReadMatrix read_matrix_market(const std::string& path, int threads = 0);

/// The same from text in memory; `label` stands for the file's name in messages.
ReadMatrix parse_matrix_market(std::string_view text, const std::string& label, int threads = 0);

/// Reads a dense vector: a Matrix Market array of n by 1 (or 1 by n), a coordinate file with one column, or plain text
/// with one number a line; plain or gzip. Throws krilu::Error as above.
std::vector<double> read_vector(const std::string& path, int threads = 0);

/// Writes x as a Matrix Market array, n by 1, with 17 significant digits. Written beside the target and renamed, so
/// that a full disk leaves no half file; "-" is standard output. Throws krilu::Error where it cannot be written whole.
void write_vector(const std::string& path, const std::vector<double>& x);

/// Writes a matrix as coordinate real general, 17 digits, in the same manner.
void write_matrix_market(const std::string& path, const CsrView& a);

/// A generated system, e.g. "gen:convdiff3d:148x148x58" or "gen:poisson2d:1000x1000:7" (the last number a seed), or
/// "gen:spe10:KX,KZ" and "gen:spe10-2p:KX,KZ", which read two files, or "gen:fv:MESH[,LAYERS[,ORDER]]", convection and
/// diffusion on a mesh that read_mesh takes. Throws krilu::Error with the list of generators where the text names none
/// of them. See docs/generators.md.
CsrMatrix generate(const std::string& text);
bool is_generator(std::string_view text);

/// Uniform in [lo, hi), entry by entry from splitmix64(seed + row): the same on every machine, device and number of
/// ranks.
std::vector<double> random_vector(std::size_t n, std::uint64_t seed, double lo, double hi);

}  // namespace krilu
