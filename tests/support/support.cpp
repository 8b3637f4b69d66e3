// SPDX-License-Identifier: Apache-2.0
#include "support/support.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "krilu/io.hpp"

namespace krilu::test {

CsrMatrix from_dense(const Dense& d) {
  CsrMatrix a;
  a.rows = Index(d.size());
  a.cols = d.empty() ? 0 : Index(d[0].size());
  a.offsets.push_back(0);
  for (const auto& row : d) {
    for (std::size_t j = 0; j < row.size(); ++j)
      if (row[j] != 0) {
        a.columns.push_back(Index(j));
        a.values.push_back(row[j]);
      }
    a.offsets.push_back(Offset(a.columns.size()));
  }
  return a;
}

Dense to_dense(const CsrView& a) {
  Dense d(std::size_t(a.rows), std::vector<double>(std::size_t(a.cols), 0.0));
  for (Index i = 0; i < a.rows; ++i)
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) d[std::size_t(i)][std::size_t(a.columns[k])] = a.values[k];
  return d;
}

std::vector<double> dense_solve(const Dense& a, const std::vector<double>& b) {
  const std::size_t n = b.size();
  std::vector<std::vector<long double>> m(n, std::vector<long double>(n + 1));
  for (std::size_t i = 0; i < n; ++i) {
    std::copy(a[i].begin(), a[i].end(), m[i].begin());
    m[i][n] = b[i];
  }
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t p = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(m[i][k]) > std::abs(m[p][k])) p = i;
    std::swap(m[k], m[p]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const long double f = m[i][k] / m[k][k];
      if (f != 0)
        for (std::size_t j = k; j <= n; ++j) m[i][j] -= f * m[k][j];
    }
  }
  std::vector<double> x(n);
  for (std::size_t k = n; k-- > 0;) {
    long double s = m[k][n];
    for (std::size_t j = k + 1; j < n; ++j) s -= m[k][j] * x[j];
    x[k] = double(s / m[k][k]);
  }
  return x;
}

CsrMatrix random_matrix(const RandomPattern& p) {
  std::mt19937_64 engine(p.seed);
  std::uniform_real_distribution<double> value(-1, 1);
  std::uniform_int_distribution<Index> place(0, std::max(p.rows - 1, 0));
  std::vector<std::map<Index, double>> rows(std::size_t(p.rows));
  const auto pairs = std::int64_t(p.per_row * p.rows / (p.symmetric_pattern ? 2 : 1));
  for (std::int64_t k = 0; k < pairs; ++k) {
    const Index i = place(engine), j = place(engine);
    const double v = value(engine), w = value(engine);
    if (i == j) continue;
    rows[std::size_t(i)][j] = v;
    if (p.symmetric_pattern) rows[std::size_t(j)][i] = p.symmetric_values ? v : w;
  }
  for (Index i = 0; i < p.rows; ++i) {
    double sum = 0;
    for (auto [j, v] : rows[std::size_t(i)]) sum += std::abs(v);
    rows[std::size_t(i)][i] = p.dominance * sum + (sum == 0 ? 1 : 0);
  }
  CsrMatrix a;
  a.rows = a.cols = p.rows;
  a.offsets.push_back(0);
  for (const auto& row : rows) {
    for (auto [j, v] : row) {
      a.columns.push_back(j);
      a.values.push_back(v);
    }
    a.offsets.push_back(Offset(a.columns.size()));
  }
  return a;
}

std::vector<double> random_values(std::size_t n, std::uint64_t seed) { return random_vector(n, seed, -1, 1); }

std::vector<Index> natural_order(Index n) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}
std::vector<Index> shuffled_order(Index n, std::uint64_t seed) {
  std::vector<Index> order = natural_order(n);
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

std::vector<double> random_powers(std::size_t n, int most, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> v(n);
  for (double& p : v) p = std::ldexp(1.0, int(random() % std::uint64_t(2 * most + 1)) - most);
  return v;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i])) return std::numeric_limits<double>::infinity();
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return largest > 0 ? most / largest : most;
}

double true_residual(const CsrView& a, const std::vector<double>& x, const std::vector<double>& b) {
  long double rr = 0, bb = 0;
  for (Index i = 0; i < a.rows; ++i) {
    long double r = b[std::size_t(i)];
    for (Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k)
      r -= static_cast<long double>(a.values[k]) * x[std::size_t(a.columns[k])];
    rr += r * r;
    bb += static_cast<long double>(b[std::size_t(i)]) * b[std::size_t(i)];
  }
  return double(std::sqrt(rr / (bb > 0 ? bb : 1)));
}

std::filesystem::path real_matrix(const std::string& below) {
  namespace fs = std::filesystem;
  const char* set = std::getenv("KRILU_MATRICES");
  const fs::path folder = set ? fs::path(set) : fs::path(KRILU_SOURCE_DIR).parent_path() / "shared" / "matrices";
  const fs::path path = folder / below;
  std::error_code ignored;
  return fs::exists(path, ignored) ? path : fs::path();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "krilu-test-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  path_ = name;
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace krilu::test
