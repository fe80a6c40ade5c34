#include "client/tool/row_tags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "client/tool/exit_code.h"
#include "softlookup/float_matrix.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Labels = std::vector<std::string>;

std::string BytesOf(const TemporaryFile& file) {
  std::ostringstream bytes;
  bytes << std::ifstream(file.path(), std::ios::binary).rdbuf();
  return bytes.str();
}

// Rows with the keys [0], [1], ... and no values.
v1::AppendRequest Rows(std::uint32_t count) {
  FloatMatrix keys{.rows = count, .cols = 1, .data = {}};
  for (std::uint32_t i = 0; i < count; ++i) keys.data.push_back(static_cast<float>(i));
  v1::AppendRequest rows;
  EXPECT_TRUE(FloatMatrixView(keys).ToProto(rows.mutable_keys()).ok());
  return rows;
}

Labels LabelsOf(const v1::AppendRequest& request, int row) {
  const auto& labels = request.row_labels(row).labels();
  return {labels.begin(), labels.end()};
}

// What the file gives `count` rows as labels.
absl::StatusOr<std::vector<Labels>> ReadLabels(const std::string& path, std::uint32_t count) {
  auto tags = RowTags::Open("", path);
  if (!tags.ok()) return tags.status();
  auto requests = tags->Tag(count, Rows(count));
  if (!requests.ok()) return requests.status();
  if (const absl::Status end = tags->CheckAtEnd(); !end.ok()) return end;
  std::vector<Labels> labels;
  for (std::uint32_t row = 0; row < count; ++row) {
    labels.push_back(LabelsOf(requests->at(0), static_cast<int>(row)));
  }
  return labels;
}

TEST(RowTagsWriterTest, WritesALineARow) {
  const TemporaryFile ids("ids.txt");
  const TemporaryFile labels("labels.txt");
  auto writer = RowTagsWriter::Create(ids.path(), labels.path());
  ASSERT_TRUE(writer.ok()) << writer.status();
  v1::Row row;
  row.set_id(7);
  row.add_labels("red");
  row.add_labels("very big");
  EXPECT_TRUE(writer->Write(row).ok());
  EXPECT_TRUE(writer->Write(v1::Row()).ok());
  row.set_id(0);
  row.mutable_labels()->Clear();
  row.add_labels("a,b");
  EXPECT_TRUE(writer->Write(row).ok());
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(writer->Publish().ok());
  EXPECT_EQ(BytesOf(ids), "7\n-\n0\n");
  EXPECT_EQ(BytesOf(labels), "red,very big\n\n\"a,b\"\n");
}

TEST(RowTagsWriterTest, FileThatCannotBeMadeIsAnInputError) {
  const absl::Status status = RowTagsWriter::Create("", "/no/such/folder/labels.txt").status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kInput);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("/no/such/folder/labels.txt: cannot be written"));
}

TEST(RowTagsTest, EveryLabelIsReadBackAsItWasWritten) {
  std::vector<Labels> rows = {{"\xef\xbb\xbfmark"},
                              {"a", "b"},
                              {},
                              {"a,b", "\"", "\"a\"", "a\"b", "\\", "\\n", "-", "#"},
                              {" lead", "trail ", " ", "\t", "in ner"},
                              {"two\nlines", "return\r", "\r\n", std::string("nul\0in", 6)},
                              {"\xc3\xa9", "\xf0\x9f\x8d\x8e", "\x7f"},
                              {},
                              {"same", "same"}};
  // Also what nobody thought of.
  std::mt19937 random(1);
  const std::vector<std::string> pieces = {",", "\"", "\\", "\n", "\r",
                                           " ", "\t", "a",  "u",  "\xc3\xa9"};
  for (int i = 0; i < 1000; ++i) {
    Labels& labels = rows.emplace_back(random() % 5);
    for (std::string& label : labels) {
      for (std::size_t n = 1 + random() % 6; n > 0; --n) label += pieces[random() % pieces.size()];
    }
  }
  const TemporaryFile file("labels.txt");
  auto writer = RowTagsWriter::Create("", file.path());
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (const Labels& labels : rows) {
    v1::Row row;
    row.mutable_labels()->Assign(labels.begin(), labels.end());
    EXPECT_TRUE(writer->Write(row).ok());
  }
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(writer->Publish().ok());
  const auto read = ReadLabels(file.path(), static_cast<std::uint32_t>(rows.size()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, rows);
}

TEST(RowTagsTest, LabelsMayBeTypedLoosely) {
  const TemporaryFile file("labels.txt",
                           "\xef\xbb\xbf red , \"big\" ,,blue\r\n\n\"\"\n  \nsay \"hi\", ok\n\n\n");
  const auto read = ReadLabels(file.path(), 5);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(ElementsAre("red", "big", "blue"), IsEmpty(), IsEmpty(), IsEmpty(),
                                 ElementsAre("say \"hi\"", "ok")));
}

