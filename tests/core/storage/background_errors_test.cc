#include "core/storage/background_errors.h"

#include <gtest/gtest.h>

namespace softlookup {
namespace {

using BackgroundReason = rocksdb::BackgroundErrorReason;

TEST(BackgroundErrorsTest, TheFirstErrorIsKeptUntilItIsCleared) {
  BackgroundErrors errors;
  EXPECT_TRUE(errors.first().ok());
  rocksdb::Status full = rocksdb::Status::NoSpace(), damaged = rocksdb::Status::Corruption();
  errors.OnBackgroundError(BackgroundReason::kFlush, &full);
  errors.OnBackgroundError(BackgroundReason::kCompaction, &damaged);
  EXPECT_TRUE(errors.first().IsNoSpace());
  EXPECT_TRUE(errors.has(BackgroundReason::kFlush));
  EXPECT_TRUE(errors.has(BackgroundReason::kCompaction));
  EXPECT_FALSE(errors.has(BackgroundReason::kWriteCallback));
  errors.Clear();
  EXPECT_TRUE(errors.first().ok());
  errors.OnBackgroundError(BackgroundReason::kCompaction, &damaged);
  EXPECT_TRUE(errors.first().IsCorruption());
  EXPECT_FALSE(errors.has(BackgroundReason::kFlush));
}

TEST(BackgroundErrorsTest, RocksdbDoesNotRecoverByItself) {
  BackgroundErrors errors;
  bool auto_recovery = true;
  errors.OnErrorRecoveryBegin(BackgroundReason::kFlush, rocksdb::Status::NoSpace(), &auto_recovery);
  EXPECT_FALSE(auto_recovery);
}

}  // namespace
}  // namespace softlookup
