#include "core/engine/store_restorer.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/copy_pace.h"
#include "core/engine/entry_replay.h"
#include "core/engine/load_stores.h"
#include "core/engine/put_records.h"
#include "core/engine/split_rows.h"
#include "core/engine/table_writes.h"
#include "core/engine/validate.h"
#include "core/kernels/panel.h"
#include "core/storage/records.h"
#include "core/store/stored_blocks.h"
#include "softlookup/tenant.h"

namespace softlookup {
namespace {

// How long the copy waits before it tries again, if the committer has too many writes waiting.
constexpr absl::Duration kQueueRetryDelay = absl::Milliseconds(10);

// A write that changes records of the log and nothing else.
class RecordsWrite final : public Write {
 public:
  RecordsWrite(absl::FunctionRef<void(LogBatch&)> put, std::int64_t bytes,
               const CountedStores& stores, std::uint64_t replay_count,
               absl::AnyInvocable<void(absl::Status)> callback)
      : put_(put),
        bytes_(bytes),
        stores_(stores),
        replay_count_(replay_count),
        callback_(std::move(callback)) {}

  absl::Status Stage(LogBatch* batch) override {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckNoReplaySince(replay_count_, stores_));
    if (batch != nullptr) put_(*batch);
    return absl::OkStatus();
  }
  void Publish() override {}
  void Rollback() override {}
  void Answer(absl::Status status) override { callback_(std::move(status)); }
  std::int64_t bytes() const override { return bytes_; }

 private:
  const absl::FunctionRef<void(LogBatch&)> put_;
  const std::int64_t bytes_;
  const CountedStores& stores_;
  const std::uint64_t replay_count_;
  absl::AnyInvocable<void(absl::Status)> callback_;
};

// Calls post(callback), which posts a write and returns whether the committer took it, until the
// committer takes it. Then waits for the write, and returns its answer. Ends the attempts, but not
// the write, by `cancel`, if that is not null.
template <typename Result, typename Post>
Result PostAndWait(const CancelToken* cancel, const Post& post) {
  for (;;) {
    if (cancel != nullptr) SOFTLOOKUP_RETURN_IF_ERROR(cancel->Check());
    std::optional<Result> result;
    absl::Notification answered;
    const bool posted = post([&](Result answer) {
      result = std::move(answer);
      answered.Notify();
    });
    if (posted) {
      answered.WaitForNotification();
      return *std::move(result);
    }
    absl::SleepFor(kQueueRetryDelay);
  }
}

const std::string& NewNameOf(const StoreRestore& restore) {
  return restore.name.empty() ? restore.store : restore.name;
}

// Returns the name in the configuration of store `number`. Empty if that cannot be read.
std::string NameInConfig(std::uint64_t number, const CommitLog& log) {
  std::string name;
  const std::string begin = EncodeKey({.store = number, .kind = RecordKind::kConfig});
  const std::string end = EncodeKey({.store = number, .kind = RecordKind::kRevision});
  log.Scan(begin, end,
           [&](absl::string_view, absl::string_view value) -> absl::Status {
             SOFTLOOKUP_ASSIGN_OR_RETURN(const ConfigRecord record, ParseConfig(value));
             name = record.config.name;
             return absl::OkStatus();
           })
      .IgnoreError();
  return name;
}

// Returns the store `name` of `log`. The error names some of the stores that there are.
absl::StatusOr<NamedStore> FindStoreIn(const CommitLog& log, const std::string& name) {
  constexpr std::size_t kNamesMax = 5;
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::vector<NamedStore> stores, StoresIn(log));
  std::vector<std::string> names;
  for (NamedStore& store : stores) {
    // Names are empty if the log has no records of them, or damaged ones.
    if (store.name.empty()) store.name = NameInConfig(store.store, log);
    if (store.name == name) return std::move(store);
    if (!store.name.empty()) names.push_back(store.name);
  }
  std::sort(names.begin(), names.end());
  std::string has = names.empty() ? "" : ", which has ";
  if (names.size() > kNamesMax) {
    names.resize(kNamesMax);
    names.push_back("others");
  }
  has += absl::StrJoin(names, ", ");
  return MakeError(reasons::kStoreNotFound,
                   absl::StrCat("There is no store \"", name, "\" in the backup", has),
                   {{"store", name}});
}

