#ifndef SOFTLOOKUP_CORE_REPLICATED_LOG_LOG_ENTRY_STORE_H_
#define SOFTLOOKUP_CORE_REPLICATED_LOG_LOG_ENTRY_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/replication/entry_store.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"

namespace softlookup {

// Keeps the entries of a replica beside its records, in one log. So a sync of an entry also syncs
// the records of all entries that were applied before.
class LogEntryStore final : public EntryStore {
 public:
  // Called with each entry that was applied.
  using OnApplied = absl::AnyInvocable<void(const Entry&)>;

  // Reads which entries `log` has. `log` must outlive the store, and nothing else may commit to it.
  static absl::StatusOr<std::unique_ptr<LogEntryStore>> Open(CommitLog& log, OnApplied on_applied);

  // Sets is_ready().
  void set_ready(bool ready) { is_ready_ = ready; }

  absl::Status Stage(const Entry& entry) override;
  std::optional<Entry> Staged(std::uint64_t sequence, std::uint64_t epoch) const override;
  absl::StatusOr<Entry> Find(std::uint64_t sequence, const EntryDigest& digest) const override;
  bool is_ready() const override { return is_ready_; }
  absl::Status Apply(const Entry& entry) override;
  absl::Status Sync() override;
  void Trim(std::uint64_t sequence) override;
  AppliedEntry applied() const override { return applied_; }

 private:
  LogEntryStore(CommitLog& log, OnApplied on_applied)
      : log_(log), on_applied_(std::move(on_applied)) {}

  void Note(const Entry& entry);
  // Returns the entry with its bytes. The errors are those of CommitLog::Scan(), and NOT_FOUND.
  absl::StatusOr<Entry> Read(const EntryId& id) const;

  CommitLog& log_;
  OnApplied on_applied_;
  AppliedEntry applied_;
  bool is_ready_ = true;
  struct StagedEntry {
    EntryDigest digest;
    std::size_t bytes = 0;
  };
  // Applied entries are forgotten, the oldest first, while all take more than this.
  static constexpr std::size_t kStagedBytesMax = std::size_t{1} << 30;

  std::map<EntryId, StagedEntry> staged_;
  std::size_t staged_bytes_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATED_LOG_LOG_ENTRY_STORE_H_
