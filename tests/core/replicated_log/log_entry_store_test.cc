#include "core/replicated_log/log_entry_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/replicated_log/entry_batch.h"
#include "core/replicated_log/replica_directory.h"
#include "core/replication/group_records.h"
#include "core/storage/records.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using testing::IsOk;
using testing::StatusIs;

const std::string kKey = KeysOfStore(1).begin + "key";

class LogEntryStoreTest : public ::testing::Test {
 protected:
  LogEntryStoreTest() { Open(); }

  // As a process does that starts on the directory.
  void Open() {
    store_ = nullptr;
    log_ = nullptr;
    absl::StatusOr<std::unique_ptr<CommitLog>> log = OpenCommitLog(directory_.path());
    EXPECT_THAT(log, IsOk());
    log_ = *std::move(log);
    auto store = LogEntryStore::Open(
        *log_, [this](const Entry& entry) { applied_sequences_.push_back(entry.sequence); });
    EXPECT_THAT(store, IsOk());
    store_ = *std::move(store);
  }

  // The entry that puts `value` under kKey, after the applied one.
  Entry EntryWith(const std::string& value, std::uint64_t epoch = 1) const {
    EntryBatch batch;
    batch.Put(kKey, value);
    Entry entry{.epoch = epoch,
                .sequence = store_->applied().sequence + 1,
                .previous = store_->applied().digest,
                .bytes = batch.Take()};
    entry.digest = DigestOf(entry.previous, entry.epoch, entry.bytes);
    return entry;
  }
  void StageAndApply(const std::string& value) {
    const Entry entry = EntryWith(value);
    EXPECT_THAT(store_->Stage(entry), IsOk());
    EXPECT_THAT(store_->Apply(entry), IsOk());
  }
  std::string Value() const {
    const absl::StatusOr<std::optional<std::string>> value = ReadRecord(*log_, kKey);
    EXPECT_THAT(value, IsOk());
    return value->value_or("none");
  }

  const testing::TemporaryDirectory directory_;
  std::unique_ptr<CommitLog> log_;
  std::unique_ptr<LogEntryStore> store_;
  std::vector<std::uint64_t> applied_sequences_;
};

TEST_F(LogEntryStoreTest, AStagedEntryChangesNoRecordAndIsThereAfterAStart) {
  const Entry entry = EntryWith("a", /*epoch=*/3);
  EXPECT_THAT(store_->Stage(entry), IsOk());
  Open();
  EXPECT_EQ(Value(), "none");
  EXPECT_EQ(store_->applied(), AppliedEntry());
  const std::optional<Entry> staged = store_->Staged(1, 3);
  ASSERT_TRUE(staged.has_value());
  EXPECT_EQ(staged->bytes, entry.bytes);
  EXPECT_EQ(staged->previous, "");
  EXPECT_EQ(staged->digest, entry.digest);
  EXPECT_EQ(store_->Staged(1, 2), std::nullopt);
  EXPECT_EQ(store_->Staged(2, 3), std::nullopt);
}