// Returns how many rows each part of a large record should have, so that a small write can have it:
// whole panels, and at least one. `value` has `rows`.
std::uint64_t RowsPerPart(absl::string_view value, const RowsRecord& rows) {
  const std::uint64_t parts = value.size() / CopyPace::kBytesIfBusy + 1;
  const std::uint64_t panels = rows.row_count / parts / kernels::kPanelRows;
  return std::max<std::uint64_t>(panels, 1) * kernels::kPanelRows;
}

// Returns whether a record belongs to the copy. The configuration and the revision do not: they are
// put last. Records of rows and blocks beyond the row count do not count
// (docs/storage_format.md).
bool IsCopied(const RecordKey& key, std::uint64_t row_count, std::uint64_t block_rows) {
  switch (key.kind) {
    case RecordKind::kConfig:
    case RecordKind::kRevision:
      return false;
    case RecordKind::kBlockStart:
    case RecordKind::kLiveRows:
      return key.number <= row_count / block_rows && key.number * block_rows < row_count;
    case RecordKind::kRows:
      return key.number < row_count;
    case RecordKind::kWriter:
      return true;
  }
  return false;
}

}  // namespace

absl::Status StoreRestorer::PrepareNames(const StoreRestore& restore) const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName("store", restore.store));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName("name", NewNameOf(restore)));
  SOFTLOOKUP_RETURN_IF_ERROR(stores_.table.CheckNew(NewNameOf(restore), limits_.store_count_max));
  return log_ == nullptr ? absl::OkStatus() : log_->ClaimTenant(TenantOf(NewNameOf(restore)));
}

absl::StatusOr<StoreInfo> StoreRestorer::Restore(const StoreRestore& restore, std::uint64_t number,
                                                 std::uint64_t replay_count,
                                                 Store::Executor executor,
                                                 const CancelToken& cancel) {
  SOFTLOOKUP_RETURN_IF_ERROR(PrepareNames(restore));
  if (restore.check_directory) SOFTLOOKUP_RETURN_IF_ERROR(restore.check_directory());
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::unique_ptr<const CommitLog> opened,
                              OpenCommitLogCopy(restore.directory));
  const CommitLog& backup = *opened;
  SOFTLOOKUP_ASSIGN_OR_RETURN(const NamedStore from, FindStoreIn(backup, restore.store));

  std::optional<ByteBudget::Reserved> reserved;
  // Counts the bytes first and checks them then, so that no other write takes the same room.
  const auto make_room = [&](std::int64_t bytes) {
    reserved.reset();
    reserved.emplace(stores_.budget, bytes);
    return stores_.CheckRoom(/*growth=*/0, bytes);
  };
  LoadedStore loaded = LoadStoreAs(from, backup,
                                   {.store = {.store = number, .name = NewNameOf(restore)},
                                    .executor = std::move(executor),
                                    .keeps_ranges = restore.keeps_ranges,
                                    .make_room = make_room,
                                    .cancel = cancel},
                                   stores_.node);
  if (absl::IsDataLoss(loaded.store.status())) {
    return MakeError(reasons::kDataLoss,
                     absl::StrCat("The store \"", restore.store,
                                  "\" of the backup is damaged: ", loaded.damaged.damage),
                     {{"store", restore.store}});
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> store, std::move(loaded.store));
  const StoreInfo info = store->info();
  if (restore.check_store) SOFTLOOKUP_RETURN_IF_ERROR(restore.check_store(info));
  SOFTLOOKUP_RETURN_IF_ERROR(make_room(static_cast<std::int64_t>(info.byte_size)));

  bool has_begun = false;
  absl::Cleanup abandon = [&] {
    if (!has_begun) return;
    // Where the log refuses this, too, the next start does it.
    Commit([&](LogBatch& batch) { DeleteUnfinished(number, batch); }, /*bytes=*/0, replay_count,
           /*cancel=*/nullptr)
        .IgnoreError();
  };
  if (log_ != nullptr) {
    SOFTLOOKUP_RETURN_IF_ERROR(Copy(backup, from.store, *store, replay_count, cancel, has_begun));
  }
  absl::StatusOr<StoreInfo> added =
      PostAndWait<absl::StatusOr<StoreInfo>>(&cancel, [&](WriteCallback<StoreInfo> callback) {
        return committer_.Post(MakeAddStore(stores_, store, replay_count, reserved,
                                            limits_.store_count_max, std::move(callback)),
                               Committer::MayBlock::kYes);
      });
  // Records of a store that may yet get its name must stay.
  if (added.ok() || HasUnknownOutcome(added.status())) std::move(abandon).Cancel();
  return added;
}

