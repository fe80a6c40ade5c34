#include "core/replicated_log/log_entry_store.h"

#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/replicated_log/entry_batch.h"
#include "core/replicated_log/replica_directory.h"

namespace softlookup {

absl::StatusOr<std::unique_ptr<LogEntryStore>> LogEntryStore::Open(CommitLog& log,
                                                                   OnApplied on_applied) {
  std::unique_ptr<LogEntryStore> store(new LogEntryStore(log, std::move(on_applied)));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::optional<std::string> applied,
                              ReadRecord(log, KeyOfAppliedEntry()));
  if (applied.has_value()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(store->applied_, ParseAppliedEntry(*applied));
  }
  const KeyRange keys = KeysOfEntries();
  SOFTLOOKUP_RETURN_IF_ERROR(log.Scan(
      keys.begin, keys.end, [&](absl::string_view key, absl::string_view value) -> absl::Status {
        SOFTLOOKUP_ASSIGN_OR_RETURN(Entry entry, ParseEntry(key, value));
        store->Note(entry);
        return absl::OkStatus();
      }));
  return store;
}

absl::Status LogEntryStore::Stage(const Entry& entry) {
  const EntryId id{.sequence = entry.sequence, .epoch = entry.epoch};
  const std::unique_ptr<LogBatch> batch = log_.NewBatch();
  batch->Put(KeyOfEntry(id), EncodeEntry(entry));
  if (DeletesRange(entry.bytes)) batch->MakesRoom();
  SOFTLOOKUP_RETURN_IF_ERROR(log_.Commit(*batch, softlookup::Sync::kYes));
  Note(entry);
  return absl::OkStatus();
}

void LogEntryStore::Note(const Entry& entry) {
  StagedEntry& staged = staged_[{.sequence = entry.sequence, .epoch = entry.epoch}];
  staged_bytes_ += entry.bytes.size() - staged.bytes;
  staged = {.digest = entry.digest, .bytes = entry.bytes.size()};
}

std::optional<Entry> LogEntryStore::Staged(std::uint64_t sequence, std::uint64_t epoch) const {
  const EntryId id{.sequence = sequence, .epoch = epoch};
  if (!staged_.contains(id)) return std::nullopt;
  absl::StatusOr<Entry> entry = Read(id);
  return entry.ok() ? std::optional(*std::move(entry)) : std::nullopt;
}

absl::StatusOr<Entry> LogEntryStore::Find(std::uint64_t sequence, const EntryDigest& digest) const {
  for (auto it = staged_.lower_bound({.sequence = sequence, .epoch = 0});
       it != staged_.end() && it->first.sequence == sequence; ++it) {
    if (it->second.digest == digest) return Read(it->first);
  }
  return absl::NotFoundError("no such entry");
}

absl::StatusOr<Entry> LogEntryStore::Read(const EntryId& id) const {
  const std::string key = KeyOfEntry(id);
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::optional<std::string> value, ReadRecord(log_, key));
  if (!value.has_value()) return absl::NotFoundError("no such entry");
  return ParseEntry(key, *value);
}

absl::Status LogEntryStore::Apply(const Entry& entry) {
  SOFTLOOKUP_CHECK(entry.sequence == applied_.sequence + 1 && entry.previous == applied_.digest)
      << "entry " << entry.sequence << " after " << applied_.sequence;
  const std::unique_ptr<LogBatch> batch = log_.NewBatch();
  SOFTLOOKUP_RETURN_IF_ERROR(AddChanges(entry.bytes, *batch));
  const AppliedEntry applied{.sequence = entry.sequence, .digest = entry.digest};
  batch->Put(KeyOfAppliedEntry(), EncodeAppliedEntry(applied));
  SOFTLOOKUP_RETURN_IF_ERROR(log_.Commit(*batch, softlookup::Sync::kNo));
  applied_ = applied;
  on_applied_(entry);
  return absl::OkStatus();
}

absl::Status LogEntryStore::Sync() { return log_.Commit(*log_.NewBatch(), softlookup::Sync::kYes); }

void LogEntryStore::Trim(std::uint64_t sequence) {
  const std::unique_ptr<LogBatch> batch = log_.NewBatch();
  std::size_t left = staged_bytes_;
  auto end = staged_.begin();
  for (; end != staged_.end(); ++end) {
    const bool is_too_much = left > kStagedBytesMax && end->first.sequence <= applied_.sequence;
    if (end->first.sequence >= sequence && !is_too_much) break;
    batch->Delete(KeyOfEntry(end->first));
    left -= end->second.bytes;
  }
  if (end == staged_.begin()) return;
  // After an error they stay until the next call.
  if (!log_.Commit(*batch, softlookup::Sync::kNo).ok()) return;
  staged_.erase(staged_.begin(), end);
  staged_bytes_ = left;
}

}  // namespace softlookup
