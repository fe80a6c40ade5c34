#include "client/tool/pair_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/tool/exit_code.h"
#include "softlookup/word_encoder.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Store Store(std::uint32_t key_dim, std::uint32_t value_dim) {
  v1::Store store;
  store.set_key_dim(key_dim);
  store.set_value_dim(value_dim);
  return store;
}

class PairReaderTest : public ::testing::Test {
 protected:
  FloatMatrix keys_;
  FloatMatrix values_;
};

TEST_F(PairReaderTest, PairsTwoFiles) {
  const TemporaryFile keys("k.csv", "1,2\n3,4\n5,6\n");
  const TemporaryFile values("v.csv", "10\n20\n30\n");
  const auto reader = *OpenPairs({.keys = keys.path(), .values = values.path()}, Store(2, 1));
  EXPECT_EQ(*reader->Read(2, &keys_, &values_), 2u);
  EXPECT_EQ(keys_.rows, 2u);
  EXPECT_EQ(values_.cols, 1u);
  EXPECT_THAT(keys_.data, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values_.data, ElementsAre(10, 20));
  EXPECT_EQ(*reader->Read(2, &keys_, &values_), 1u);
  EXPECT_THAT(keys_.data, ElementsAre(5, 6));
  EXPECT_THAT(values_.data, ElementsAre(30));
  EXPECT_EQ(*reader->Read(2, &keys_, &values_), 0u);
}

TEST_F(PairReaderTest, FilesOfDifferentLengthAreAnError) {
  const TemporaryFile keys("k.csv", "1\n2\n3\n");
  const TemporaryFile values("v.csv", "1\n2\n");
  const auto reader = *OpenPairs({.keys = keys.path(), .values = values.path()}, Store(1, 1));
  const absl::Status status = reader->Read(10, &keys_, &values_).status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kInput);
  EXPECT_THAT(std::string(status.message()), HasSubstr("v.csv: ends after 2 rows"));
}

TEST_F(PairReaderTest, SplitsRowsIntoKeyAndValue) {
  const TemporaryFile rows("r.csv", "1,2,3\n4,5,6\n");
  const auto reader = *OpenPairs({.rows = rows.path()}, Store(2, 1));
  EXPECT_EQ(*reader->Read(10, &keys_, &values_), 2u);
  EXPECT_THAT(keys_.data, ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(values_.data, ElementsAre(3, 6));
}

TEST_F(PairReaderTest, EncodesWordsInBothDimensionsAndSkipsBlankLines) {
  const TemporaryFile words("words.txt", "cat\r\n\n  dog \n");
  const auto reader = *OpenPairs({.words = words.path()}, Store(4, 8));
  EXPECT_EQ(*reader->Read(10, &keys_, &values_), 2u);
  EXPECT_EQ(keys_.rows, 2u);
  EXPECT_EQ(keys_.Row(1), absl::MakeConstSpan(WordEncoder(4).Encode("dog")));
  EXPECT_EQ(values_.Row(0), absl::MakeConstSpan(WordEncoder(8).Encode("cat")));
  EXPECT_EQ(*reader->Read(10, &keys_, &values_), 0u);
}

}  // namespace
}  // namespace softlookup::tool
