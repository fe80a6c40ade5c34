#include "core/engine/split_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/storage/records.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::testing::ElementsAre;

// The rows of a kRows record with all that belongs to them. A row has 3 bytes of components.
struct Rows {
  std::uint64_t first_position = 0;
  std::string components;
  std::vector<std::optional<std::uint64_t>> ids;
  std::vector<std::vector<std::string>> labels;
};

// Returns the parts of `record` at `position`, as a reader of the log finds them.
std::vector<Rows> Split(std::uint64_t position, const RowsRecord& record, std::uint64_t rows_max) {
  std::vector<Rows> parts;
  const auto visit = [&](std::uint64_t first_position, const RowsRecord& part) {
    const std::string value = EncodeRows(part);
    const absl::StatusOr<RowsRecord> parsed = ParseRows(value, /*row_bytes=*/3);
    EXPECT_THAT(parsed, IsOk());
    EXPECT_LE(parsed->row_count, rows_max);
    parts.push_back({.first_position = first_position,
                     .components = std::string(parsed->components),
                     .ids = IdsByRow(*parsed),
                     .labels = parsed->row_labels});
    return absl::OkStatus();
  };
  EXPECT_THAT(SplitRows(position, record, rows_max, visit), IsOk());
  return parts;
}

std::string ComponentsOf(std::uint32_t rows) {
  std::string components;
  for (std::uint32_t row = 0; row < 3 * rows; ++row) components += static_cast<char>(row);
  return components;
}

TEST(SplitRowsTest, PartsEndBetweenPanelsAndHaveAllRows) {
  const std::string components = ComponentsOf(50);
  const std::vector<Rows> parts = Split(20, {.row_count = 50, .components = components}, 32);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].first_position, 20u);
  EXPECT_EQ(parts[1].first_position, 32u);
  EXPECT_EQ(parts[2].first_position, 64u);
  EXPECT_EQ(parts[0].components, components.substr(0, 3 * 12));
  EXPECT_EQ(parts[1].components, components.substr(3 * 12, 3 * 32));
  EXPECT_EQ(parts[2].components, components.substr(3 * 44));
  for (const Rows& part : parts) {
    EXPECT_TRUE(part.ids.empty());
    EXPECT_TRUE(part.labels.empty());
  }
}

TEST(SplitRowsTest, ARecordThatIsSmallEnoughStaysWhole) {
  const std::string components = ComponentsOf(32);
  const std::vector<Rows> parts = Split(32, {.row_count = 32, .components = components}, 32);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].first_position, 32u);
  EXPECT_EQ(parts[0].components, components);
}

TEST(SplitRowsTest, EveryRowKeepsItsIdAndItsLabels) {
  // Rows before 16 all have an id, those from 32 on have none, and some between.
  const std::string components = ComponentsOf(48);
  RowsRecord record{.row_count = 48, .components = components};
  for (std::uint64_t row = 0; row < 48; ++row) {
    record.has_id.push_back(row < 16 || (row < 32 && row % 3 == 0));
    if (record.has_id.back()) record.ids.push_back(1000 + row);
    record.row_labels.push_back({absl::StrCat("row ", row)});
  }
  const std::vector<Rows> parts = Split(0, record, 16);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_TRUE(parts[2].ids.empty());
  for (std::uint64_t row = 0; row < 48; ++row) {
    const Rows& part = parts[row / 16];
    if (row < 32) {
      const std::optional<std::uint64_t> id =
          record.has_id[row] ? std::optional(1000 + row) : std::nullopt;
      EXPECT_EQ(part.ids[row % 16], id) << row;
    }
    EXPECT_THAT(part.labels[row % 16], ElementsAre(absl::StrCat("row ", row)));
  }
}

TEST(SplitRowsTest, ARecordWithoutRowsHasNoParts) {
  EXPECT_TRUE(Split(16, RowsRecord(), 16).empty());
}

TEST(SplitRowsTest, AnErrorEndsIt) {
  const std::string components = ComponentsOf(48);
  int visits = 0;
  const auto visit = [&](std::uint64_t, const RowsRecord&) {
    return ++visits == 2 ? absl::CancelledError() : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsCancelled(
      SplitRows(0, {.row_count = 48, .components = components}, /*rows_max=*/16, visit)));
  EXPECT_EQ(visits, 2);
}

}  // namespace
}  // namespace softlookup