absl::Status StoreRestorer::Copy(const CommitLog& backup, std::uint64_t from, const Store& store,
                                 std::uint64_t replay_count, const CancelToken& cancel,
                                 bool& has_begun) {
  const std::shared_ptr<const Snapshot> snapshot = store.snapshot();
  const StoredBlocks& blocks = snapshot->stored_blocks();
  const auto block_rows = static_cast<std::uint64_t>(blocks.block_rows());
  const auto calls = [this] { return committer_.posted_count() + lookups_.queue_time.total(); };
  CopyPace pace(calls);
  std::vector<std::pair<std::string, std::string>> records;
  std::int64_t bytes = 0;
  absl::Time begin;  // When the last write's turn came.
  const auto commit = [&]() -> absl::Status {
    SOFTLOOKUP_RETURN_IF_ERROR(Commit(
        [&](LogBatch& batch) {
          begin = clock_.Now();
          if (!has_begun) PutUnfinished(store.number(), batch);
          for (const auto& [key, value] : records) batch.Put(key, value);
          has_begun = true;
        },
        bytes, replay_count, &cancel));
    records.clear();
    bytes = 0;
    return absl::OkStatus();
  };
  const auto add = [&](const RecordKey& key, std::string value) -> absl::Status {
    const auto size = static_cast<std::int64_t>(value.size());
    if (!records.empty() && bytes + size > pace.bytes_per_write()) {
      SOFTLOOKUP_RETURN_IF_ERROR(commit());
      const absl::Time end = clock_.Now();
      clock_.SleepUntil(end + pace.RestAfterWrite(begin, end));
    }
    records.emplace_back(EncodeKey(key), std::move(value));
    bytes += size;
    return absl::OkStatus();
  };
  const KeyRange keys = KeysOfStore(from);
  SOFTLOOKUP_RETURN_IF_ERROR(backup.Scan(
      keys.begin, keys.end, [&](absl::string_view key, absl::string_view value) -> absl::Status {
        SOFTLOOKUP_RETURN_IF_ERROR(cancel.Check());
        SOFTLOOKUP_ASSIGN_OR_RETURN(RecordKey record, ParseKey(key));
        if (!IsCopied(record, snapshot->row_count(), block_rows)) return absl::OkStatus();
        record.store = store.number();
        const bool is_small = value.size() <= CopyPace::kBytesIfBusy;
        if (record.kind != RecordKind::kRows || is_small ||
            blocks.IsCompacted(static_cast<std::int64_t>(record.number / block_rows))) {
          return add(record, std::string(value));
        }
        SOFTLOOKUP_ASSIGN_OR_RETURN(const RowsRecord rows,
                                    ParseRows(value, blocks.shape().row_bytes()));
        return SplitRows(record.number, rows, RowsPerPart(value, rows),
                         [&](std::uint64_t first_position, const RowsRecord& part) {
                           record.number = first_position;
                           return add(record, EncodeRows(part));
                         });
      }));
  return records.empty() ? absl::OkStatus() : commit();
}

absl::Status StoreRestorer::Commit(absl::FunctionRef<void(LogBatch&)> put, std::int64_t bytes,
                                   std::uint64_t replay_count, const CancelToken* cancel) {
  return PostAndWait<absl::Status>(cancel, [&](absl::AnyInvocable<void(absl::Status)> callback) {
    return committer_.Post(
        std::make_unique<RecordsWrite>(put, bytes, stores_, replay_count, std::move(callback)),
        Committer::MayBlock::kYes);
  });
}

}  // namespace softlookup