TEST(RowTagsTest, MalformedLabelNamesItsLine) {
  for (const char* line : {"\"a", "\"a\\\"", "\"a\"b", "\"\\x\"", "\"a\"\"b\"", "b,\""}) {
    const TemporaryFile file("labels.txt", std::string("fine\n") + line + "\n");
    const absl::Status status = ReadLabels(file.path(), 2).status();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kInput) << line;
    EXPECT_EQ(status.message(),
              file.path() +
                  ": line 2: a label that starts with a quote must be a JSON string, such as "
                  "\"10,000\" or \"\\\"so\\\" named\"");
  }
  const TemporaryFile latin1("labels.txt", "fine\ncaf\xe9\n");
  EXPECT_THAT(std::string(ReadLabels(latin1.path(), 2).status().message()),
              HasSubstr("line 2: is not UTF-8"));
}

TEST(RowTagsTest, LinesAreCountedAsTheyAreRead) {
  const TemporaryFile labels("labels.txt", "a\n\n\"b\\nc\",d\n\n\n");
  for (const std::uint64_t rows : {3, 4, 5}) {
    EXPECT_TRUE(CheckTagCounts("", labels.path(), rows).ok()) << rows;
    EXPECT_TRUE(ReadLabels(labels.path(), static_cast<std::uint32_t>(rows)).ok()) << rows;
  }
  const absl::Status over = CheckTagCounts("", labels.path(), 2);
  EXPECT_EQ(ExitCodeOf(over), ExitCode::kInput);
  EXPECT_EQ(over.message(), labels.path() +
                                ": has 3 lines of labels, but the input has 2 rows; it "
                                "must have a line for each row");
  EXPECT_FALSE(ReadLabels(labels.path(), 2).ok());
  EXPECT_EQ(CheckTagCounts("", labels.path(), 6).message(),
            labels.path() +
                ": has 5 lines of labels, but the input has 6 rows; it must have a "
                "line for each row");

  const TemporaryFile ids("ids.txt", "5\n\n-\n\n");
  EXPECT_TRUE(CheckTagCounts(ids.path(), "", 2).ok());
  for (const std::uint64_t rows : {1, 3, 4}) {
    EXPECT_THAT(std::string(CheckTagCounts(ids.path(), labels.path(), rows).message()),
                HasSubstr(ids.path() +
                          ": has 2 lines of ids that are not blank, but the input "
                          "has " +
                          std::to_string(rows) + " row"));
  }
}

TEST(RowTagsTest, AHeaderMustGo) {
  const auto error = [](const std::string& name, const std::string& bytes, std::uint64_t rows) {
    const TemporaryFile file(name, bytes);
    const bool is_ids = name == "ids.txt";
    return std::string(
        CheckTagCounts(is_ids ? file.path() : "", is_ids ? "" : file.path(), rows).message());
  };
  EXPECT_THAT(error("labels.txt", "Label\nred\nblue\n", 2),
              HasSubstr(": has 3 lines of labels, but the input has 2 rows; its first line, "
                        "\"Label\", looks like a header, which must go"));
  EXPECT_THAT(error("ids.txt", "id\n7\n8\n", 2),
              HasSubstr("; its first line, \"id\", looks like a header, which must go"));
  // The last row has no labels.
  EXPECT_THAT(error("labels.txt", "\"labels\"\nred\n\n", 2), HasSubstr("looks like a header"));
  EXPECT_EQ(error("labels.txt", "label\nred\n", 2), "");
  for (const char* lines : {"label\na\nb\nc\n", "red\na\nb\n", "label,name\na\nb\n"}) {
    EXPECT_THAT(error("labels.txt", lines, 2), HasSubstr("; it must have a line for each row"));
  }
}

TEST(RowTagsTest, WhatCanBeReadOnlyOnceIsNotCounted) {
  EXPECT_TRUE(CheckTagCounts("-", "", 3).ok());
  const TemporaryFile file("labels.txt");
  const std::string pipe = file.path() + ".pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(CheckTagCounts("", pipe, 3).ok());
}

TEST(RowTagsTest, TellsOfWhichTagsAFileHasTooFewOrTooMany) {
  const TemporaryFile two("two.txt", "label\n8\n");
  auto tags = RowTags::Open("", two.path());
  EXPECT_TRUE(tags->Tag(1, Rows(1)).ok());
  EXPECT_EQ(tags->miscounted(), "");
  EXPECT_EQ(tags->CheckAtEnd().message(),
            two.path() +
                ": line 2: goes on after the last of 1 row; its first line, \"label\", "
                "looks like a header, which must go");
  EXPECT_EQ(tags->miscounted(), "labels");
  const TemporaryFile ids("ids.txt", "7\n8\n");
  tags = RowTags::Open(ids.path(), "");
  EXPECT_FALSE(tags->Tag(3, Rows(3)).ok());
  EXPECT_EQ(tags->miscounted(), "ids");
}

