#include "core/storage/flush_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "core/storage/background_errors.h"
#include "core/storage/open_database.h"
#include "core/storage/synced_sequence.h"
#include "core/storage/table_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;

// Keeps the first buffer from being written until `go`.
class FlushGate final : public rocksdb::EventListener {
 public:
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    if (!met.HasBeenNotified()) met.Notify();
    go.WaitForNotification();
  }
  absl::Notification met, go;
};

class FlushGuardTest : public ::testing::Test {
 protected:
  FlushGuardTest() {
    rocksdb::Options options = LogOptions(rocksdb::Env::Default(), errors_);
    options.listeners.push_back(gate_);
    auto db = OpenDatabase(options, directory_.path(),
                           SyncedSequence(directory_.path() + "/" + kSyncedName));
    EXPECT_THAT(db, IsOk());
    db_ = *std::move(db);
  }
  rocksdb::Status Put(const std::string& key) {
    rocksdb::WriteBatch batch;
    EXPECT_TRUE(batch.Put(key, "value").ok());
    return flush_guard_.Write(*db_, batch);
  }

  const softlookup::testing::TemporaryDirectory directory_;
  const std::shared_ptr<BackgroundErrors> errors_ = std::make_shared<BackgroundErrors>();
  const std::shared_ptr<FlushGate> gate_ = std::make_shared<FlushGate>();
  std::unique_ptr<rocksdb::DB> db_;
  FlushGuard flush_guard_{errors_};
  std::atomic<bool> cancelled_{false};
};

TEST_F(FlushGuardTest, WritesGoOnDuringAFlush) {
  ASSERT_TRUE(Put("a").ok());
  std::thread flushes([&] { EXPECT_TRUE(flush_guard_.Flush(*db_, cancelled_).ok()); });
  gate_->met.WaitForNotification();
  EXPECT_TRUE(Put("b").ok());
  EXPECT_TRUE(HasFullWriteBuffers(*db_));
  EXPECT_EQ(BytesOfTables(*db_), 0u);
  gate_->go.Notify();
  flushes.join();
  EXPECT_FALSE(HasFullWriteBuffers(*db_));
  EXPECT_GT(BytesOfTables(*db_), 0u);
}

TEST_F(FlushGuardTest, AFlushEndsWhenItIsCancelledOrTheDatabaseFails) {
  ASSERT_TRUE(Put("a").ok());
  std::thread fails([&] { EXPECT_TRUE(flush_guard_.Flush(*db_, cancelled_).IsNoSpace()); });
  gate_->met.WaitForNotification();
  rocksdb::Status full = rocksdb::Status::NoSpace();
  errors_->OnBackgroundError(rocksdb::BackgroundErrorReason::kFlush, &full);
  fails.join();
  EXPECT_TRUE(flush_guard_.Flush(*db_, cancelled_).IsIncomplete()) << "none begins after an error";
  EXPECT_TRUE(flush_guard_.BeginFlush(*db_).IsIncomplete());
  EXPECT_TRUE(flush_guard_.FlushBlockingWrites(*db_).IsIncomplete());
  errors_->Clear();
  std::thread is_cancelled(
      [&] { EXPECT_TRUE(flush_guard_.Flush(*db_, cancelled_).IsIncomplete()); });
  cancelled_ = true;
  is_cancelled.join();
  gate_->go.Notify();
}

TEST_F(FlushGuardTest, WithoutWritesAFlushIsDoneAtOnce) {
  gate_->go.Notify();
  ASSERT_TRUE(Put("a").ok());
  EXPECT_TRUE(flush_guard_.FlushBlockingWrites(*db_).ok());
  EXPECT_FALSE(HasFullWriteBuffers(*db_));
  EXPECT_GT(BytesOfTables(*db_), 0u);
}

}  // namespace
}  // namespace softlookup
