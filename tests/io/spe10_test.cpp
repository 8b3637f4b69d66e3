// SPDX-License-Identifier: Apache-2.0
// The SPE10 pressure system: a box of 2 x 3 x 2 cells worked out by hand, a field whose pressure is that of resistances
// in series, the refusals, and the real model, face by face in long double, where its files are at hand.
#include "io/spe10.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "sparse/csr.hpp"
#include "support/refusal.hpp"
#include "support/support.hpp"

namespace {

using krilu::CsrMatrix;
using krilu::Index;
using krilu::Offset;
using krilu::test::Dense;
using krilu::test::refusal;

constexpr std::array<Index, 3> tiny{2, 3, 2};
// Harmonic means of 1 and 3 are 1, 1.5 and 3; of 2 and 6 they are 2, 3 and 6.
const std::vector<double> tiny_kx{1, 3, 3, 3, 1, 1,   // the upper layer, row by row in y
                                  1, 1, 3, 1, 3, 3};  // the lower one
const std::vector<double> tiny_kz{2, 6, 2, 6, 2, 6,   //
                                  2, 6, 6, 2, 2, 2};

/// S/d is 1 ft in x, 4 in y and 100 in z; a half cell in y lets 8 k through. The rest is the means from above.
Dense tiny_matrix() {
  Dense a(12, std::vector<double>(12, 0.0));
  const auto face = [&](std::size_t r, std::size_t s, double t) { a[r][s] = a[s][r] = -t; };
  face(0, 1, 1.5), face(2, 3, 3), face(4, 5, 1);
  face(6, 7, 1), face(8, 9, 1.5), face(10, 11, 3);
  face(0, 2, 6), face(1, 3, 12), face(2, 4, 6), face(3, 5, 6);
  face(6, 8, 6), face(7, 9, 4), face(8, 10, 12), face(9, 11, 6);
  face(0, 6, 200), face(1, 7, 600), face(2, 8, 300), face(3, 9, 300), face(4, 10, 200), face(5, 11, 300);
  const double diagonal[] = {1.5 + 6 + 200 + 8,
                             1.5 + 12 + 600 + 24,
                             3 + 6 + 6 + 300,
                             3 + 12 + 6 + 300,
                             1 + 6 + 200 + 8,
                             1 + 6 + 300 + 8,
                             1 + 6 + 200 + 8,
                             1 + 4 + 600 + 8,
                             319.5,
                             311.5,
                             3 + 12 + 200 + 24,
                             3 + 6 + 300 + 24};
  for (std::size_t r = 0; r < 12; ++r) a[r][r] = diagonal[r];
  return a;
}

std::string text_of(const std::vector<double>& values) {
  std::string text;
  for (double v : values) text += std::to_string(v) + "\n";
  return text;
}

void expect_tiny(const CsrMatrix& a) {
  const Dense expected = tiny_matrix(), found = krilu::test::to_dense(a);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t r = 0; r < expected.size(); ++r)
    for (std::size_t s = 0; s < expected.size(); ++s)
      EXPECT_DOUBLE_EQ(found[r][s], expected[r][s]) << "row " << r << ", column " << s;
}

/// Columns ascend, and the matrix equals its transpose bit for bit.
void expect_symmetric(const CsrMatrix& a) {
  EXPECT_NO_THROW(krilu::require_valid(a));
  EXPECT_TRUE(krilu::sparse::symmetry(a).values);
}

class Spe10 : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.file(name), std::ios::binary) << text;
    return folder_.file(name);
  }
  krilu::test::TemporaryFolder folder_;
};

