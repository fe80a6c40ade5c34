// Stores that are taken from a copy of an engine's directory: they are what they were, bit for bit,
// also when the directory is opened again.
#include "core/engine/store_restorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"
#include "softlookup/engine.h"
#include "tests/core/engine/compaction_checks.h"
#include "tests/core/engine/restore_fixture.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::CompactNow;
using ::softlookup::testing::ExpectSameAnswers;
using ::softlookup::testing::ExpectSameRows;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::kWideRows;
using ::softlookup::testing::LookupAndWait;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::RestoreStoreTest;
using ::softlookup::testing::RowsOf;
using ::softlookup::testing::RowsTo;
using ::softlookup::testing::StatusIs;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

// What must be the same of the stores `a` and `b`, but for their names.
void ExpectSameStores(Engine& engine, const std::string& a, const std::string& b) {
  const StoreInfo first = *engine.GetStore(a), second = *engine.GetStore(b);
  EXPECT_EQ(second.config.name, b);
  EXPECT_EQ(second.config.storage_type, first.config.storage_type);
  EXPECT_EQ(second.config.temperature, first.config.temperature);
  EXPECT_EQ(second.config.labels, first.config.labels);
  EXPECT_EQ(second.config.memories.size(), first.config.memories.size());
  EXPECT_EQ(second.revision, first.revision);
  EXPECT_EQ(second.row_count, first.row_count);
  EXPECT_EQ(second.live_row_count, first.live_row_count);
  EXPECT_EQ(second.create_time, first.create_time);
  ASSERT_NO_FATAL_FAILURE(ExpectSameRows(RowsOf(engine, b), RowsOf(engine, a)));

  const std::vector<float> queries = NormalFloats(3 * first.config.key_dim, 5);
  for (const Source source : {Source::kRows, Source::kRowsAndMemory}) {
    for (const RowFilter& filter :
         {RowFilter{}, RowFilter{.last = 700}, RowFilter{.any_labels = {"1"}}}) {
      if (source != Source::kRows && !filter.empty()) continue;
      LookupRequest request{
          .queries = {.data = queries.data(), .rows = 3, .cols = first.config.key_dim},
          .options = {.weights = WeightsMode::kTop, .top_weights = 30},
          .filter = filter,
          .source = source};
      request.store = a;
      const auto expected = LookupAndWait(engine, request);
      request.store = b;
      const auto actual = LookupAndWait(engine, request);
      ASSERT_EQ(actual.status(), expected.status());
      if (expected.ok()) {
        ASSERT_NO_FATAL_FAILURE(ExpectSameAnswers(*actual, *expected));
      }
    }
  }
  for (const char* memory : {"average", "decayed"}) {
    for (std::uint64_t end = 0; end <= first.row_count; end += 97) {
      const auto expected = engine.GetMemory(a, memory, std::nullopt, end);
      const auto actual = engine.GetMemory(b, memory, std::nullopt, end);
      ASSERT_EQ(ReasonOf(actual.status()), ReasonOf(expected.status())) << end;
      if (!expected.ok()) continue;
      ASSERT_EQ(actual->memory.key, expected->memory.key) << end;
      ASSERT_EQ(actual->memory.value, expected->memory.value) << end;
      ASSERT_EQ(actual->memory.weight, expected->memory.weight) << end;
      ASSERT_NE(actual->incarnation, expected->incarnation);
    }
  }
  const auto expected = engine.GetWriter(a, "writer"), actual = engine.GetWriter(b, "writer");
  ASSERT_THAT(expected, IsOk());
  ASSERT_THAT(actual, IsOk());
  EXPECT_EQ(actual->last_sequence, expected->last_sequence);
  EXPECT_EQ(actual->last_position, expected->last_position);
}

class RestoreEachTypeTest : public RestoreStoreTest,
                            public ::testing::WithParamInterface<StorageType> {
 protected:
  static constexpr std::int64_t kDim = 4;
  static constexpr std::uint64_t kBlockRows = 1024;  // Of rows as small as these.

  // Appends rows whose ids go on from `first_id`, as the append `sequence` of a writer.
  absl::Status Append(const std::string& store, std::uint64_t first_id, std::int64_t count,
                      std::uint64_t sequence) {
    const std::vector<float> keys = NormalFloats(count * kDim, first_id + 1);
    const std::vector<float> values = NormalFloats(count * kDim, first_id + 2);
    std::vector<std::uint64_t> ids;
    std::vector<std::vector<std::string>> labels;
    for (std::int64_t row = 0; row < count; ++row) {
      ids.push_back(first_id + static_cast<std::uint64_t>(row));
      labels.push_back({absl::StrCat(row % 3), "row"});
    }
    AppendRequest request = RowsTo(store, keys, values, count);
    request.ids = ids;
    request.row_labels = labels;
    request.on_conflict = OnConflict::kReplace;
    request.writer = "writer";
    request.sequence = sequence;
    return AppendAndWait(*engine_, request).status();
  }
};

