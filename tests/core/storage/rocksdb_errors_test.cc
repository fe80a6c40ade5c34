#include "core/storage/rocksdb_errors.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::StatusIs;

TEST(RocksdbErrorsTest, DamageNamesTheFileWithoutItsDirectory) {
  const absl::Status status = ReadError(rocksdb::Status::Corruption(
      "block checksum mismatch: stored = 1, computed = 2 in /var/lib/stores/000012.sst offset 7"));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, "computed = 2 in 000012.sst offset 7"));
}

TEST(RocksdbErrorsTest, AFailedReadNamesTheFileWithoutItsDirectory) {
  const absl::Status status = ReadError(
      rocksdb::Status::IOError("While open a file for random read: /srv/a/000012.sst", "EIO"));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, "random read: 000012.sst"));
}

TEST(RocksdbErrorsTest, AFullDiskMayBeTriedAgain) {
  EXPECT_TRUE(IsFullDiskError(FullDiskError("no room", rocksdb::Status::NoSpace())));
  EXPECT_FALSE(IsFullDiskError(UnavailableError("no answer", rocksdb::Status::IOError())));
}

}  // namespace
}  // namespace softlookup
