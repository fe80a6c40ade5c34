// The export of rows.
#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReadRowsTest : public IntegrationTest {};

TEST_F(ReadRowsTest, AnExportHasTheExactBitsInPositionOrder) {
  constexpr std::int64_t kRows = 2500, kKeyDim = 5, kValueDim = 3;
  Create("s", kKeyDim, kValueDim);
  std::vector<float> keys = NormalFloats(kRows * kKeyDim, 1);
  std::vector<float> values = NormalFloats(kRows * kValueDim, 2);
  // Bits that arithmetic would lose.
  keys[0] = -0.0f;
  keys[1] = std::numeric_limits<float>::denorm_min();
  keys[2] = -std::numeric_limits<float>::max();
  values[kValueDim * 1500] = -std::numeric_limits<float>::denorm_min();
  values[kValueDim * 1500 + 1] = -0.0f;
  for (std::int64_t begin = 0; begin < kRows;) {
    const std::int64_t count = std::min<std::int64_t>(kRows - begin, 1 + begin / 3);
    v1::AppendRequest append;
    append.set_store("s");
    *append.mutable_keys() = Message(
        {keys.begin() + begin * kKeyDim, keys.begin() + (begin + count) * kKeyDim}, kKeyDim);
    *append.mutable_values() =
        Message({values.begin() + begin * kValueDim, values.begin() + (begin + count) * kValueDim},
                kValueDim);
    if (begin % 2 == 0) {  // Ids and labels for some.
      for (std::int64_t i = 0; i < count; ++i) {
        append.add_ids(100'000 - (begin + i));
        append.add_row_labels()->add_labels("at " + std::to_string(begin + i));
      }
    }
    ASSERT_THAT(Append(append), IsGrpcOk());
    begin += count;
  }
  const std::uint64_t revision = GetStore("s").revision();
  for (const std::uint32_t page_rows : {0u, 1000u, 7u}) {
    SCOPED_TRACE(page_rows);
    v1::ReadRowsRequest request;
    request.set_store("s");
    request.set_page_rows(page_rows);
    std::vector<v1::ReadRowsResponse> pages;
    ASSERT_THAT(ReadRows(request, &pages), IsGrpcOk());
    std::int64_t position = 0;
    for (const v1::ReadRowsResponse& page : pages) {
      EXPECT_EQ(page.revision(), revision);
      if (page_rows > 0) {
        EXPECT_LE(page.rows_size(), static_cast<int>(page_rows));
      }
      for (const v1::Row& row : page.rows()) {
        ASSERT_EQ(row.position(), static_cast<std::uint64_t>(position));
        ASSERT_EQ(row.key().rows(), 1u);
        ASSERT_EQ(row.key().cols(), static_cast<std::uint32_t>(kKeyDim));
        ASSERT_EQ(row.key().data(),
                  std::string(reinterpret_cast<const char*>(&keys[position * kKeyDim]),
                              kKeyDim * sizeof(float)));
        ASSERT_EQ(row.value().data(),
                  std::string(reinterpret_cast<const char*>(&values[position * kValueDim]),
                              kValueDim * sizeof(float)));
        ASSERT_EQ(row.has_id(), row.labels_size() == 1);
        if (row.has_id()) {
          ASSERT_EQ(row.id(), static_cast<std::uint64_t>(100'000 - position));
          ASSERT_EQ(row.labels(0), "at " + std::to_string(position));
        }
        ++position;
      }
    }
    EXPECT_EQ(position, kRows);
    if (page_rows == 7) {
      EXPECT_GE(pages.size(), 358u);
    }
  }
}

TEST_F(ReadRowsTest, AnExportCarriesTheFieldsOfItsMaskOnly) {
  Create("s", 1, 1);
  v1::AppendRequest append = RowsWithIds(10, 2, 1);
  append.add_row_labels()->add_labels("a");
  append.add_row_labels()->add_labels("b");
  ASSERT_THAT(Append(append), IsGrpcOk());
  const std::vector<std::string> fields = {"position", "id", "labels", "key", "value"};
  for (int mask = 1; mask < 32; ++mask) {
    SCOPED_TRACE(mask);
    v1::ReadRowsRequest request;
    request.set_store("s");
    request.mutable_filter()->set_begin(1);
    for (int i = 0; i < 5; ++i) {
      if (mask >> i & 1) request.mutable_read_mask()->add_paths(fields[i]);
    }
    std::vector<v1::ReadRowsResponse> pages;
    ASSERT_THAT(ReadRows(request, &pages), IsGrpcOk());
    ASSERT_EQ(pages.at(0).rows_size(), 1);
    const v1::Row& row = pages[0].rows(0);
    EXPECT_EQ(row.position(), mask & 1 ? 1u : 0u);
    EXPECT_EQ(row.has_id(), (mask & 2) != 0);
    EXPECT_EQ(row.labels_size(), mask & 4 ? 1 : 0);
    EXPECT_EQ(row.has_key(), (mask & 8) != 0);
    EXPECT_EQ(row.has_value(), (mask & 16) != 0);
  }
  for (const char* path : {"weight", "key.data", "Key", ""}) {
    v1::ReadRowsRequest request;
    request.set_store("s");
    request.mutable_read_mask()->add_paths("key");
    request.mutable_read_mask()->add_paths(path);
    std::vector<v1::ReadRowsResponse> pages;
    EXPECT_THAT(ReadRows(request, &pages),
                IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, "read_mask"))
        << path;
    EXPECT_THAT(pages, IsEmpty());
  }
}

TEST_F(ReadRowsTest, AnExportIsOneSnapshotWhateverIsWrittenMeanwhile) {
  constexpr int kRows = 20'000;
  Create("s", 64, 64);
  const std::vector<float> numbers = NormalFloats(kRows * 64, 1);
  v1::AppendRequest append;
  append.set_store("s");
  *append.mutable_keys() = Message(numbers, 64);
  *append.mutable_values() = Message(numbers, 64);
  for (int i = 0; i < kRows; ++i) append.add_ids(i);
  ASSERT_THAT(Append(append), IsGrpcOk());
  v1::ReadRowsRequest request;
  request.set_store("s");
  request.set_page_rows(10);
  request.mutable_read_mask()->add_paths("position");
  request.mutable_read_mask()->add_paths("key");
  CallContext context;
  const auto reader = stub_->ReadRows(&context, request);
  v1::ReadRowsResponse page;
  std::uint64_t position = 0;
  const auto check_page = [&] {
    ASSERT_EQ(page.revision(), 2u);
    for (const v1::Row& row : page.rows()) {
      ASSERT_EQ(row.position(), position);
      ASSERT_EQ(std::memcmp(row.key().data().data(), &numbers[position * 64], 64 * 4), 0);
      ++position;
    }
  };
  ASSERT_TRUE(reader->Read(&page));
  check_page();
  // 5 MB are still to come, more than the connection buffers.
  v1::RowFilter filter;
  filter.set_begin(100);
  v1::DeleteRowsResponse deleted;
  ASSERT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
  EXPECT_EQ(deleted.deleted_count(), kRows - 100u);
  append.set_on_conflict(v1::ON_CONFLICT_REPLACE);
  ASSERT_THAT(Append(append), IsGrpcOk());
  while (reader->Read(&page)) check_page();
  ASSERT_THAT(reader->Finish(), IsGrpcOk());
  EXPECT_EQ(position, static_cast<std::uint64_t>(kRows));
}

}  // namespace
}  // namespace softlookup::testing
