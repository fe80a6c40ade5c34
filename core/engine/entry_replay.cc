#include "core/engine/entry_replay.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/load_stores.h"
#include "core/engine/table_writes.h"
#include "core/engine/validate.h"
#include "core/replicated_log/entry_batch.h"
#include "core/storage/records.h"
#include "core/store/block_shape.h"
#include "core/store/recorded_write.h"
#include "core/store/store_editor.h"

namespace softlookup {
namespace {

// Gathers the changes of an entry as writes to stores. The last record of each write is that of the
// store's revision (put_records.h), with which the write is replayed.
class Changes final : public LogBatch {
 public:
  explicit Changes(const EntryReplay& replay) : replay_(replay), stores_(replay.stores) {}

  void Put(absl::string_view key, absl::string_view value) override {
    if (status_.ok()) status_ = OnPut(key, value);
  }
  // A write deletes single records only of rows that it writes anew, or of a store that it deletes.
  void Delete(absl::string_view) override {}
  void DeleteRange(absl::string_view begin, absl::string_view end) override {
    const std::uint64_t store = StoreOfKey(begin);
    if (begin == KeysOfStore(store).begin && end == KeysOfStore(store).end) deleted_.insert(store);
  }
  void FreeDiskOf(absl::string_view, absl::string_view) override {}

  // Call this once all changes were added.
  absl::Status Finish() {
    SOFTLOOKUP_RETURN_IF_ERROR(status_);
    for (const std::uint64_t store : deleted_) DeleteStore(store);
    for (const std::uint64_t store : new_stores_) {
      SOFTLOOKUP_RETURN_IF_ERROR(AddStore({.store = store, .name = names_[store]}));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status OnPut(absl::string_view key, absl::string_view value) {
    const KeyRange names = KeysOfNames();
    if (key >= names.begin && key < names.end) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(NamedStore named, ParseName(key, value));
      names_[named.store] = std::move(named.name);
      return absl::OkStatus();
    }
    const std::uint64_t number = StoreOfKey(key);
    if (number == 0) return absl::OkStatus();  // A mark of an unfinished store.
    RaiseLastNumber(number);
    const std::string name = stores_.table.NameOf(number);
    if (name.empty()) {  // A new store, or an unfinished one.
      if (names_.contains(number)) new_stores_.insert(number);
      return absl::OkStatus();
    }
    // Nothing but a deletion changes a damaged store.
    if (stores_.table.FindDamaged(name) != nullptr) return absl::OkStatus();
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> store,
                                stores_.table.Find("store", name));
    SOFTLOOKUP_ASSIGN_OR_RETURN(const RecordKey record, ParseKey(key));
    return OnRecord(store, record, value);
  }

  // A store that is created here later gets a larger number.
  void RaiseLastNumber(std::uint64_t number) {
    std::uint64_t seen = replay_.last_store_number;
    while (seen < number && !replay_.last_store_number.compare_exchange_weak(seen, number)) {
    }
  }

