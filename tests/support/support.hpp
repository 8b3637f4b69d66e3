// SPDX-License-Identifier: Apache-2.0
// What tests share: small matrices, dense references, random patterns with printed seeds, the spaces to run on, and
// where real matrices are looked for.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "exec/emulated.hpp"
#include "exec/host.hpp"
#include "krilu/matrix.hpp"

namespace krilu::test {

/// Every execution space that this machine has: TYPED_TEST_SUITE(Name, krilu::test::Spaces).
using Spaces = ::testing::Types<exec::Host, exec::Emulated>;

/// A space with this many threads.
template <class Space>
Space make_space(int threads = 2) {
  return Space(threads);
}

/// A vector brought to a space, and back.
template <class Space, class T>
exec::Array<T> to_device(const Space& space, const std::vector<T>& v) {
  auto a = space.template allocate<T>(v.size());
  space.copy_in(a, v.data(), v.size());
  return a;
}
template <class Space, class T>
std::vector<T> to_host(const Space& space, const exec::Array<T>& a) {
  std::vector<T> v(a.size());
  space.copy_out(v.data(), a, v.size());
  return v;
}

/// A matrix with the name that a failure is to show.
struct NamedMatrix {
  std::string name;
  CsrMatrix a;
};

using Dense = std::vector<std::vector<double>>;

/// CSR of the entries of a dense matrix that are not zero.
CsrMatrix from_dense(const Dense& d);
Dense to_dense(const CsrView& a);

/// Gaussian elimination with partial pivoting in long double.
std::vector<double> dense_solve(const Dense& a, const std::vector<double>& b);

struct RandomPattern {
  Index rows = 100;
  double per_row = 5;  // off-diagonal entries a row, on average
  bool symmetric_pattern = true;
  bool symmetric_values = false;
  double dominance = 1.2;  // |a_ii| over the sum of the row's other magnitudes
  std::uint64_t seed = 1;
};
/// A random square matrix with a full diagonal; entries uniform in [-1, 1] off the diagonal.
CsrMatrix random_matrix(const RandomPattern& p);
std::vector<double> random_values(std::size_t n, std::uint64_t seed);

/// 2^e, e uniform in -most .. most.
std::vector<double> random_powers(std::size_t n, int most, std::uint64_t seed);

/// The numbers 0 to n - 1, and the same in random sequence, which is one with every standard library.
std::vector<Index> natural_order(Index n);
std::vector<Index> shuffled_order(Index n, std::uint64_t seed);

/// max |a_i - b_i| over max |b_i|; infinity where lengths differ or a is not finite.
double difference(const std::vector<double>& a, const std::vector<double>& b);

/// ||b - A x||_2 / ||b||_2 in long double.
double true_residual(const CsrView& a, const std::vector<double>& x, const std::vector<double>& b);

/// A real matrix by its path below the folder of matrices (KRILU_MATRICES, else shared/matrices beside the checkout),
/// or an empty path where there is none: the test then says that it was skipped.
std::filesystem::path real_matrix(const std::string& below);
#define KRILU_REQUIRE_MATRIX(name, below)                             \
  const std::filesystem::path name = krilu::test::real_matrix(below); \
  if (name.empty()) GTEST_SKIP() << "real matrix " << below << " is not at hand (KRILU_MATRICES)"

/// A folder for one test, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace krilu::test
