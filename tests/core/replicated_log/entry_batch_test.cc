#include "core/replicated_log/entry_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/storage/records.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Notes the changes that it is given.
class NotingBatch final : public LogBatch {
 public:
  void Put(absl::string_view key, absl::string_view value) override { Note("put", key, value); }
  void Delete(absl::string_view key) override { Note("delete", key, ""); }
  void DeleteRange(absl::string_view begin, absl::string_view end) override {
    Note("delete range", begin, end);
  }
  void FreeDiskOf(absl::string_view begin, absl::string_view end) override {
    Note("free", begin, end);
  }

  std::vector<std::string> changes;

 private:
  void Note(absl::string_view change, absl::string_view first, absl::string_view second) {
    changes.push_back(absl::StrCat(change, " ", first, ",", second));
  }
};

std::string EntryOf(const std::string& key) {
  EntryBatch batch;
  batch.Put(key, "value");
  return batch.Take();
}

TEST(EntryBatchTest, AnEntryHasAllChangesInTheirOrder) {
  EntryBatch batch;
  EXPECT_TRUE(batch.empty());
  batch.Put("store a", "1");
  batch.Delete("store b");
  batch.DeleteRange("store c", "store d");
  batch.FreeDiskOf("store e", "store f");
  batch.Put("store a", "");
  EXPECT_FALSE(batch.empty());
  NotingBatch noted;
  EXPECT_THAT(AddChanges(batch.Take(), noted), IsOk());
  EXPECT_THAT(noted.changes,
              ElementsAre("put store a,1", "delete store b,", "delete range store c,store d",
                          "free store e,store f", "put store a,"));
}

TEST(EntryBatchTest, AnEntryThatWasCutOffIsRefused) {
  EntryBatch batch;
  batch.Put("store a", "1");
  batch.DeleteRange("store c", "store d");
  const std::string entry = batch.Take();
  EntryBatch first;
  first.Put("store a", "1");
  const std::size_t first_end = first.Take().size();
  for (std::size_t size = 0; size < entry.size(); ++size) {
    if (size == 1 || size == first_end) continue;  // Between two changes.
    NotingBatch noted;
    EXPECT_THAT(AddChanges(entry.substr(0, size), noted), StatusIs(absl::StatusCode::kDataLoss, ""))
        << size;
  }
}

TEST(EntryBatchTest, AnEntryOfALaterVersionIsRefused) {
  std::string entry = EntryOf("store a");
  entry[0] = 2;
  NotingBatch noted;
  EXPECT_THAT(AddChanges(entry, noted), StatusIs(absl::StatusCode::kDataLoss, ""));
  EXPECT_THAT(noted.changes, IsEmpty());
}

TEST(EntryBatchTest, AChangeOfAnUnknownKindIsRefused) {
  std::string entry = EntryOf("store a");
  entry[1] = 5;
  NotingBatch noted;
  EXPECT_THAT(AddChanges(entry, noted), StatusIs(absl::StatusCode::kDataLoss, ""));
}

TEST(EntryBatchTest, AnEntryChangesNothingThatAReplicaKeepsForItself) {
  for (const std::string& key :
       {KeyOfReplica(), KeyOfAppliedEntry(), KeyOfEntry({.sequence = 1, .epoch = 2})}) {
    NotingBatch noted;
    EXPECT_THAT(AddChanges(EntryOf(key), noted), StatusIs(absl::StatusCode::kDataLoss, ""));
    EntryBatch deletion;
    deletion.Delete(key);
    EXPECT_THAT(AddChanges(deletion.Take(), noted), StatusIs(absl::StatusCode::kDataLoss, ""));
    EntryBatch range;
    range.DeleteRange("", key + '\0');
    EXPECT_THAT(AddChanges(range.Take(), noted), StatusIs(absl::StatusCode::kDataLoss, ""));
    EXPECT_THAT(noted.changes, IsEmpty());
  }
  EntryBatch near;
  near.DeleteRange("", KeyOfReplica());
  near.Put(KeysOfStore(1).begin, "value");
  near.Put(KeyOfName(1), "value");
  NotingBatch noted;
  EXPECT_THAT(AddChanges(near.Take(), noted), IsOk());
  EXPECT_EQ(noted.changes.size(), 3u);
}

}  // namespace
}  // namespace softlookup
