#include "client/tool/npy_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "client/tool/exit_code.h"
#include "client/tool/row_reader.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::ElementsAre;

TEST(NpyWriterTest, RowsWrittenInPiecesAreReadBackWhole) {
  const TemporaryFile file("m.npy");
  auto writer = NpyWriter::Create(file.path(), 2);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_TRUE(writer->Write(std::vector<float>{1, 2}).ok());
  EXPECT_TRUE(writer->Write(std::vector<float>{3, 4, 5, 6}).ok());
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(writer->Publish().ok());
  const auto matrix = ReadMatrix(file.path(), "", {2, "key_dim"});
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->rows, 3u);
  EXPECT_THAT(matrix->data, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(NpyWriterTest, NoRowsAreAnArrayOfNone) {
  const TemporaryFile file("m.npy");
  EXPECT_TRUE(WriteNpy(file.path(), FloatMatrixView({}, 0, 3)).ok());
  const auto matrix = ReadMatrix(file.path(), "", {3, "key_dim"});
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->rows, 0u);
}

TEST(NpyWriterTest, AnOlderArrayStaysUntilTheNewOneIsPublished) {
  const TemporaryFile file("m.npy");
  ASSERT_TRUE(WriteNpy(file.path(), FloatMatrixView(std::vector<float>{7}, 1, 1)).ok());
  const auto read = [&] { return ReadMatrix(file.path(), "", {1, "key_dim"})->data; };
  auto writer = NpyWriter::Create(file.path(), 1);
  EXPECT_TRUE(writer->Write(std::vector<float>{1}).ok());
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_THAT(read(), ElementsAre(7));
  EXPECT_TRUE(writer->Publish().ok());
  EXPECT_THAT(read(), ElementsAre(1));
}

TEST(NpyWriterTest, FileThatCannotBeMadeIsAnInputError) {
  EXPECT_EQ(ExitCodeOf(NpyWriter::Create("/no/such/folder/m.npy", 1).status()), ExitCode::kInput);
}

}  // namespace
}  // namespace softlookup::tool