TEST_P(RestoreEachTypeTest, AStoreIsWhatItWasAndGoesOnAsItWould) {
  ASSERT_THAT(
      engine_->CreateStore(
          {.name = "s",
           .key_dim = kDim,
           .value_dim = kDim,
           .num_heads = 2,
           .temperature = 0.5,
           .storage_type = GetParam(),
           .memories = {{.name = "decayed", .kind = MemoryKind::kDecayedAverage, .decay = 0.9}},
           .labels = {{"of", "the store"}}}),
      IsOk());
  ASSERT_THAT(Append("s", 0, 2500, 1), IsOk());
  ASSERT_THAT(Append("s", 20'000, 9000, 5), IsOk());  // Their record is split.
  ASSERT_THAT(Append("s", 2500, 1500, 7), IsOk());
  // Without ids or labels, and of no writer.
  const std::vector<float> plain = NormalFloats(30 * kDim, 9);
  ASSERT_THAT(AppendAndWait(*engine_, RowsTo("s", plain, plain, 30)), IsOk());
  ASSERT_THAT(engine_->DeleteRows("s", {.begin = 30, .end = kBlockRows + 5}), IsOk());
  ASSERT_THAT(CompactNow(*engine_), IsOk());
  ASSERT_THAT(Append("s", 2000, 300, 8), IsOk());  // Replaces rows.
  ASSERT_THAT(engine_->DeleteRows("s", {.begin = 3 * kBlockRows, .end = 3 * kBlockRows + 50}),
              IsOk());
  Copy();
  const auto restored = Restore("s", "t");
  ASSERT_THAT(restored, IsOk());
  EXPECT_EQ(restored->config.name, "t");
  EXPECT_EQ(restored->revision, engine_->GetStore("s")->revision);
  for (int start = 0; start < 2; ++start) {
    SCOPED_TRACE(start == 0 ? "restored" : "opened again");
    EXPECT_EQ(engine_->GetStore("t")->byte_size, restored->byte_size);
    ASSERT_NO_FATAL_FAILURE(ExpectSameStores(*engine_, "s", "t"));
    Open();
  }
  // A copy of what was restored is as good as the first.
  Copy();
  ASSERT_THAT(Restore("t", "u"), IsOk());
  ASSERT_NO_FATAL_FAILURE(ExpectSameStores(*engine_, "s", "u"));
  for (const char* store : {"s", "t", "u"}) {
    EXPECT_TRUE(Append(store, 0, 5, 8).ok()) << "a duplicate";
    ASSERT_THAT(Append(store, 10'000, 2000, 9), IsOk());
    ASSERT_THAT(engine_->DeleteRows(store, {.begin = 4200, .end = 4300}), IsOk());
    ASSERT_THAT(CompactNow(*engine_, store), IsOk());
  }
  for (int start = 0; start < 2; ++start) {
    SCOPED_TRACE(start == 0 ? "went on" : "opened again");
    ASSERT_NO_FATAL_FAILURE(ExpectSameStores(*engine_, "s", "t"));
    ASSERT_NO_FATAL_FAILURE(ExpectSameStores(*engine_, "s", "u"));
    Open();
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RestoreEachTypeTest,
                         ::testing::Values(StorageType::kFloat32, StorageType::kBfloat16,
                                           StorageType::kInt8));

TEST_F(RestoreStoreTest, AnOldStateComesBackBesideTheNewOneOrInItsPlace) {
  FillWide();
  Copy();
  const std::vector<Row> rows = RowsOf(*engine_, "s");
  ASSERT_THAT(engine_->DeleteRows("s", {.begin = 0}), IsOk());
  EXPECT_THAT(Restore("s", ""), StatusIs(absl::StatusCode::kAlreadyExists, "\"s\""));
  ASSERT_THAT(Restore("s", "old"), IsOk());
  ExpectSameRows(RowsOf(*engine_, "old"), rows);
  EXPECT_THAT(RowsOf(*engine_, "s"), IsEmpty());
  ASSERT_THAT(engine_->RenameStore({.name = "old", .new_name = "s", .replace = true}), IsOk());
  ASSERT_THAT(engine_->DeleteStore("s"), IsOk());
  ASSERT_THAT(Restore("s", ""), IsOk());
  ExpectSameRows(RowsOf(*engine_, "s"), rows);
  EXPECT_EQ(static_cast<std::uint64_t>(engine_->stats().store_bytes),
            engine_->GetStore("s")->byte_size);
  EXPECT_EQ(engine_->stats().rows, kWideRows);
}

TEST_F(RestoreStoreTest, TheCopyIsNotChanged) {
  FillWide();
  Copy();
  const auto files = [&] {
    std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> found;
    for (const auto& file : fs::directory_iterator(Path("copy"))) {
      found[file.path().filename().string()] = {file.file_size(), file.last_write_time()};
    }
    return found;
  };
  const auto before = files();
  ASSERT_THAT(Restore("s", "t"), IsOk());
  EXPECT_EQ(Restore("none", "u").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(files(), before);
}

TEST_F(RestoreStoreTest, AnEngineWithoutADirectoryTakesAStore) {
  FillWide();
  Copy();
  const std::vector<Row> rows = RowsOf(*engine_, "s");
  const std::unique_ptr<Engine> other = Engine::Create({});
  ASSERT_THAT(other->RestoreStore({.directory = Path("copy"), .store = "s"}, CancelToken()),
              IsOk());
  ExpectSameRows(RowsOf(*other, "s"), rows);
}

TEST_F(RestoreStoreTest, WrongNamesAndDirectoriesAreRefused) {
  FillWide();
  ASSERT_THAT(engine_->CreateStore({.name = "other", .key_dim = 1, .value_dim = 1}), IsOk());
  Copy();
  ASSERT_THAT(engine_->DeleteStore("other"), IsOk());
  const absl::Status none = Restore("none", "t").status();
  EXPECT_EQ(ReasonOf(none), "STORE_NOT_FOUND");
  EXPECT_THAT(none,
              StatusIs(absl::StatusCode::kNotFound, "\"none\" in the backup, which has other, s"));
  EXPECT_EQ(ReasonOf(Restore("", "t").status()), "INVALID_NAME");
  EXPECT_THAT(Restore("..", "t"), StatusIs(absl::StatusCode::kInvalidArgument, "store"));
  EXPECT_THAT(Restore("s", "../t"), StatusIs(absl::StatusCode::kInvalidArgument, "name"));
  EXPECT_EQ(ReasonOf(Restore("s", "s").status()), "STORE_EXISTS");
  fs::remove_all(Path("copy"));
  EXPECT_EQ(ReasonOf(Restore("s", "t").status()), "STORAGE_FAILED");
  ASSERT_THAT(engine_->CopyTo(Path("copy")), IsOk());
  ExpectNothingIsLeft();
}

TEST_F(RestoreStoreTest, AStoreWhoseNameIsLostIsFoundByItsConfiguration) {
  FillWide();
  Copy();
  {
    const auto log = OpenCommitLog(Path("copy"));
    ASSERT_THAT(log, IsOk());
    const auto batch = (*log)->NewBatch();
    batch->Delete(KeyOfName(NumberOf("s")));
    ASSERT_THAT((*log)->Commit(*batch, Sync::kYes), IsOk());
  }
  ASSERT_THAT(Restore("s", "t"), IsOk());
  ExpectSameRows(RowsOf(*engine_, "t"), RowsOf(*engine_, "s"));
}

TEST_F(RestoreStoreTest, ADamagedStoreIsRefused) {
  FillWide();
  Copy();
  {
    const auto log = OpenCommitLog(Path("copy"));
    ASSERT_THAT(log, IsOk());
    const auto batch = (*log)->NewBatch();
    batch->Delete(EncodeKey({.store = NumberOf("s"), .kind = RecordKind::kRows, .number = 500}));
    ASSERT_THAT((*log)->Commit(*batch, Sync::kYes), IsOk());
  }
  const absl::Status damaged = Restore("s", "t").status();
  EXPECT_THAT(damaged,
              StatusIs(absl::StatusCode::kDataLoss,
                       "\"s\" of the backup is damaged: rows are missing at position 500"));
  EXPECT_EQ(ReasonOf(damaged), "DATA_LOSS");
  Copy();
  ExpectNothingIsLeft();
}

}  // namespace
}  // namespace softlookup
