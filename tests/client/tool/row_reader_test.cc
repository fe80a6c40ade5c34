#include "client/tool/row_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "client/tool/exit_code.h"
#include "client/tool/npy_writer.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename T>
std::string Bytes(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

std::string Npy(const std::string& type, const std::string& order, const std::string& shape,
                const std::string& data, int version = 1) {
  const std::string header =
      "{'descr': " + type + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  std::string bytes = "\x93NUMPY";
  bytes += {static_cast<char>(version), '\0', static_cast<char>(header.size()), '\0'};
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + header + data;
}

absl::StatusOr<std::vector<float>> ReadAll(const std::string& path, std::uint32_t cols,
                                           std::uint32_t batch_rows = 1000) {
  auto reader = OpenRows(path, "csv", {cols, "key_dim"});
  if (!reader.ok()) return reader.status();
  std::vector<float> all;
  std::vector<float> batch;
  for (;;) {
    const auto count = (*reader)->Read(batch_rows, &batch);
    if (!count.ok()) return count.status();
    EXPECT_EQ(batch.size(), std::size_t{*count} * cols);
    if (*count == 0) return all;
    all.insert(all.end(), batch.begin(), batch.end());
  }
}

std::vector<float> Read(const std::string& name, const std::string& bytes, std::uint32_t cols,
                        std::uint32_t batch_rows = 1000) {
  const TemporaryFile file(name, bytes);
  const auto rows = ReadAll(file.path(), cols, batch_rows);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.value_or(std::vector<float>());
}

TEST(CsvTest, ReadsCommasAndWhiteSpaceAlike) {
  EXPECT_THAT(Read("a.csv", "1,-2\n 3.5 , +4e-1 \n5 6\r\n7\t.5", 2),
              ElementsAre(1, -2, 3.5, 0.4f, 5, 6, 7, 0.5));
}

TEST(CsvTest, SkipsHeaderBlankLinesCommentsAndByteOrderMark) {
  EXPECT_THAT(Read("a.csv", "\xef\xbb\xbf\n# people\nkey, value\n\n1,2 # one\n   \n3,4\n", 2),
              ElementsAre(1, 2, 3, 4));
}

TEST(CsvTest, ASkippedHeaderIsNoted) {
  const auto notes = [](const std::string& text) {
    const TemporaryFile file("a.csv", text);
    std::ostringstream notes;
    EXPECT_TRUE(ReadMatrix(file.path(), "", {0, ""}, &notes).ok());
    const std::string noted = notes.str();
    const std::string start = "softlookup: " + file.path() + ": ";
    return noted.substr(0, start.size()) == start ? noted.substr(start.size()) : noted;
  };
  EXPECT_EQ(notes("1,2\n"), "");
  EXPECT_EQ(notes("# a\n l.5 \n2\n"), "skipped line 2, a header: l.5 \n");
  EXPECT_EQ(notes("a\x1b[2J\n2\n"), "skipped line 1, a header: a\\x1b[2J\n");
  EXPECT_EQ(notes(std::string(1000, 'a') + "\n2\n"),
            "skipped line 1, a header: " + std::string(60, 'a') + "...\n");
}

TEST(CsvTest, RoundsToTheNearestFloat) {
  EXPECT_THAT(Read("a.csv", "0.1 1e-60 1e-400 16777217 3.4028235e38", 5),
              ElementsAre(0.1f, 0, 0, 16777216, std::numeric_limits<float>::max()));
}

TEST(CsvTest, LinesMayBeLongerThanTheBufferAndFilesMayEndInOne) {
  const std::string wide = "1" + std::string(100000, ' ') + "2";
  EXPECT_THAT(Read("a.csv", wide + "\n" + wide, 2), ElementsAre(1, 2, 1, 2));
}

TEST(CsvTest, EmptyFileHasNoRows) { EXPECT_THAT(Read("a.csv", "# nothing\n", 3), IsEmpty()); }

TEST(RowReaderTest, BatchesAreTheSameRows) {
  std::string text;
  std::vector<float> expected;
  for (int i = 0; i < 14; ++i) {
    text += std::to_string(i) + (i % 2 == 0 ? "," : "\n");
    expected.push_back(static_cast<float>(i));
  }
  for (const std::uint32_t batch_rows : {1, 2, 3, 7, 8}) {
    EXPECT_EQ(Read("a.csv", text, 2, batch_rows), expected);
    EXPECT_EQ(Read("a.npy", Npy("'<f4'", "False", "(7, 2)", Bytes(expected)), 2, batch_rows),
              expected);
  }
}

TEST(NpyTest, ReadsFloat32AndFloat64OfEveryVersion) {
  const std::string floats = Bytes<float>({1, 2, 3, 4});
  const std::string doubles = Bytes<double>({1, 2, 3, 0.1});
  EXPECT_THAT(Read("a.npy", Npy("'<f4'", "False", "(2, 2)", floats), 2), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Read("a.NPY", Npy("'<f8'", "False", "(2, 2)", doubles, 2), 2),
              ElementsAre(1, 2, 3, 0.1f));
  EXPECT_THAT(Read("a.npy", Npy("'<f8'", "False", "(1, 4)", doubles, 3), 4),
              ElementsAre(1, 2, 3, 0.1f));
}

TEST(NpyTest, ReadsEveryRealTypeRounded) {
  const auto read = [](const std::string& type, const std::string& bytes) {
    return Read("a.npy", Npy("'" + type + "'", "False", "(1, 3)", bytes), 3);
  };
  EXPECT_THAT(read("|u1", Bytes<std::uint8_t>({0, 1, 255})), ElementsAre(0, 1, 255));
  EXPECT_THAT(read("|i1", Bytes<std::int8_t>({-128, -1, 127})), ElementsAre(-128, -1, 127));
  EXPECT_THAT(read("|b1", Bytes<std::uint8_t>({0, 1, 7})), ElementsAre(0, 1, 1));
  EXPECT_THAT(read("<u1", Bytes<std::uint8_t>({0, 1, 255})), ElementsAre(0, 1, 255));
  EXPECT_THAT(read("<u2", Bytes<std::uint16_t>({0, 1, 65535})), ElementsAre(0, 1, 65535));
  EXPECT_THAT(read("<i2", Bytes<std::int16_t>({-32768, 0, 7})), ElementsAre(-32768, 0, 7));
  EXPECT_THAT(read("<u4", Bytes<std::uint32_t>({0, 16'777'217, 4'294'967'295})),
              ElementsAre(0, 16'777'216, 4'294'967'296));
  EXPECT_THAT(read("<i4", Bytes<std::int32_t>({-16'777'217, 0, 9})),
              ElementsAre(-16'777'216, 0, 9));
  EXPECT_THAT(read("<u8", Bytes<std::uint64_t>({0, 5, std::uint64_t{1} << 63})),
              ElementsAre(0, 5, 0x1p63));
  EXPECT_THAT(read("<i8", Bytes<std::int64_t>({-5, 0, std::int64_t{1} << 40})),
              ElementsAre(-5, 0, 0x1p40));
  // IEEE 754 binary16: the smallest and the largest subnormal, 1/3, the largest.
  EXPECT_THAT(read("<f2", Bytes<std::uint16_t>({0x0001, 0x83ff, 0x3555})),
              ElementsAre(0x1p-24, -1023 * 0x1p-24, 1365 * 0x1p-12));
  EXPECT_THAT(read("<f2", Bytes<std::uint16_t>({0x7bff, 0x8000, 0xc000})),
              ElementsAre(65504, -0.0, -2));
}

TEST(NpyTest, ReadsFortranOrderInRows) {
  // The columns are 0, 1, 2 and 10, 11, 12.
  const std::string array =
      Npy("'<i4'", "True", "(3, 2)", Bytes<std::int32_t>({0, 1, 2, 10, 11, 12}));
  for (const std::uint32_t batch_rows : {1, 2, 3, 5}) {
    EXPECT_THAT(Read("a.npy", array, 2, batch_rows), ElementsAre(0, 10, 1, 11, 2, 12));
  }
  EXPECT_THAT(Read("a.npy", Npy("'<f4'", "True", "(0, 2)", ""), 2), IsEmpty());
}

TEST(NpyTest, OneDimensionIsAColumnWhereOneIsAskedForAndElseARow) {
  const std::string array = Npy("'<f4'", "False", "(3,)", Bytes<float>({1, 2, 3}));
  EXPECT_THAT(Read("a.npy", array, 1, 2), ElementsAre(1, 2, 3));
  EXPECT_THAT(Read("a.npy", array, 3), ElementsAre(1, 2, 3));
}

TEST(NpyTest, NoRowsIsNoError) {
  EXPECT_THAT(Read("a.npy", Npy("'<f4'", "False", "(0, 2)", ""), 2), IsEmpty());
}

TEST(NpyTest, ReadsWhatTheWriterWrote) {
  const TemporaryFile file("a.npy");
  const FloatMatrix matrix{.rows = 3, .cols = 2, .data = {1, 2, 3, 4, 5, 0.1f}};
  ASSERT_TRUE(WriteNpy(file.path(), matrix).ok());
  EXPECT_EQ(*ReadAll(file.path(), 2), matrix.data);
}

TEST(NpyTest, WriterSaysWhereItCannotWrite) {
  const absl::Status status = WriteNpy("/no/such/directory/a.npy", FloatMatrix());
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kInput);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/directory/a.npy"));
}

TEST(FvecsTest, ReadsRows) {
  const std::string bytes = Bytes<std::int32_t>({2}) + Bytes<float>({1, 2}) +
                            Bytes<std::int32_t>({2}) + Bytes<float>({3, 4});
  EXPECT_THAT(Read("a.fvecs", bytes, 2, 1), ElementsAre(1, 2, 3, 4));
}

struct BadFile {
  std::string title;
  std::string name;
  std::string bytes;
  std::string message;  // What the error says after the path.
};

class BadFileTest : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadFileTest, IsAnInputErrorThatNamesThePlace) {
  const TemporaryFile file(GetParam().name, GetParam().bytes);
  const absl::Status status = ReadAll(file.path(), 2).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kInput) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(file.path() + ": " + GetParam().message));
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

INSTANTIATE_TEST_SUITE_P(
    Files, BadFileTest,
    ::testing::Values(
        BadFile{"CsvWord", "a.csv", "1,2\n3,x\n", "line 2, column 2: \"x\" is not a number"},
        BadFile{
            "CsvSemicolons", "a.csv", "1;2\n3;4\n",
            "line 1, column 1: \"1;2\" is not a number; the line has semicolons: separate numbers "
            "with commas"},
        BadFile{"CsvSemicolonsAndExponents", "a.csv", "1e5;2e5\n3e5;4e5\n",
                "line 1, column 1: \"1e5;2e5\" is not a number; the line has semicolons"},
        BadFile{"CsvSemicolonsAndNans", "a.csv", "nan;1\n2;3\n",
                "line 1, column 1: \"nan;1\" is not a number; the line has semicolons"},
        BadFile{"CsvSemicolonsAfterDecimalCommas", "a.csv", "1,5;2,5\n",
                "line 1, column 2: \"5;2\" is not a number; the line has semicolons"},
        BadFile{
            "CsvLongField", "a.csv", "1;" + std::string(1000, '2') + "\n",
            "line 1, column 1: \"1;" + std::string(58, '2') + "...\" is not a number; the line"},
        BadFile{"CsvArray", "a.csv", Npy("'<f4'", "False", "(1, 2)", Bytes<float>({1, 2})),
                "is a .npy file, but it must be text"},
        BadFile{"CsvHalfHeader", "a.csv", "1,x\n", "line 1, column 2: \"x\" is not a number"},
        BadFile{"CsvSecondHeader", "a.csv", "a,b\nc,d\n", "line 2, column 1: \"c\""},
        BadFile{"CsvTrailingText", "a.csv", "1,2x\n", "line 1, column 2: \"2x\""},
        BadFile{"CsvEmptyField", "a.csv", "1,2\n1,,2\n", "line 2, column 2: empty"},
        BadFile{"CsvTrailingComma", "a.csv", "1,2,\n", "line 1, column 3: empty"},
        BadFile{"CsvNan", "a.csv", "1,2\n\nnan,1\n", "line 3, column 1: \"nan\" is not a finite"},
        BadFile{"CsvTooLarge", "a.csv", "1,1e39\n", "line 1, column 2: \"1e39\" is not a finite"},
        BadFile{"CsvFarTooLarge", "a.csv", "1,1e400\n",
                "line 1, column 2: \"1e400\" is not a finite"},
        BadFile{"CsvTwoSigns", "a.csv", "1,+-2\n", "line 1, column 2: \"+-2\" is not a number"},
        BadFile{"CsvFewColumns", "a.csv", "1,2\n3\n", "line 2: 1 column, but key_dim is 2"},
        BadFile{"CsvManyColumns", "a.csv", "1,2,3\n", "line 1: 3 columns, but key_dim is 2"},
        BadFile{"CsvZeroBytes", "a.csv", std::string("1,2\n\0\0\n3,4\n", 11), "line 2, column 1"},
        BadFile{"CsvEndlessLine", "a.csv", "1,2\n" + std::string((16 << 20) + 1, '1'),
                "line 2 is longer than 16777216 bytes"},
        BadFile{"NpyEmpty", "a.npy", "", "is empty"},
        BadFile{"NpyOtherFile", "a.npy", std::string(100, 'x'), "not a .npy file"},
        BadFile{"NpyVersion", "a.npy", Npy("'<f4'", "False", "(1, 2)", "", 4),
                "unknown .npy version 4"},
        BadFile{"NpyHeaderCut", "a.npy", Npy("'<f4'", "False", "(1, 2)", "").substr(0, 30),
                "not a .npy file"},
        BadFile{"NpyComplex", "a.npy", Npy("'<c8'", "False", "(1, 2)", ""),
                "holds elements of type <c8"},
        BadFile{"NpyBigEndian", "a.npy", Npy("'>f4'", "False", "(1, 2)", ""),
                "holds elements of type >f4"},
        BadFile{
            "NpyText", "a.npy", Npy("'<U5'", "False", "(2,)", std::string(40, 'x')),
            "holds text or objects, elements of type <U5, but it must hold numbers; class "
            "labels, as whole numbers from 0, become one-hot rows by numpy.eye(classes)[labels]"},
        BadFile{"NpyObjects", "a.npy", Npy("'|O'", "False", "(2,)", "x"),
                "holds text or objects, elements of type |O"},
        BadFile{"NpyClasses", "a.npy",
                Npy("'<i8'", "False", "(3,)", Bytes<std::int64_t>({0, 2, 1})),
                "has 3 columns, but key_dim is 2; class labels, as whole numbers from 0"},
        BadFile{"NpyRecords", "a.npy", Npy("[('x', '<f4')]", "False", "(1,)", ""),
                "an array of records"},
        BadFile{"NpyFortranCut", "a.npy",
                Npy("'<f4'", "True", "(3, 2)", Bytes<float>({1, 2, 3, 4})),
                "ends in column 1 (from 0) of 2"},
        BadFile{"NpyFortranSurplus", "a.npy",
                Npy("'<f4'", "True", "(1, 2)", Bytes<float>({1, 2, 3})), "goes on after its 1 row"},
        BadFile{"NpyHugeShape", "a.npy",
                Npy("'<f4'", "True", "(9223372036854775808, 2)", Bytes<float>({1, 2})),
                "its header has the shape (9223372036854775808, 2)"},
        BadFile{"NpyHalfInfinity", "a.npy",
                Npy("'<f2'", "False", "(1, 2)", Bytes<std::uint16_t>({0, 0xfc00})),
                "row 0, column 1 (from 0): not a finite float32"},
        BadFile{"NpyScalar", "a.npy", Npy("'<f4'", "False", "()", ""), "has 0 dimensions"},
        BadFile{"NpyCube", "a.npy", Npy("'<f4'", "False", "(1, 1, 2)", ""), "has 3 dimensions"},
        BadFile{"NpyNegativeShape", "a.npy", Npy("'<f4'", "False", "(-1, 2)", ""),
                "its header has the shape (-1, 2)"},
        BadFile{"NpyColumns", "a.npy", Npy("'<f4'", "False", "(1, 3)", ""),
                "has 3 columns, but key_dim is 2"},
        BadFile{"NpyCut", "a.npy", Npy("'<f4'", "False", "(3, 2)", Bytes<float>({1, 2, 3})),
                "ends in row 1 (from 0) of 3"},
        BadFile{"NpySurplus", "a.npy", Npy("'<f4'", "False", "(1, 2)", Bytes<float>({1, 2, 3})),
                "goes on after its 1 row"},
        BadFile{"NpyNan", "a.npy", Npy("'<f4'", "False", "(2, 2)", Bytes<float>({1, 2, 3, kNan})),
                "row 1, column 1 (from 0): not a finite float32"},
        BadFile{"NpyDoubleTooLarge", "a.npy",
                Npy("'<f8'", "False", "(1, 2)", Bytes<double>({1e300, 0})),
                "row 0, column 0 (from 0): not a finite float32"},
        BadFile{"FvecsColumns", "a.fvecs", Bytes<std::int32_t>({3, 0, 0, 0}),
                "row 0 (from 0): 3 columns, but key_dim is 2"},
        BadFile{"FvecsCutInSize", "a.fvecs", Bytes<std::int32_t>({2, 0, 0}) + "xx",
                "ends inside row 1 (from 0)"},
        BadFile{"FvecsCutInRow", "a.fvecs", Bytes<std::int32_t>({2, 0}),
                "ends inside row 0 (from 0)"},
        BadFile{"FvecsNan", "a.fvecs", Bytes<std::int32_t>({2}) + Bytes<float>({kNan, 1}),
                "row 0, column 0 (from 0): not a finite float32"},
        BadFile{"UnknownEnding", "a.txt", "1,2\n", "unknown kind of file"}),
    [](const auto& info) { return info.param.title; });

TEST(ReadMatrixTest, FileSaysHowManyColumnsItHasWhereNothingElseDoes) {
  const TemporaryFile csv("m.csv", "1,2,3\n4,5,6\n");
  const TemporaryFile npy("m.npy", Npy("'<f4'", "False", "(1, 2)", Bytes<float>({7, 8})));
  const TemporaryFile fvecs("m.fvecs", Bytes<std::uint32_t>({1}) + Bytes<float>({9}));
  const auto from_csv = ReadMatrix(csv.path(), "", {0, ""});
  ASSERT_TRUE(from_csv.ok()) << from_csv.status();
  EXPECT_EQ(from_csv->rows, 2u);
  EXPECT_EQ(from_csv->cols, 3u);
  EXPECT_THAT(from_csv->data, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(ReadMatrix(npy.path(), "", {0, ""})->cols, 2u);
  EXPECT_EQ(ReadMatrix(fvecs.path(), "", {0, ""})->cols, 1u);
}

TEST(ReadMatrixTest, OneDimensionIsRefusedWhereItMayBeARowOrAColumn) {
  const TemporaryFile npy("m.npy", Npy("'<f4'", "False", "(2,)", Bytes<float>({7, 8})));
  EXPECT_THAT(std::string(ReadMatrix(npy.path(), "", {0, ""}).status().message()),
              EndsWith("has 1 dimension, which may be a row or a column; save it with 2, for "
                       "example with array.reshape(-1, 1)"));
  const TemporaryFile classes("c.npy", Npy("'<u1'", "False", "(2,)", "\x01\x02"));
  EXPECT_THAT(
      std::string(ReadMatrix(classes.path(), "", {0, ""}).status().message()),
      EndsWith("has 1 dimension; class labels, as whole numbers from 0, become one-hot rows "
               "by numpy.eye(classes)[labels]; numbers that are no classes become a column "
               "by array.reshape(-1, 1)"));
}

TEST(ReadMatrixTest, RowsAsWideAsTheFirstAreNeededThen) {
  const TemporaryFile csv("m.csv", "1,2,3\n4,5\n");
  const absl::Status status = ReadMatrix(csv.path(), "", {0, ""}).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kInput);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("line 2: 2 columns, but the first row has 3"));
  const TemporaryFile huge("m.fvecs", Bytes<std::uint32_t>({1u << 31}));
  EXPECT_EQ(ExitCodeOf(ReadMatrix(huge.path(), "", {0, ""}).status()), ExitCode::kInput);
}

TEST(OpenRowsTest, MissingFileIsAnInputError) {
  const TemporaryFile file("a.csv");
  const absl::Status missing = ReadAll(file.path() + ".missing.csv", 2).status();
  EXPECT_EQ(ExitCodeOf(missing), ExitCode::kInput);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("No such file"));
}

}  // namespace
}  // namespace softlookup::tool