void expect_sentence(const std::string& message, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << word << "\n" << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST_F(Spe10, TwoByThreeByTwoByHand) {
  const CsrMatrix a = krilu::io::spe10_matrix({tiny, tiny_kx, tiny_kz});
  expect_symmetric(a);
  EXPECT_EQ(a.nnz(), 12 + 2 * 20);
  expect_tiny(a);
  const std::string kx = write("kx", text_of(tiny_kx)), kz = write("kz", "# Kz\n" + text_of(tiny_kz));
  expect_tiny(krilu::io::spe10_matrix(krilu::io::read_spe10(kx, kz, tiny)));
}

TEST_F(Spe10, RowSumsAreTheHalfCellsAtTheEnds) {
  const std::array<Index, 3> cells{4, 5, 3};
  std::vector<double> kx = krilu::test::random_values(60, 1), kz = krilu::test::random_values(60, 2);
  for (double& k : kx) k = std::pow(10, 4 * k);
  for (double& k : kz) k = std::pow(10, 4 * k);
  const CsrMatrix a = krilu::io::spe10_matrix({cells, kx, kz});
  expect_symmetric(a);
  const Dense d = krilu::test::to_dense(a);
  for (std::size_t r = 0; r < 60; ++r) {
    long double sum = 0;
    for (double v : d[r]) sum += v;
    const std::size_t j = r / 4 % 5;
    EXPECT_NEAR(double(sum), j == 0 || j == 4 ? 8 * kx[r] : 0, 1e-15 * 7 * d[r][r]) << "row " << r;
  }
}

TEST_F(Spe10, OneCellTouchesBothEnds) {
  const CsrMatrix a = krilu::io::spe10_matrix({{1, 1, 1}, {3}, {5}});
  EXPECT_EQ(a.nnz(), 1);
  EXPECT_DOUBLE_EQ(a.values[0], 2 * 8 * 3);
}

/// Pressure 1 at y = 0 and 0 at the other end: where the permeability changes with y only, the cells of a row are
/// resistances in series, and nothing flows in x and z whatever Kz is.
TEST_F(Spe10, ResistancesInSeries) {
  const std::array<Index, 3> cells{3, 5, 2};
  const double k[] = {2, 0.5, 700, 1, 30};
  std::vector<double> kx(30), b(30, 0.0), expected(30);
  for (std::size_t r = 0; r < 30; ++r) {
    const std::size_t j = r / 3 % 5;
    kx[r] = k[j];
    if (j == 0) b[r] = 8 * k[0];
    double before = 0, all = 0;
    for (std::size_t m = 0; m < 5; ++m) {
      before += m < j ? 1 / k[m] : 0;
      all += 1 / k[m];
    }
    expected[r] = 1 - (before + 0.5 / k[j]) / all;
  }
  std::vector<double> kz(30);
  for (std::size_t r = 0; r < 30; ++r) kz[r] = 1 + double(r);
  const CsrMatrix a = krilu::io::spe10_matrix({cells, kx, kz});
  const std::vector<double> p = krilu::test::dense_solve(krilu::test::to_dense(a), b);
  for (std::size_t r = 0; r < 30; ++r) EXPECT_NEAR(p[r], expected[r], 1e-12) << "row " << r;
}

TEST_F(Spe10, FilesThatAreRefused) {
  const std::string good = write("good", text_of(tiny_kx));
  const auto refused = [&](const std::string& text, const std::vector<std::string>& words) {
    const std::string bad = write("bad", text);
    for (const bool first : {true, false}) {
      const std::string message = refusal([&] { krilu::io::read_spe10(first ? bad : good, first ? good : bad, tiny); });
      expect_sentence(message, words);
      EXPECT_EQ(message.find(bad), 0u) << message;
    }
  };
  const std::string eleven = "1\n3\n3\n3\n1\n1\n1\n1\n3\n1\n3\n";
  refused(eleven, {"bad: it holds 11 permeabilities", "2 x 3 x 2 = 12 cells", "give one a cell"});
  refused(eleven + "1\n1\n", {"bad: it holds 13 permeabilities", "12 cells"});
  refused("", {"bad:1: the file holds no numbers"});
  refused(eleven + "0\n", {"bad: entry 12 (cell 2, 3, 2,", "permeability 0,", "small positive"});
  refused("1\n1\n1\n-2.5\n1\n1\n1\n1\n1\n1\n1\n1\n", {"bad: entry 4 (cell 2, 2, 1,", "permeability -2.5,"});
  refused(eleven + "1e-200\n", {"permeability 1e-200,", "between 1e-100 and 1e+100"});
  refused(eleven + "nan\n", {"bad:12: the value 'nan'"});
  refused(eleven + "rock\n", {"bad:12: 'rock' stands where a number"});
  refused("1 3\n" + eleven, {"bad:1: the line has more than 1 fields"});
  const std::string none = folder_.file("none");
  expect_sentence(refusal([&] { krilu::io::read_spe10(none, good, tiny); }),
                  {"could not read " + none, "No such file"});
  expect_sentence(refusal([&] { krilu::io::read_spe10(good, none, tiny); }),
                  {"could not read " + none, "No such file"});
}

TEST_F(Spe10, AsAGenerator) {
  EXPECT_TRUE(krilu::is_generator("gen:spe10:a,b"));
  for (const char* text : {"gen:spe10", "gen:spe10:", "gen:spe10:a", "gen:spe10:a,", "gen:spe10:,b", "gen:spe10:a,b,c"})
    expect_sentence(refusal([&] { krilu::generate(text); }),
                    {text, "one comma between them", "gen:spe10:KX,KZ", "convdiff3d27, spe10"});
  expect_sentence(refusal([] { krilu::generate("gen:spe1:a,b"); }), {"did you mean 'spe10'?"});
  // A colon belongs to the name, and the size is that of the model.
  const std::string colon = write("k:x", text_of(tiny_kx));
  expect_sentence(refusal([&] { krilu::generate("gen:spe10:" + colon + "," + colon); }),
                  {colon, "holds 12 permeabilities", "60 x 220 x 85 = 1122000 cells"});
}

/// x^T A x is the sum over all faces of T (x_i - x_j)^2, and T x_i^2 at the ends; T here as a harmonic mean.
TEST_F(Spe10, TheModelItself) {
#if !defined(KRILU_HAS_ZLIB)
  GTEST_SKIP() << "its files are compressed and this krilu was built without zlib";
#endif
  KRILU_REQUIRE_MATRIX(kx_path, "spe10/spe10_model2_kx.txt.gz");
  KRILU_REQUIRE_MATRIX(kz_path, "spe10/spe10_model2_kz.txt.gz");
  const CsrMatrix a = krilu::generate("gen:spe10:" + kx_path.string() + "," + kz_path.string());
  ASSERT_EQ(a.rows, 1122000);
  ASSERT_EQ(a.cols, 1122000);
  ASSERT_EQ(a.nnz(), 7780000);
  expect_symmetric(a);

  const std::vector<double> kx = krilu::read_vector(kx_path.string()), kz = krilu::read_vector(kz_path.string());
  const std::vector<double> x = krilu::random_vector(kx.size(), 1, -1, 1);
  long double energy = 0, product = 0;
  Index bad_sums = 0, bad_signs = 0;
  std::size_t r = 0;
  for (int k = 0; k < 85; ++k)
    for (int j = 0; j < 220; ++j)
      for (int i = 0; i < 60; ++i, ++r) {
        const auto face = [&](const std::vector<double>& field, std::size_t s, double area_by_distance) {
          const long double t = 2.0L * field[r] * field[s] / (static_cast<long double>(field[r]) + field[s]);
          energy += area_by_distance * t * (x[r] - x[s]) * (x[r] - x[s]);
        };
        if (i < 59) face(kx, r + 1, 1);
        if (j < 219) face(kx, r + 60, 4);
        if (k < 84) face(kz, r + 13200, 100);
        const double at_end = j == 0 || j == 219 ? 8 * kx[r] : 0;
        energy += static_cast<long double>(at_end) * x[r] * x[r];
        long double sum = -static_cast<long double>(at_end), row = 0;
        double diagonal = 0;
        for (Offset e = a.offsets[r]; e < a.offsets[r + 1]; ++e) {
          const auto s = std::size_t(a.columns[std::size_t(e)]);
          const double v = a.values[std::size_t(e)];
          sum += v;
          row += static_cast<long double>(v) * x[s];
          if (s == r) diagonal = v;
          bad_signs += s == r ? v <= 0 : v >= 0;
        }
        bad_sums += std::abs(sum) > 1e-15L * 7 * diagonal;
        product += row * x[r];
      }
  EXPECT_EQ(bad_sums, 0);
  EXPECT_EQ(bad_signs, 0);
  EXPECT_NEAR(double(product / energy), 1, 1e-13);
  // The first two cells, in the files' own digits: 18.2808 and 28.5927 mD beside each other in x.
  EXPECT_EQ(a.columns[1], 1);
  EXPECT_NEAR(a.values[1], -2 * 18.2808 * 28.5927 / (18.2808 + 28.5927), 1e-12);
}

}  // namespace
