// SPDX-License-Identifier: Apache-2.0
// Matrix Market files and vectors: every accepted kind against hand-written matrices, every refusal with its line, and
// random matrices that are written and read back bit for bit. Each text is parsed on one thread and in more pieces
// than it has lines (four a thread), so that every line end is a border between pieces once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#if defined(KRILU_HAS_ZLIB)
#include <zlib.h>
#endif

#include "krilu/error.hpp"
#include "krilu/io.hpp"
#include "support/refusal.hpp"
#include "support/texts.hpp"

namespace {

using krilu::CsrMatrix;
using krilu::Error;
using krilu::Index;
using krilu::parse_matrix_market;
using krilu::ReadMatrix;
using krilu::test::refusal;
using krilu::test::team_sizes;

namespace fs = std::filesystem;

struct Triple {
  Index row, column;  // 0-based
  double value;
  bool operator==(const Triple&) const = default;
};

std::vector<Triple> triples(const CsrMatrix& a) {
  std::vector<Triple> out;
  for (Index i = 0; i < a.rows; ++i) {
    for (krilu::Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) out.push_back({i, a.columns[k], a.values[k]});
  }
  return out;
}

void PrintTo(const Triple& t, std::ostream* out) { *out << "(" << t.row << "," << t.column << "," << t.value << ")"; }

void expect_csr(const CsrMatrix& a) {
  ASSERT_EQ(a.offsets.size(), static_cast<std::size_t>(a.rows) + 1);
  EXPECT_EQ(a.offsets.front(), 0);
  EXPECT_EQ(a.columns.size(), static_cast<std::size_t>(a.nnz()));
  EXPECT_EQ(a.values.size(), static_cast<std::size_t>(a.nnz()));
  for (Index i = 0; i < a.rows; ++i) {
    ASSERT_LE(a.offsets[i], a.offsets[i + 1]);
    for (krilu::Offset k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      ASSERT_GE(a.columns[k], k > a.offsets[i] ? a.columns[k - 1] + 1 : 0);
      ASSERT_LT(a.columns[k], a.cols);
    }
  }
}

/// The text gives this matrix, for every number of threads, with and without a last line end, with LF and CR LF.
void expect_matrix(const std::string& text, Index rows, Index cols, const std::vector<Triple>& expected,
                   std::int64_t duplicates = 0) {
  std::string unended = text, carriage;
  if (!unended.empty() && unended.back() == '\n') unended.pop_back();
  for (char c : text) carriage += c == '\n' ? std::string("\r\n") : std::string(1, c);
  for (const std::string& t : {text, unended, carriage}) {
    for (int threads : team_sizes) {
      SCOPED_TRACE("threads " + std::to_string(threads) + " text:\n" + t);
      ReadMatrix read;
      ASSERT_NO_THROW(read = parse_matrix_market(t, "m.mtx", threads));
      expect_csr(read.matrix);
      EXPECT_EQ(read.matrix.rows, rows);
      EXPECT_EQ(read.matrix.cols, cols);
      EXPECT_EQ(triples(read.matrix), expected);
      EXPECT_EQ(read.facts.duplicates, duplicates);
    }
  }
}

std::string message_of(const std::string& text, int threads) {
  try {
    parse_matrix_market(text, "m.mtx", threads);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// The text is refused at this line with these words, for every number of threads.
void expect_error(const std::string& text, int line, const std::string& words) {
  for (int threads : team_sizes) {
    const std::string message = message_of(text, threads);
    SCOPED_TRACE("threads " + std::to_string(threads) + " text:\n" + text.substr(0, 300));
    EXPECT_EQ(message.find("m.mtx:" + std::to_string(line) + ": "), 0u) << message;
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

class MatrixMarket : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string pattern = (fs::temp_directory_path() / (std::string("krilu_") + info->name() + "_XXXXXX")).string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

const std::string real_general = "%%MatrixMarket matrix coordinate real general\n";

// --- accepted kinds -------------------------------------------------------------------------------------------------

TEST_F(MatrixMarket, CoordinateRealGeneral) {
  expect_matrix(real_general + "2 3 4\n1 1 1.5\n2 3 -2e-3\n1 3 4\n2 1 0\n", 2, 3,
                {{0, 0, 1.5}, {0, 2, 4}, {1, 0, 0}, {1, 2, -2e-3}});
}

TEST_F(MatrixMarket, CoordinateIntegerGeneral) {
  expect_matrix("%%MatrixMarket matrix coordinate integer general\n2 2 2\n2 1 -7\n1 2 +3\n", 2, 2,
                {{0, 1, 3}, {1, 0, -7}});
}

TEST_F(MatrixMarket, CoordinatePattern) {
  expect_matrix("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n2 1\n1 2\n", 2, 2, {{0, 1, 1}, {1, 0, 1}});
  expect_matrix("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n1 1\n2 1\n3 2\n", 3, 3,
                {{0, 0, 1}, {0, 1, 1}, {1, 0, 1}, {1, 2, 1}, {2, 1, 1}});
}

TEST_F(MatrixMarket, CoordinateSymmetric) {
  expect_matrix("%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n2 1 2\n3 1 3\n3 3 4\n", 3, 3,
                {{0, 0, 1}, {0, 1, 2}, {0, 2, 3}, {1, 0, 2}, {2, 0, 3}, {2, 2, 4}});
  // An entry of the upper triangle stands for its mirror as well.
  expect_matrix("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n1 3 3\n2 1 2\n", 3, 3,
                {{0, 1, 2}, {0, 2, 3}, {1, 0, 2}, {2, 0, 3}});
}

TEST_F(MatrixMarket, CoordinateSkewSymmetric) {
  expect_matrix("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 3\n2 1 2\n3 2 -3\n3 3 0\n", 3, 3,
                {{0, 1, -2}, {1, 0, 2}, {1, 2, 3}, {2, 1, -3}, {2, 2, 0}});
}

TEST_F(MatrixMarket, Arrays) {
  // By columns; zeros of an array are not entries.
  expect_matrix("%%MatrixMarket matrix array real general\n2 3\n1\n2\n0\n4\n5\n6\n", 2, 3,
                {{0, 0, 1}, {0, 2, 5}, {1, 0, 2}, {1, 1, 4}, {1, 2, 6}});
  expect_matrix("%%MatrixMarket matrix array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", 3, 3,
                {{0, 0, 1}, {0, 1, 2}, {0, 2, 3}, {1, 0, 2}, {1, 1, 4}, {1, 2, 5}, {2, 0, 3}, {2, 1, 5}, {2, 2, 6}});
  expect_matrix("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n", 3, 3,
                {{0, 1, -1}, {0, 2, -2}, {1, 0, 1}, {1, 2, -3}, {2, 0, 2}, {2, 1, 3}});
}

TEST_F(MatrixMarket, HeaderInAnyCaseAndSpacing) {
  expect_matrix("%%matrixmarket\tMATRIX  Coordinate REAL   General \n 1 1\t1 \n  1\t1   2.5 \n", 1, 1, {{0, 0, 2.5}});
}

TEST_F(MatrixMarket, CommentsAndBlankLines) {
  expect_matrix(real_general + "% one\n\n%\n  \t\n  % two\n2 2 2\n\n1 1 1\n   \n% between\n2 2 2\n\n\n", 2, 2,
                {{0, 0, 1}, {1, 1, 2}});
}

TEST_F(MatrixMarket, SpellingsOfNumbers) {
  expect_matrix(real_general +
                    "1 12 12\n1 1 +1.0\n1 2 1.0D+00\n1 3 -2.5d-1\n1 4 .5\n1 5 5.\n1 6 1E3\n1 7 1e+03\n1 8 -0\n"
                    "1 9 4.9406564584124654e-324\n1 10 1e-400\n1 11 1.7976931348623157e308\n1 12 -1D-999\n",
                1, 12,
                {{0, 0, 1},
                 {0, 1, 1},
                 {0, 2, -0.25},
                 {0, 3, 0.5},
                 {0, 4, 5},
                 {0, 5, 1000},
                 {0, 6, 1000},
                 {0, 7, 0},
                 {0, 8, std::numeric_limits<double>::denorm_min()},
                 {0, 9, 0},  // nearest double
                 {0, 10, std::numeric_limits<double>::max()},
                 {0, 11, 0}});
  expect_matrix(real_general + "0000000000000000000000000001 1 1\n+1 0000000000000000000000000000001 1\n", 1, 1,
                {{0, 0, 1}});
  expect_matrix(real_general + "1 1 1\n1 1 0.00000000000000000000000000000000000000000000000000001e-500\n", 1, 1,
                {{0, 0, 0}});
}

TEST_F(MatrixMarket, EmptyMatrices) {
  expect_matrix(real_general + "0 0 0\n", 0, 0, {});
  expect_matrix(real_general + "3 2 0\n", 3, 2, {});
  expect_matrix("%%MatrixMarket matrix array real general\n0 5\n", 0, 5, {});
  expect_matrix("%%MatrixMarket matrix array real skew-symmetric\n1 1\n", 1, 1, {});
}

TEST_F(MatrixMarket, DuplicatesAreSummedAndCounted) {
  expect_matrix(real_general + "2 2 6\n2 2 1\n1 1 1\n1 1 2\n2 1 4\n1 1 3\n2 2 5\n", 2, 2,
                {{0, 0, 6}, {1, 0, 4}, {1, 1, 6}}, 3);
  expect_matrix("%%MatrixMarket matrix coordinate real symmetric\n2 2 4\n2 1 1\n2 1 2\n1 1 1\n1 1 1\n", 2, 2,
                {{0, 0, 2}, {0, 1, 3}, {1, 0, 3}}, 2);
  expect_matrix("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 2 1\n1 2 2\n", 2, 2, {{0, 1, 3}, {1, 0, 3}},
                1);
  expect_matrix("%%MatrixMarket matrix coordinate pattern general\n1 2 3\n1 2\n1 2\n1 1\n", 1, 2,
                {{0, 0, 1}, {0, 1, 2}}, 1);
}

TEST_F(MatrixMarket, SumOfDuplicatesDoesNotDependOnThreads) {
  const unsigned seed = 7;
  std::mt19937 random(seed);
  std::string text = real_general + "3 3 600\n";
  std::uniform_real_distribution<double> value(-1, 1);
  for (int k = 0; k < 600; ++k) {
    char line[64];
    std::snprintf(line, sizeof line, "%d %d %.17g\n", 1 + int(random() % 3), 1 + int(random() % 3),
                  std::ldexp(value(random), int(random() % 60)));
    text += line;
  }
  const auto expected = triples(parse_matrix_market(text, "m", 1).matrix);
  for (int threads : team_sizes) EXPECT_EQ(triples(parse_matrix_market(text, "m", threads).matrix), expected);
}

TEST_F(MatrixMarket, Facts) {
  const std::string text = "%%MatrixMarket MATRIX coordinate Real Symmetric\n2 2 2\n1 1 1\n2 1 1\n";
  const ReadMatrix read = parse_matrix_market(text, "some/folder/thermal.v2.mtx.gz");
  EXPECT_EQ(read.facts.name, "thermal.v2");
  EXPECT_EQ(read.facts.declared, "coordinate real symmetric");
  EXPECT_EQ(read.facts.stored, 2);
  EXPECT_EQ(read.facts.duplicates, 0);
  EXPECT_EQ(parse_matrix_market(text, "plain").facts.name, "plain");
}

// --- refusals -------------------------------------------------------------------------------------------------------

TEST_F(MatrixMarket, RefusesHeaders) {
  expect_error("", 1, "empty");
  expect_error("hello\n1 1 1\n", 1, "not a Matrix Market file");
  expect_error("%%MatrixMarketmatrix coordinate real general\n", 1, "not a Matrix Market file");
  expect_error(std::string("\x7f"
                           "ELF\0\1\2",
                           7),
               1, "opens with '?ELF");
  expect_error("%%MatrixMarket matrix coordinate real\n1 1 1\n", 1, "4 words");
  expect_error("%%MatrixMarket matrix coordinate real general x\n1 1 1\n", 1, "more than five words");
  expect_error("%%MatrixMarket vector coordinate real general\n1 1 1\n", 1, "'vector'");
  expect_error("%%MatrixMarket matrix dense real general\n1 1 1\n", 1, "'dense'");
  expect_error("%%MatrixMarket matrix coordinate quaternion general\n1 1 1\n", 1, "'quaternion'");
  expect_error("%%MatrixMarket matrix coordinate real lopsided\n1 1 1\n", 1, "'lopsided'");
  expect_error("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", 1, "complex");
  expect_error("%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 1 0\n", 1, "twice the size");
  expect_error("%%MatrixMarket matrix array complex general\n1 1\n1 0\n", 1, "[Re; Im] as its right-hand side");
  expect_error("%%MatrixMarket matrix coordinate real Hermitian\n1 1 1\n1 1 1\n", 1, "Hermitian");
  expect_error("%%MatrixMarket matrix array pattern general\n1 1\n", 1, "pattern");
  expect_error("%%MatrixMarket matrix coordinate pattern skew-symmetric\n2 2 1\n2 1\n", 1, "no signs");
}

TEST_F(MatrixMarket, RefusesSizeLines) {
  expect_error(real_general, 2, "before the size line");
  expect_error(real_general + "% only a comment\n\n", 4, "before the size line");
  expect_error(real_general + "2 2\n1 1 1\n", 2, "only two numbers");
  expect_error(real_general + "2 2 1 1\n1 1 1\n", 2, "more than 3 numbers");
  expect_error("%%MatrixMarket matrix array real general\n2\n1\n", 2, "only one number;");
  expect_error(real_general + "% c\n2 two 1\n1 1 1\n", 3, "'two'");
  expect_error(real_general + "2 2.0 1\n1 1 1\n", 2, "'2.0'");
  expect_error(real_general + "-2 2 1\n1 1 1\n", 2, "negative");
  expect_error(real_general + "2 2 -1\n1 1 1\n", 2, "negative");
  expect_error(real_general + "2147483647 2 1\n1 1 1\n", 2, "rows");
  expect_error(real_general + "2 99999999999999999999999999 1\n1 1 1\n", 2, "columns");
  expect_error(real_general + "2000000 2000000 2147483648\n1 1 1\n", 2, "fewer than 2147483648");
  expect_error(real_general + "2000000 2000000 99999999999999999999999\n1 1 1\n", 2, "fewer than 2147483648");
  expect_error("%%MatrixMarket matrix array real general\n65536 65536\n1\n", 2, "fewer than 2147483648");
  expect_error("%%MatrixMarket matrix array real general\n2147483646 2147483646\n1\n", 2, "fewer than 2147483648");
  expect_error("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n", 2, "square");
  // A header must not make the reader ask for memory that the text cannot fill.
  expect_error(real_general + "9 9 2147483647\n1 1 1\n", 2, "too few");
  expect_error("%%MatrixMarket matrix array real general\n30000 30000\n1\n", 2, "too few");
  expect_error(real_general + "2147483646 2147483646 1\n1 1 1\n", 2, "nearly every row is empty");
}

TEST_F(MatrixMarket, RefusesLines) {
  const std::string head = real_general + "% c\n3 4 3\n1 1 1.00000000\n\n";  // the next line is the sixth
  const auto bad = [&](const std::string& line, const std::string& words) {
    expect_error(head + line + "\n3 3 3\n", 6, words);
    expect_error(head + line + "\r\n3 3 3\r\n", 6, words);
    expect_error(head + "3 3 3                  \n" + line, 7, words);
  };
  bad("2 2", "only 2 fields");
  bad("2", "only one field");
  bad("2 2 2 2", "more than 3 fields");
  bad("2 2 2 % note", "more than 3 fields");
  bad("0 2 2", "the row is 0");
  bad("2 0 2", "the column is 0");
  bad("4 2 2", "the row '4' is outside 1 to 3");
  bad("2 5 2", "the column '5' is outside 1 to 4");
  bad("-1 2 2", "the row '-1' is outside");
  bad("99999999999999999999999 2 2", "is outside 1 to 3");
  bad("4294967297 2 2", "is outside 1 to 3");
  bad("18446744073709551617 2 2", "is outside 1 to 3");
  bad("x 2 2", "'x' stands where the row");
  bad("2 y 2", "'y' stands where the column");
  bad("1.0 2 2", "'1.0' stands where the row");
  bad("2 2 z", "'z' stands where a number");
  bad("2 2 1.0.0", "'1.0.0' stands where a number");
  bad("2 2 1e", "'1e' stands where a number");
  bad("2 2 +-1", "'+-1' stands where a number");
  bad("2 2 0x10", "'0x10' stands where a number");
  bad("2 2 1,5", "'1,5' stands where a number");
  bad("2 2 nan", "not a finite number");
  bad("2 2 NaN", "not a finite number");
  bad("2 2 inf", "not a finite number");
  bad("2 2 -Infinity", "not a finite number");
  bad("2 2 1e309", "largest double");
  bad("2 2 -1D+400", "largest double");
  bad("2 2 1000000000000e999999999999999999999999", "largest double");
  bad(std::string("2 2 \0", 5), "stands where a number");
  bad("2 2 " + std::string(500, 'q'), "qqq...'");
}

TEST_F(MatrixMarket, RefusesLinesOfOtherKinds) {
  expect_error("%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n", 3, "not whole");
  expect_error("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 1.5\n", 3, "more than 2 fields");
  expect_error("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1    \n", 3, "only one field");
  expect_error("%%MatrixMarket matrix array real general\n2 1\n1 2\n", 3, "more than 1 fields");
  expect_error("%%MatrixMarket matrix array real general\n2 1\n1\nx\n", 4, "'x'");
  expect_error("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n2 1 1\n2 2 1\n", 4, "diagonal");
}

TEST_F(MatrixMarket, RefusesWrongCounts) {
  expect_error(real_general + "2 2 2\n1 1 1.00000000000000\n", 3, "after 1 of the 2 entries");
  expect_error(real_general + "2 2 2\n1 1 1.00000000000000", 3, "after 1 of the 2 entries");
  expect_error(real_general + "2 2 1\n1 1 1\n\n% c\n2 2 1\n1 2 1\n", 6, "goes on after the 1 entries");
  expect_error(real_general + "2 2 0\n1 1 1\n", 3, "goes on after the 0 entries");
  expect_error("%%MatrixMarket matrix array real general\n2 1\n1\n2\n3\n", 5, "goes on after the 2 entries");
  expect_error("%%MatrixMarket matrix array real general\n2 1\n1.000000\n\n\n", 5, "after 1 of the 2 entries");
}

TEST_F(MatrixMarket, RefusesPairsInSymmetricFiles) {
  expect_error("%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n% c\n3 1 2\n2 1 5\n1 2 5\n", 6,
               "(2, 1) and (1, 2) are both stored");
  expect_error("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 2\n2 1\n", 3, "both stored");
  expect_error("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n1 2 1\n2 1 -1\n", 3, "both stored");
}

TEST_F(MatrixMarket, RefusesSumsThatOverflow) {
  const std::string message = message_of(real_general + "2 2 2\n2 1 1e308\n2 1 1e308\n", 2);
  EXPECT_NE(message.find("row 2, column 1 add up to more"), std::string::npos) << message;
}

TEST_F(MatrixMarket, RefusesFilesThatCannotBeRead) {
  const std::string missing = path("no_such_file.mtx");
  EXPECT_EQ(refusal([&] { krilu::read_matrix_market(missing); }),
            "could not read " + missing + ": No such file or directory");
  EXPECT_NE(refusal([&] { krilu::read_matrix_market(folder_.string()); }).find("it is a folder"), std::string::npos);
  EXPECT_NE(refusal([&] { krilu::read_vector(missing); }).find("No such file"), std::string::npos);
  const std::string empty = file("empty.mtx", "");
  EXPECT_NE(refusal([&] { krilu::read_matrix_market(empty); }).find(empty + ":1: the file is empty"),
            std::string::npos);
}

// --- gzip -----------------------------------------------------------------------------------------------------------

#if defined(KRILU_HAS_ZLIB)

std::string gzipped(const std::string& text) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string diagonal_text(int n) {
  std::string text = real_general + std::to_string(n) + " " + std::to_string(n) + " " + std::to_string(n) + "\n";
  for (int i = 1; i <= n; ++i) {
    text += std::to_string(i) + " " + std::to_string(i) + " " + std::to_string(i * 0.37) + "\n";
  }
  return text;
}

TEST_F(MatrixMarket, Gzip) {
  const std::string text = diagonal_text(20000);
  const std::string packed = gzipped(text);
  const auto expected = triples(parse_matrix_market(text, "m").matrix);
  // By its first bytes, whatever its name; of one or several members; with a tape block's zeros behind it.
  const std::string members = gzipped(text.substr(0, 1000)) + gzipped(text.substr(1000));
  for (const std::string& name : {file("a.mtx.gz", packed), file("a.mtx", packed), file("b.mtx.gz", members),
                                  file("c.mtx.gz", packed + std::string(512, '\0'))}) {
    for (int threads : team_sizes)
      EXPECT_EQ(triples(krilu::read_matrix_market(name, threads).matrix), expected) << name;
  }
  EXPECT_EQ(triples(krilu::read_matrix_market(file("plain.mtx.gz", text)).matrix), expected);
  EXPECT_EQ(krilu::read_vector(file("v.gz", gzipped("1\n2\n3\n"))), (std::vector<double>{1, 2, 3}));
}

TEST_F(MatrixMarket, DamagedGzip) {
  const std::string packed = gzipped(diagonal_text(5000));
  for (std::size_t keep : {std::size_t(2), std::size_t(5), std::size_t(11), packed.size() / 2, packed.size() - 9,
                           packed.size() - 8, packed.size() - 1}) {
    const std::string cut = file("cut.mtx.gz", packed.substr(0, keep));
    const std::string message = refusal([&] { krilu::read_matrix_market(cut); });
    EXPECT_NE(message.find("cut short"), std::string::npos) << keep << ": " << message;
  }
  std::string damaged = packed;
  for (std::size_t k = 0; k < 8; ++k) damaged[packed.size() / 2 + k] = '\xff';
  const std::string bad = file("bad.mtx.gz", damaged);
  EXPECT_NE(refusal([&] { krilu::read_matrix_market(bad); }).find("damaged"), std::string::npos);
  const std::string more = file("more.mtx.gz", packed + "text");
  EXPECT_NE(refusal([&] { krilu::read_matrix_market(more); }).find("behind the gzip data"), std::string::npos);
}

#endif

// --- writing --------------------------------------------------------------------------------------------------------

CsrMatrix random_matrix(std::mt19937_64& random) {
  CsrMatrix a;
  a.rows = static_cast<Index>(random() % 60);
  a.cols = static_cast<Index>(1 + random() % 60);
  a.offsets.push_back(0);
  for (Index i = 0; i < a.rows; ++i) {
    std::set<Index> columns;
    for (std::uint64_t k = random() % 8; k > 0; --k)
      columns.insert(static_cast<Index>(random() % std::uint64_t(a.cols)));
    for (Index j : columns) {
      double v = 0;
      do {  // any bits at all that are a finite number
        const std::uint64_t bits = random();
        std::memcpy(&v, &bits, sizeof v);
      } while (!std::isfinite(v));
      a.columns.push_back(j);
      a.values.push_back(random() % 4 ? v : std::ldexp(double(random() % 1000), -3));
    }
    a.offsets.push_back(static_cast<krilu::Offset>(a.columns.size()));
  }
  return a;
}

TEST_F(MatrixMarket, WrittenMatricesReadBackBitForBit) {
  const std::uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 60; ++trial) {
    const CsrMatrix a = random_matrix(random);
    krilu::write_matrix_market(path("a.mtx"), a);
    for (int threads : team_sizes) {
      const ReadMatrix b = krilu::read_matrix_market(path("a.mtx"), threads);
      ASSERT_EQ(b.matrix.rows, a.rows);
      ASSERT_EQ(b.matrix.cols, a.cols);
      ASSERT_EQ(b.matrix.offsets, a.offsets);
      ASSERT_EQ(b.matrix.columns, a.columns);
      ASSERT_EQ(b.matrix.values.size(), a.values.size());
      ASSERT_TRUE(a.values.empty() ||
                  std::memcmp(b.matrix.values.data(), a.values.data(), a.values.size() * sizeof(double)) == 0)
          << "seed " << seed << " trial " << trial << " threads " << threads;
      EXPECT_EQ(b.facts.stored, a.nnz());
    }
  }
  EXPECT_EQ(files(), 1u);  // no .part is left
}

TEST_F(MatrixMarket, ShuffledEntriesGiveTheSameMatrix) {
  const std::uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 20; ++trial) {
    const CsrMatrix a = random_matrix(random);
    std::vector<Triple> entries = triples(a);
    std::shuffle(entries.begin(), entries.end(), random);
    std::string text = real_general + std::to_string(a.rows) + " " + std::to_string(a.cols) + " " +
                       std::to_string(entries.size()) + "\n";
    for (const Triple& t : entries) {
      char line[80];
      std::snprintf(line, sizeof line, "%d %d %.17g\n", t.row + 1, t.column + 1, t.value);
      text += line;
    }
    for (int threads : team_sizes) {
      ASSERT_EQ(triples(parse_matrix_market(text, "m", threads).matrix), triples(a)) << "seed " << seed;
    }
  }
}

// --- vectors --------------------------------------------------------------------------------------------------------

TEST_F(MatrixMarket, Vectors) {
  const std::vector<double> x = {1.5, 0, -2};
  const std::string array = "%%MatrixMarket matrix array real general\n";
  for (const std::string& text :
       {array + "3 1\n1.5\n0\n-2\n", array + "% c\n1 3\n1.5\n0\n-2", real_general + "3 1 2\n3 1 -2\n1 1 1.5\n",
        std::string("1.5\n0\n-2\n"), std::string("# c\n\n  1.5\r\n% c\n0\n\n-2.0D0")}) {
    for (int threads : team_sizes) EXPECT_EQ(krilu::read_vector(file("x", text), threads), x) << text;
  }
  EXPECT_EQ(krilu::read_vector(file("x", array + "0 1\n")), std::vector<double>{});
  EXPECT_EQ(krilu::read_vector(file("x", "42")), std::vector<double>{42});
}

TEST_F(MatrixMarket, VectorsThatAreRefused) {
  const std::string array = "%%MatrixMarket matrix array real general\n";
  const auto bad = [&](const std::string& text, const std::string& words) {
    for (int threads : team_sizes) {
      const std::string message = refusal([&] { krilu::read_vector(file("x", text), threads); });
      EXPECT_NE(message.find(words), std::string::npos) << text << message;
    }
  };
  bad("", "x:1: the file holds no numbers");
  bad("\n\n# c\n", "holds no numbers");
  bad("1\n\n2 3\n", "x:3: the line has more than 1 fields");
  bad("1\ntwo\n", "x:2: 'two' stands where a number");
  bad("1\nnan\n", "x:2: the value 'nan'");
  bad("1\n1e999\n", "x:2: the value '1e999' is beyond");
  bad(array + "2 2\n1\n2\n3\n4\n", "2 by 2 where a vector is needed");
  bad(array + "2 1\n1.00000\n", "after 1 of the 2");
  bad(array + "2 1\n1\n2\n3\n", "x:5: the file goes on");
  bad(real_general + "1 2 1\n1 1 1\n", "1 by 2 where a vector");
  bad("%%MatrixMarket matrix array real skew-symmetric\n1 1\n", "skew");
}

TEST_F(MatrixMarket, WrittenVectorsReadBackBitForBit) {
  const std::vector<double> x = {0.1, -0.0, 1e-310, 5e-324, 1.7976931348623157e308, 1.0 / 3, 12345678901234567.0};
  krilu::write_vector(path("x.mtx"), x);
  const std::vector<double> y = krilu::read_vector(path("x.mtx"));
  ASSERT_EQ(x.size(), y.size());
  EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(double)), 0);
}

}  // namespace
