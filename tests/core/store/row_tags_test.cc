#include "core/store/row_tags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
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