TEST_F(LogEntryStoreTest, EntriesOfOneSequenceAreToldApartByTheirDigests) {
  const Entry early = EntryWith("a", /*epoch=*/1), late = EntryWith("b", /*epoch=*/2);
  EXPECT_THAT(store_->Stage(early), IsOk());
  EXPECT_THAT(store_->Stage(late), IsOk());
  EXPECT_EQ(store_->Find(1, early.digest)->bytes, early.bytes);
  EXPECT_EQ(store_->Find(1, late.digest)->bytes, late.bytes);
  EXPECT_THAT(store_->Find(2, late.digest), StatusIs(absl::StatusCode::kNotFound, ""));
  EXPECT_THAT(store_->Find(1, DigestOf("", 1, "other")), StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST_F(LogEntryStoreTest, AppliedEntriesAreInTheRecordsAlsoAfterAStart) {
  StageAndApply("a");
  StageAndApply("b");
  const AppliedEntry applied = store_->applied();
  EXPECT_EQ(applied.sequence, 2u);
  EXPECT_THAT(applied_sequences_, ElementsAre(1u, 2u));
  EXPECT_THAT(store_->Sync(), IsOk());
  Open();
  EXPECT_EQ(Value(), "b");
  EXPECT_EQ(store_->applied(), applied);
}

TEST_F(LogEntryStoreTest, AnEntryThatCannotBeUnderstoodChangesNothing) {
  Entry entry = EntryWith("a");
  entry.bytes.pop_back();
  EXPECT_THAT(store_->Apply(entry), StatusIs(absl::StatusCode::kDataLoss, "entry"));
  EXPECT_EQ(Value(), "none");
  EXPECT_EQ(store_->applied(), AppliedEntry());
}

TEST_F(LogEntryStoreTest, TrimmedEntriesAreGoneAlsoAfterAStart) {
  StageAndApply("a");
  StageAndApply("b");
  store_->Trim(2);
  const auto expect_trimmed = [&] {
    EXPECT_EQ(store_->Staged(1, 1), std::nullopt);
    EXPECT_TRUE(store_->Staged(2, 1).has_value());
  };
  expect_trimmed();
  Open();
  expect_trimmed();
  EXPECT_EQ(Value(), "b");
}

class ReplicaDirectoryTest : public LogEntryStoreTest {
 protected:
  const ReplicaName name_{.cluster = "c", .group = "g", .node = "n"};
};

TEST_F(ReplicaDirectoryTest, ADirectoryBelongsToTheReplicaThatHasJoinedItsGroup) {
  EXPECT_THAT(ReleaseDirectory(*log_), IsOk());
  EXPECT_FALSE(ClaimDirectory(name_, "nonce", *log_)->has_joined);
  EXPECT_THAT(NoteJoined(name_, *log_), IsOk());
  Open();
  EXPECT_TRUE(ClaimDirectory(name_, "nonce", *log_)->has_joined);
  EXPECT_EQ(store_->applied(), AppliedEntry());
  for (const ReplicaName& other : {ReplicaName{.cluster = "d", .group = "g", .node = "n"},
                                   ReplicaName{.cluster = "c", .group = "h", .node = "n"},
                                   ReplicaName{.cluster = "c", .group = "g", .node = "o"}}) {
    EXPECT_THAT(ClaimDirectory(other, "nonce", *log_),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         "belongs to node n of group g of cluster c"));
  }
  EXPECT_THAT(ReleaseDirectory(*log_), StatusIs(absl::StatusCode::kFailedPrecondition, "--node n"));
}

// Such as after a mistake in a flag.
TEST_F(ReplicaDirectoryTest, AReplicaThatHasNotJoinedGivesItsDirectoryUp) {
  EXPECT_THAT(ClaimDirectory({.cluster = "c", .group = "g", .node = "mistake"}, "nonce", *log_),
              IsOk());
  EXPECT_THAT(ClaimDirectory(name_, "nonce", *log_), IsOk());
  EXPECT_EQ(*ReadRecord(*log_, FormatKey()), EncodeFormatOfReplica());
  EXPECT_THAT(ReleaseDirectory(*log_), IsOk());
  for (const std::string& key : {KeyOfReplica(), KeyOfAppliedEntry()}) {
    EXPECT_EQ(*ReadRecord(*log_, key), std::nullopt);
  }
  EXPECT_EQ(*ReadRecord(*log_, FormatKey()), EncodeFormat());
}

TEST_F(ReplicaDirectoryTest, StoresFromBeforeAreTheFirstEntryWhichNoOtherGroupHas) {
  const std::unique_ptr<LogBatch> batch = log_->NewBatch();
  batch->Put(KeyOfName(1), EncodeName("s"));
  ASSERT_THAT(log_->Commit(*batch, Sync::kYes), IsOk());
  ASSERT_THAT(ClaimDirectory(name_, "nonce", *log_), IsOk());
  Open();
  EXPECT_EQ(store_->applied(), (AppliedEntry{.sequence = 1, .digest = DigestOf("", 0, "nonce")}));
}

}  // namespace
}  // namespace softlookup
