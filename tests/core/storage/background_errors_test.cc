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
  errors.Clear();
  EXPECT_TRUE(errors.first().ok());
  errors.OnBackgroundError(BackgroundReason::kCompaction, &damaged);
  EXPECT_TRUE(errors.first().IsCorruption());
}

TEST(BackgroundErrorsTest, RocksdbDoesNotRecoverByItself) {
  BackgroundErrors errors;
  bool auto_recovery = true;
  errors.OnErrorRecoveryBegin(BackgroundReason::kFlush, rocksdb::Status::NoSpace(), &auto_recovery);
  EXPECT_FALSE(auto_recovery);
}

}  // namespace
}  // namespace softlookup