TEST(RowTagsTest, RowsWithAndWithoutAnIdGoIntoRequestsOfTheirOwn) {
  const TemporaryFile ids("ids.txt",
                          "\xef\xbb\xbf"
                          "5\n6\n\n-\n7\n-\n -\n");
  const TemporaryFile labels("labels.txt", "a\nb\nc\nd\ne\nf\n");
  auto tags = RowTags::Open(ids.path(), labels.path());
  ASSERT_TRUE(tags.ok()) << tags.status();
  const auto requests = tags->Tag(6, Rows(6));
  ASSERT_TRUE(requests.ok()) << requests.status();
  EXPECT_TRUE(tags->CheckAtEnd().ok());
  ASSERT_THAT(*requests, SizeIs(4));
  const auto expect = [&](int request, const std::vector<float>& keys,
                          const std::vector<std::uint64_t>& request_ids, const Labels& first) {
    const v1::AppendRequest& sent = requests->at(request);
    EXPECT_EQ(FloatMatrix::FromProto(sent.keys())->data, keys);
    EXPECT_THAT(sent.ids(), ::testing::ElementsAreArray(request_ids));
    EXPECT_EQ(sent.row_labels_size(), static_cast<int>(keys.size()));
    EXPECT_EQ(LabelsOf(sent, 0), first);
    EXPECT_FALSE(sent.has_values());
  };
  expect(0, {0, 1}, {5, 6}, {"a"});
  expect(1, {2}, {}, {"c"});
  expect(2, {3}, {7}, {"d"});
  expect(3, {4, 5}, {}, {"e"});
}

TEST(RowTagsTest, RowsThatAreAlikeStayTogether) {
  const TemporaryFile ids("ids.txt", "-\n-\n3\n4\n");
  auto tags = RowTags::Open(ids.path(), "");
  ASSERT_TRUE(tags.ok()) << tags.status();
  EXPECT_THAT(*tags->Tag(2, Rows(2)), SizeIs(1));
  const auto requests = tags->Tag(2, Rows(2));
  ASSERT_THAT(*requests, SizeIs(1));
  EXPECT_THAT(requests->at(0).ids(), ElementsAre(3, 4));
  EXPECT_EQ(requests->at(0).row_labels_size(), 0);
}

TEST(RowTagsTest, AnIdThatStandsTwiceIsRefusedWhateverIsBetween) {
  for (const char* lines : {"5\n6\n5\n", "5\n-\n5\n"}) {
    const TemporaryFile ids("ids.txt", lines);
    auto tags = RowTags::Open(ids.path(), "");
    const absl::Status status = tags->Tag(3, Rows(3)).status();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kInput);
    EXPECT_EQ(status.message(), ids.path() + ": line 3: the id 5 is that of line 1, too");
    // Over the rows of several calls, the store decides.
    auto one_by_one = RowTags::Open(ids.path(), "");
    for (int row = 0; row < 3; ++row) EXPECT_TRUE(one_by_one->Tag(1, Rows(1)).ok());
  }
}

TEST(RowTagsTest, TellsTheLineOfAnIdUnlessBlankLinesHideIt) {
  const TemporaryFile ids("ids.txt", "5\n-\n7\n\n");
  auto tags = RowTags::Open(ids.path(), "");
  EXPECT_TRUE(tags->Tag(3, Rows(3)).ok());
  EXPECT_TRUE(tags->CheckAtEnd().ok());
  EXPECT_EQ(tags->IdPlace(2), "line 3 of " + ids.path());
  const TemporaryFile gaps("ids.txt", "5\n\n7\n");
  auto with_gaps = RowTags::Open(gaps.path(), "");
  EXPECT_TRUE(with_gaps->Tag(2, Rows(2)).ok());
  EXPECT_EQ(with_gaps->IdPlace(1), gaps.path());
  EXPECT_EQ(RowTags::Open("", ids.path())->IdPlace(0), "");
}

TEST(RowTagsTest, AnArrayIsNoText) {
  const TemporaryFile array("labels.npy", std::string("\x93NUMPY\x01\0v\0{'descr': '<i8'}\n7", 28));
  const std::string message =
      array.path() + ": is a .npy file, but it must be text, one line a row";
  EXPECT_EQ(ReadLabels(array.path(), 1).status().message(), message);
  EXPECT_EQ(RowTags::Open(array.path(), "")->Tag(1, Rows(1)).status().message(), message);
}

TEST(RowTagsTest, WhatIsNoIdNamesItsLine) {
  for (const char* line : {"-8", "x", "1.5", "18446744073709551616", "1 2", "--"}) {
    const TemporaryFile ids("ids.txt", std::string("1\n") + line + "\n");
    auto tags = RowTags::Open(ids.path(), "");
    const absl::Status status = tags->Tag(2, Rows(2)).status();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kInput);
    EXPECT_EQ(status.message(), ids.path() + ": line 2: \"" + line +
                                    "\" is not an id: a whole number below 2^64, or - for a row "
                                    "without");
  }
}

}  // namespace
}  // namespace softlookup::tool