  absl::Status OnRecord(const std::shared_ptr<Store>& store, const RecordKey& key,
                        absl::string_view value) {
    RecordedWrite& write = writes_[key.store];
    switch (key.kind) {
      case RecordKind::kConfig: {
        SOFTLOOKUP_ASSIGN_OR_RETURN(ConfigRecord record, ParseConfig(value));
        SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreConfig(record.config));
        write.config = std::move(record.config);
        return absl::OkStatus();
      }
      case RecordKind::kBlockStart: {
        SOFTLOOKUP_ASSIGN_OR_RETURN(BlockStartRecord record, ParseBlockStart(value));
        write.memories[key.number] = std::move(record.memories);
        return absl::OkStatus();
      }
      case RecordKind::kLiveRows: {
        SOFTLOOKUP_ASSIGN_OR_RETURN(const LiveRowsRecord record, ParseLiveRows(value));
        RecordedWrite::Masks masks{.live = RowMask::Of(record.live)};
        if (record.kept) masks.kept = RowMask::Of(*record.kept);
        write.masks[key.number] = masks;
        return absl::OkStatus();
      }
      case RecordKind::kRows: {
        const std::int64_t row_bytes = PanelShapeOf(store->snapshot()->config()).row_bytes();
        SOFTLOOKUP_ASSIGN_OR_RETURN(RowsRecord record, ParseRows(value, row_bytes));
        write.rows.push_back({.first_position = key.number,
                              .row_count = record.row_count,
                              .components = record.components,
                              .ids = IdsByRow(record),
                              .row_labels = std::move(record.row_labels)});
        return absl::OkStatus();
      }
      case RecordKind::kWriter: {
        SOFTLOOKUP_ASSIGN_OR_RETURN(const WriterRecord record, ParseWriter(value));
        write.writers[key.writer] = {.last_sequence = record.last_sequence,
                                     .last_position = record.last_position};
        return absl::OkStatus();
      }
      case RecordKind::kRevision: {
        SOFTLOOKUP_ASSIGN_OR_RETURN(const RevisionRecord record, ParseRevision(value));
        write.revision = record.revision;
        write.row_count = record.row_count;
        const RecordedWrite whole = std::move(write);
        writes_.erase(key.store);
        return ReplayWrite(store, whole);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReplayWrite(const std::shared_ptr<Store>& store, const RecordedWrite& write) {
    StoreEditor& editor = store->editor();
    const std::shared_ptr<const Snapshot> before = editor.newest();
    const absl::StatusOr<std::shared_ptr<const Snapshot>> made = editor.Replay(write);
    if (!made.ok()) {
      editor.Rollback();
      return MakeError(reasons::kDataLoss, absl::StrCat("store \"", before->config().name,
                                                        "\": ", made.status().message()));
    }
    const Snapshot& after = **made;
    // What the primary took may exceed this replica's budget, as what was loaded may.
    stores_.budget.Add(static_cast<std::int64_t>(after.byte_size()) -
                       static_cast<std::int64_t>(before->byte_size()));
    if (after.config().name != before->config().name) {
      Rename(store, before->config().name, after.config().name);
    } else {
      stores_.kept_snapshots.Keep(*store, after);
      store->Publish(*made);
      stores_.QueueForResidency(store, after);
    }
    stores_.totals.AddWrite(
        after.config(), {.rows = static_cast<std::int64_t>(after.row_count() - before->row_count()),
                         .live_rows = static_cast<std::int64_t>(after.live_row_count()) -
                                      static_cast<std::int64_t>(before->live_row_count())});
    return absl::OkStatus();
  }

  // Makes room for a store under a name that only a store has that is damaged here.
  void RemoveDamaged(const std::string& name) {
    const std::shared_ptr<const DamagedStore> damaged = stores_.table.FindDamaged(name);
    if (damaged == nullptr) return;
    deleted_.erase(damaged->number);
    stores_.table.Remove(name);
    stores_.totals.RemoveDamagedStore();
  }

  void Rename(const std::shared_ptr<Store>& store, const std::string& name,
              const std::string& new_name) {
    RemoveDamaged(new_name);
    const absl::StatusOr<std::shared_ptr<Store>> replaced =
        stores_.table.Find("new_name", new_name);
    const std::shared_ptr<Store> renamed = store->HandOver();
    stores_.table.Rename(name, new_name, renamed);
    stores_.QueueForResidency(renamed, *renamed->snapshot());
    store->Close(StoreNotFound(name));
    stores_.kept_snapshots.Drop(*store);
    if (!replaced.ok()) return;
    deleted_.erase((*replaced)->number());
    Retire(**replaced, StoreReplaced(new_name), stores_);
  }

  void DeleteStore(std::uint64_t number) {
    const std::string name = stores_.table.NameOf(number);
    if (name.empty()) return;  // An unfinished store, or what was left of a deleted one.
    const absl::StatusOr<std::shared_ptr<Store>> store = stores_.table.Find("name", name);
    stores_.table.Remove(name);
    if (!store.ok()) return stores_.totals.RemoveDamagedStore();
    Retire(**store, StoreNotFound(name), stores_);
  }

  absl::Status AddStore(const NamedStore& named) {
    LoadedStore loaded = LoadStore(named, replay_.log, replay_.executor, stores_.node);
    if (!loaded.store.ok()) return loaded.store.status();
    RemoveDamaged(named.name);
    AddLoaded(std::move(loaded), stores_);
    return absl::OkStatus();
  }

  const EntryReplay& replay_;
  CountedStores& stores_;
  absl::Status status_;
  std::map<std::uint64_t, std::string> names_;
  std::map<std::uint64_t, RecordedWrite> writes_;  // Whose revision has not come yet.
  std::set<std::uint64_t> new_stores_;
  std::set<std::uint64_t> deleted_;
};

class ReplayWrite final : public Write {
 public:
  ReplayWrite(EntryReplay replay, std::shared_ptr<const std::string> entry,
              absl::AnyInvocable<void(absl::Status)> done)
      : replay_(std::move(replay)), entry_(std::move(entry)), done_(std::move(done)) {}

  bool alone() const override { return true; }
  bool is_in_log() const override { return true; }
  absl::Status Stage(LogBatch*) override { return absl::OkStatus(); }
  void Publish() override { replayed_ = replay_.Replay(*entry_); }
  void Rollback() override {}
  void Answer(absl::Status status) override { done_(status.ok() ? replayed_ : std::move(status)); }

 private:
  const EntryReplay replay_;
  const std::shared_ptr<const std::string> entry_;
  absl::AnyInvocable<void(absl::Status)> done_;
  absl::Status replayed_;
};

}  // namespace

absl::Status CheckNoReplaySince(std::uint64_t count, const CountedStores& stores) {
  if (stores.replay_count == count) return absl::OkStatus();
  return WriteNotMade("another server of the group has been the primary meanwhile");
}

absl::Status EntryReplay::Replay(absl::string_view entry) const {
  ++stores.replay_count;
  Changes changes(*this);
  SOFTLOOKUP_RETURN_IF_ERROR(AddChanges(entry, changes));
  return changes.Finish();
}

std::unique_ptr<Write> MakeReplay(EntryReplay replay, std::shared_ptr<const std::string> entry,
                                  absl::AnyInvocable<void(absl::Status)> done) {
  return std::make_unique<ReplayWrite>(std::move(replay), std::move(entry), std::move(done));
}

}  // namespace softlookup
