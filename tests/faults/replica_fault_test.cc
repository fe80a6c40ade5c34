// A disk that fails under the entries of a replica. A failure prints SOFTLOOKUP_TEST_SEED=N; with
// that in the environment the run begins with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/replicated_log/entry_batch.h"
#include "core/replicated_log/log_entry_store.h"
#include "core/replicated_log/replica_directory.h"
#include "core/replication/group_records.h"
#include "core/storage/records.h"
#include "core/storage/rocksdb_log.h"
#include "tests/faults/cycles.h"
#include "tests/faults/faulty_env.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using Fault = FaultyFileSystem::Fault;

class ReplicaFaultTest : public ::testing::Test {
 protected:
  ReplicaFaultTest() { Open(); }

  // As a process does that starts on the directory.
  void Open() {
    auto log = OpenRocksdbLog(directory_.path(), RocksdbAccess::kWrite, env_.get());
    ASSERT_THAT(log.status(), IsOk());
    log_ = *std::move(log);
    auto store = LogEntryStore::Open(*log_, [](const Entry&) {});
    ASSERT_THAT(store.status(), IsOk());
    store_ = *std::move(store);
  }
  void Close() {
    store_ = nullptr;
    log_ = nullptr;
  }

  Entry EntryOf(EntryBatch batch) const {
    Entry entry{.epoch = 1,
                .sequence = store_->applied().sequence + 1,
                .previous = store_->applied().digest,
                .bytes = batch.Take()};
    entry.digest = DigestOf(entry.previous, entry.epoch, entry.bytes);
    return entry;
  }
  // The next entry, which puts its own sequence under kKey.
  Entry NextPut() const {
    EntryBatch batch;
    batch.Put(kKey, absl::StrCat(store_->applied().sequence + 1));
    return EntryOf(std::move(batch));
  }
  std::string Value() const { return ReadRecord(*log_, kKey)->value_or("0"); }

  const std::string kKey = KeysOfStore(1).begin + "key";
  const TemporaryDirectory directory_;
  const std::shared_ptr<FaultyFileSystem> files_ = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> env_ = MakeEnv(files_);
  std::unique_ptr<CommitLog> log_;
  std::unique_ptr<LogEntryStore> store_;
};

TEST_F(ReplicaFaultTest, APowerCutTakesNoStagedEntryAndNoneThatWasAppliedBeforeIt) {
  const int cycles = Cycles(40, 400);
  std::mt19937_64 random;
  for (int cycle = 0; cycle < cycles && !HasFailure(); ++cycle) {
    SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle));
    random.seed(FirstSeed() + cycle);
    files_->FailAt(Fault::kPowerCut, 1 + static_cast<std::int64_t>(random() % 20), /*stays=*/true);
    std::optional<Entry> staged;
    while (true) {
      Entry next = NextPut();
      if (!store_->Stage(next).ok()) break;
      staged = std::move(next);
      if (!store_->Apply(*staged).ok()) break;
    }
    Close();
    files_->LosePower(random);
    files_->Heal();
    Open();
    const std::uint64_t applied = store_->applied().sequence;
    EXPECT_EQ(Value(), absl::StrCat(applied));
    if (!staged.has_value()) continue;
    EXPECT_GE(applied + 1, staged->sequence);
    const auto found = store_->Find(staged->sequence, staged->digest);
    ASSERT_THAT(found.status(), IsOk());
    EXPECT_EQ(found->bytes, staged->bytes);
    if (applied < staged->sequence) {
      EXPECT_THAT(store_->Apply(*found), IsOk());
    }
  }
  EXPECT_GT(store_->applied().sequence, static_cast<std::uint64_t>(cycles));
}

TEST_F(ReplicaFaultTest, OnAFullDiskOnlyEntriesThatDeleteRangesAreStaged) {
  const Entry first = NextPut();
  EXPECT_THAT(store_->Stage(first), IsOk());
  EXPECT_THAT(store_->Apply(first), IsOk());
  files_->FailAt(Fault::kDiskFull, 1, /*stays=*/true);
  EXPECT_THAT(store_->Stage(NextPut()), StatusIs(absl::StatusCode::kUnavailable, "full"));
  // Writes that take some kilobytes have room now, as after the release of the reserve.
  files_->Heal();
  files_->SetFreeBytes(85'000'000);
  EXPECT_THAT(store_->Stage(NextPut()), StatusIs(absl::StatusCode::kUnavailable, "full"));
  EntryBatch deletion;
  deletion.DeleteRange(KeysOfStore(1).begin, KeysOfStore(1).end);
  const Entry second = EntryOf(std::move(deletion));
  EXPECT_THAT(store_->Stage(second), IsOk());
  EXPECT_THAT(store_->Apply(second), IsOk());
  EXPECT_EQ(Value(), "0");
  EXPECT_THAT(store_->Stage(NextPut()), StatusIs(absl::StatusCode::kUnavailable, "full"));
  files_->SetFreeBytes(std::nullopt);
  const Entry third = NextPut();
  EXPECT_THAT(store_->Stage(third), IsOk());
  EXPECT_THAT(store_->Apply(third), IsOk());
  EXPECT_EQ(Value(), "3");
}

}  // namespace
}  // namespace softlookup::testing
