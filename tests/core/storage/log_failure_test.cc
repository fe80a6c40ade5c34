#include "core/storage/log_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace softlookup {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const absl::Status kNoRoom = absl::UnavailableError("no room");

TEST(LogFailureTest, ThereIsNoneBeforeTheFirstError) {
  const LogFailure failure;
  EXPECT_TRUE(failure.is_none());
  EXPECT_FALSE(failure.is_full_disk());
}

TEST(LogFailureTest, AFullDiskPassesOnceTheLogIsOpenedAgain) {
  LogFailure failure;
  for (int i = 0; i < 2; ++i) {
    failure.OnError(rocksdb::Status::NoSpace("a write"));
    EXPECT_FALSE(failure.is_none());
    EXPECT_TRUE(failure.is_full_disk());
    EXPECT_EQ(ReasonOf(failure.status()), "STORAGE_FAILED");
    EXPECT_THAT(failure.status().message(), HasSubstr("is full"));
    EXPECT_TRUE(RetryAfterOf(failure.status()).has_value());
    failure.OnReopened(kNoRoom, 7);
    EXPECT_TRUE(failure.is_full_disk());
    failure.OnReopened(7, 7);
    EXPECT_TRUE(failure.is_none());
    EXPECT_FALSE(failure.is_full_disk());
  }
}

TEST(LogFailureTest, AFullDiskSaysHowMuchRoomThereIsAndHowMuchIsNeeded) {
  LogFailure failure;
  failure.OnError(rocksdb::Status::NoSpace("a write"));
  failure.OnTooLittleRoom({.free_bytes = 85'999'999, .needed_bytes = 138'412'032});
  EXPECT_TRUE(failure.is_full_disk());
  EXPECT_EQ(ReasonOf(failure.status()), "STORAGE_FAILED");
  EXPECT_THAT(failure.status().message(), HasSubstr("is full: 85 MB are free, and 139 MB are"));
  // A backup on the same disk shares the tables of the stores, so that deleting these frees
  // nothing.
  EXPECT_THAT(failure.status().message(), HasSubstr("remove old backups, then delete stores, or"));
  EXPECT_THAT(failure.status().message(), Not(HasSubstr("deleted stores are freed")));
  EXPECT_TRUE(RetryAfterOf(failure.status()).has_value());
  failure.OnTooLittleRoom({.free_bytes = 60'000'000,
                           .needed_bytes = 138'412'032,
                           .deleted_bytes = 153'000'000,
                           .needed_to_reclaim_bytes = 76'500'000});
  EXPECT_THAT(failure.status().message(),
              HasSubstr("again; some 153 MB of deleted stores are freed once some 77 MB are free; "
                        "remove old backups"));
  failure.OnTooLittleRoom({.free_bytes = 200'000'000,
                           .needed_bytes = 138'412'032,
                           .deleted_bytes = 153'000'000,
                           .needed_to_reclaim_bytes = 76'500'000});
  EXPECT_THAT(failure.status().message(),
              HasSubstr("again; some 153 MB of deleted stores are freed first; "));
  failure.OnError(rocksdb::Status::IOError("another write"));
  EXPECT_FALSE(failure.is_full_disk());
  EXPECT_FALSE(failure.is_none());
}

TEST(LogFailureTest, ALogThatIsOpenedWithOtherChangesTakesNoMore) {
  for (const std::uint64_t found : {6, 8}) {
    LogFailure failure;
    failure.OnError(rocksdb::Status::NoSpace());
    failure.OnReopened(found, 7);
    EXPECT_FALSE(failure.is_none());
    EXPECT_FALSE(failure.is_full_disk());
    EXPECT_EQ(ReasonOf(failure.status()), "STORAGE_FAILED");
    EXPECT_EQ(RetryAfterOf(failure.status()), std::nullopt);
    EXPECT_THAT(failure.status().message(),
                HasSubstr(found < 7 ? "what had been written is gone" : "was written"));
  }
}

TEST(LogFailureTest, ALogThatIsFoundDamagedWhenItIsOpenedAgainTakesNoMore) {
  LogFailure failure;
  failure.OnError(rocksdb::Status::NoSpace());
  failure.OnReopened(absl::DataLossError("torn"), 7);
  EXPECT_FALSE(failure.is_full_disk());
  EXPECT_FALSE(failure.is_none());
  EXPECT_THAT(failure.status().message(), HasSubstr("torn"));
}

TEST(LogFailureTest, ClientsAreNotToldWhereTheDataDirectoryIs) {
  const rocksdb::Status errors[] = {
      rocksdb::Status::IOError("While fsync: /srv/data/000003.log", "EIO"),
      rocksdb::Status::Corruption("bad block in /srv/data/000003.log"),
      rocksdb::Status::NoSpace("While append: /srv/data/000003.log")};
  for (const rocksdb::Status& error : errors) {
    LogFailure failure;
    failure.OnError(error);
    EXPECT_THAT(std::string(failure.status().message()), HasSubstr("000003.log"));
    EXPECT_THAT(std::string(failure.status().message()), Not(HasSubstr("/srv")));
  }
  LogFailure failure;
  failure.OnError(rocksdb::Status::NoSpace());
  failure.OnReopened(absl::DataLossError("/srv/data has no file CURRENT"), 7);
  EXPECT_THAT(std::string(failure.status().message()), Not(HasSubstr("/srv")));
}

TEST(LogFailureTest, OtherErrorsDoNotPass) {
  LogFailure damaged, failed;
  damaged.OnError(rocksdb::Status::Corruption("a block"));
  failed.OnError(rocksdb::Status::IOError("a sync"));
  EXPECT_EQ(ReasonOf(damaged.status()), "DATA_LOSS");
  EXPECT_THAT(damaged.status().message(), HasSubstr("takes no more writes"));
  EXPECT_EQ(ReasonOf(failed.status()), "STORAGE_FAILED");
  EXPECT_THAT(failed.status().message(), HasSubstr("until the server is started again"));
  for (const LogFailure* failure : {&damaged, &failed}) {
    EXPECT_FALSE(failure->is_none());
    EXPECT_FALSE(failure->is_full_disk());
    EXPECT_EQ(RetryAfterOf(failure->status()), std::nullopt);
  }
}

}  // namespace
}  // namespace softlookup
