#ifndef SOFTLOOKUP_TESTS_CORE_ENGINE_LOGGED_STORE_H_
#define SOFTLOOKUP_TESTS_CORE_ENGINE_LOGGED_STORE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/load_stores.h"
#include "core/engine/put_records.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"
#include "core/store/block_shape.h"
#include "core/store/store_editor.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {

// The editor of one store, whose writes go to a log on disk as the engine puts them there.
class LoggedStore {
 public:
  static constexpr std::uint64_t kNumber = 1;

  explicit LoggedStore(StoreConfig config) : editor_(std::move(config)) {
    auto log = OpenCommitLog(directory_.path() + "/log");
    EXPECT_THAT(log, IsOk());
    if (log.ok()) log_ = *std::move(log);
    Commit([&](LogBatch& batch) {
      PutNewStore(kNumber, *editor_.newest(), absl::UnixEpoch(), batch);
    });
  }

  StoreEditor& editor() { return editor_; }
  const Snapshot& newest() const { return *editor_.newest(); }

  void Append(const RowBatch& rows) {
    const auto outcome = editor_.Append(rows);
    ASSERT_THAT(outcome, IsOk());
    Commit([&](LogBatch& batch) { PutAppend(kNumber, *outcome, rows, nullptr, batch); });
  }
  void Delete(const RowFilter& filter) {
    const auto outcome = editor_.Delete(filter);
    ASSERT_THAT(outcome, IsOk());
    Commit([&](LogBatch& batch) { PutDeletion(kNumber, *outcome, batch); });
  }
  // Compacts the blocks [begin, end), of which only those count that are full. Returns the blocks
  // that lost rows.
  std::vector<std::int64_t> Compact(std::int64_t begin, std::int64_t end) {
    const std::int64_t full = newest().stored_blocks().row_count() / block_rows();
    end = std::min(end, full);
    if (begin >= end) return {};
    const std::vector<RowSpan> spans = SpansOf(begin, end);
    const CompactOutcome outcome = editor_.Compact(begin, end);
    if (outcome.compacted_blocks.empty()) return {};
    Commit([&](LogBatch& batch) { PutCompaction(kNumber, outcome, begin, end, spans, batch); });
    return outcome.compacted_blocks;
  }

  // The store as it is loaded from the log.
  LoadedStore Load() const {
    return LoadStore({.store = kNumber, .name = editor_.newest()->config().name}, *log_, nullptr);
  }

  // The log's records of one kind, by their number.
  std::map<std::uint64_t, std::string> Records(RecordKind kind) const {
    std::map<std::uint64_t, std::string> records;
    const KeyRange keys = KeysOfStore(kNumber);
    EXPECT_THAT(log_->Scan(keys.begin, keys.end,
                           [&](absl::string_view key, absl::string_view value) {
                             const auto parsed = ParseKey(key);
                             if (parsed.ok() && parsed->kind == kind) {
                               records[parsed->number] = std::string(value);
                             }
                             return parsed.status();
                           }),
                IsOk());
    return records;
  }
  // Replaces a record of the log, or deletes it if `value` is null.
  void SetRecord(RecordKind kind, std::uint64_t number, const std::string* value) {
    Commit([&](LogBatch& batch) {
      const std::string key = EncodeKey({.store = kNumber, .kind = kind, .number = number});
      if (value == nullptr) {
        batch.Delete(key);
      } else {
        batch.Put(key, *value);
      }
    });
  }

  std::int64_t block_rows() const { return newest().stored_blocks().block_rows(); }
  std::int64_t row_bytes() const { return newest().stored_blocks().shape().row_bytes(); }

 private:
  template <typename Put>
  void Commit(const Put& put) {
    const std::unique_ptr<LogBatch> batch = log_->NewBatch();
    put(*batch);
    EXPECT_THAT(log_->Commit(*batch, Sync::kNo), IsOk());
    editor_.Commit();
  }

  // The records that have a row of the blocks [begin, end).
  std::vector<RowSpan> SpansOf(std::int64_t begin, std::int64_t end) const {
    const auto rows = static_cast<std::uint64_t>(block_rows());
    std::vector<RowSpan> spans;
    for (const auto& [position, value] : Records(RecordKind::kRows)) {
      const auto record = ParseRows(value, row_bytes());
      EXPECT_THAT(record, IsOk());
      const bool is_compacted =
          newest().stored_blocks().IsCompacted(static_cast<std::int64_t>(position / rows));
      const RowSpan span{.first_position = position,
                         .row_count = is_compacted ? rows : record->row_count};
      if (span.first_position < static_cast<std::uint64_t>(end) * rows &&
          span.end() > static_cast<std::uint64_t>(begin) * rows) {
        spans.push_back(span);
      }
    }
    return spans;
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<CommitLog> log_;
  StoreEditor editor_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_ENGINE_LOGGED_STORE_H_
