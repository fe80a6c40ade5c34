#include "core/store/row_tags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RowTagsTest, ARowThatWasNotAddedHasNoTags) {
  RowTags tags;
  const std::vector<std::uint32_t> labels = {5, 2};
  tags.Add(3, 70, {});
  tags.Add(6, std::nullopt, labels);
  tags.Add(9, 71, absl::MakeConstSpan(labels).first(1));
  tags.ShrinkToFit();
  for (const std::int64_t row : {0, 2, 4, 5, 8, 10, 1023}) {
    EXPECT_EQ(tags.id(row), std::nullopt) << row;
    EXPECT_THAT(tags.labels(row), IsEmpty()) << row;
  }
  EXPECT_EQ(tags.id(3), 70u);
  EXPECT_THAT(tags.labels(3), IsEmpty());
  EXPECT_EQ(tags.id(6), std::nullopt);
  EXPECT_THAT(tags.labels(6), ElementsAre(5u, 2u));
  EXPECT_EQ(tags.id(9), 71u);
  EXPECT_THAT(tags.labels(9), ElementsAre(5u));
}

TEST(RowTagsTest, AnIdIsFoundWhateverRowsBeforeItHaveNone) {
  RowTags tags;
  const std::vector<std::int64_t> rows = {0, 1, 63, 64, 127, 128, 500, 1023};
  for (const std::int64_t row : rows) tags.Add(row, 9000 + row, {});
  tags.ShrinkToFit();
  std::vector<std::int64_t> found;
  for (std::int64_t row = 0; row < kernels::kBlockRowsMax; ++row) {
    if (!tags.id(row)) continue;
    found.push_back(row);
    EXPECT_EQ(tags.id(row), static_cast<std::uint64_t>(9000 + row));
  }
  EXPECT_EQ(found, rows);
}

TEST(RowTagsTest, OnlyTheTagsOfKeptRowsAreLeft) {
  RowTags tags;
  for (std::int64_t row = 0; row < kernels::kBlockRowsMax; ++row) {
    std::vector<std::uint32_t> labels(static_cast<std::size_t>(row % 3),
                                      static_cast<std::uint32_t>(row));
    tags.Add(row, row % 2 == 0 ? std::optional<std::uint64_t>(row) : std::nullopt, labels);
  }
  tags.ShrinkToFit();
  RowMask kept;
  for (const std::int64_t row : {2, 3, 7, 64, 1023}) kept.Set(row);
  const std::shared_ptr<const RowTags> only = tags.Only(kept);
  ASSERT_NE(only, nullptr);
  for (std::int64_t row = 0; row < kernels::kBlockRowsMax; ++row) {
    SCOPED_TRACE(row);
    EXPECT_EQ(only->id(row), kept[row] ? tags.id(row) : std::nullopt);
    const auto labels = kept[row] ? tags.labels(row) : absl::Span<const std::uint32_t>();
    EXPECT_THAT(only->labels(row), ::testing::ElementsAreArray(labels));
  }
  EXPECT_LT(only->bytes(), tags.bytes() / 4);
}

TEST(RowTagsTest, NoTagsAreNoObject) {
  RowTags tags;
  tags.Add(5, 70, {});
  EXPECT_EQ(tags.Only(RowMask()), nullptr);
  RowMask others = RowMask::All();
  others.Clear(5);
  EXPECT_EQ(tags.Only(others), nullptr);
  EXPECT_EQ(tags.Only(RowMask::All())->id(5), 70u);
}

TEST(LabelDictionaryTest, ATruncatedLabelIsUnknownAndGetsANewNumber) {
  LabelDictionary dictionary;
  EXPECT_EQ(dictionary.Intern("a"), 0u);
  EXPECT_EQ(dictionary.Intern("b"), 1u);
  EXPECT_EQ(dictionary.Intern("a"), 0u);
  dictionary.Truncate(1);
  EXPECT_EQ(dictionary.size(), 1u);
  EXPECT_EQ(dictionary.Find("b"), std::nullopt);
  EXPECT_EQ(dictionary.Find("a"), 0u);
  EXPECT_EQ(dictionary.Intern("c"), 1u);
  EXPECT_EQ(dictionary.NameOf(1), "c");
}

}  // namespace
}  // namespace softlookup
