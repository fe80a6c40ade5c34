#include "core/engine/load_stores.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/leftovers.h"
#include "core/engine/put_records.h"
#include "core/engine/validate.h"
#include "core/store/block_shape.h"
#include "core/store/kept_ranges.h"
#include "core/store/store_loader.h"

namespace softlookup {
namespace {

// Rows whose components are loaded, but whose ids and labels still have to be added.
struct PendingRows {
  std::uint64_t first_position = 0;
  RowsRecord record;  // Its `components` are empty.
};

// Returns whether `status` ends a loading without saying anything about the store.
bool IsNoDamage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

// Loads one store from its records.
class Loading {
 public:
  // `as` is null if the store keeps its number and its name. It must outlive this object.
  Loading(NamedStore store, const CommitLog& log, std::string node, const LoadAs* as = nullptr)
      : store_(store.store),
        name_(std::move(store.name)),
        log_(log),
        node_(std::move(node)),
        as_(as) {}

  // Returns the bytes of the components of all rows.
  std::int64_t bytes() const { return static_cast<std::int64_t>(newest_.row_count) * row_bytes(); }

  // Reads everything but the rows. Call this first.
  absl::Status ReadStore() {
    SOFTLOOKUP_RETURN_IF_ERROR(Scan(KeysOfStore(store_).begin, KeyOfRows(0)));
    if (!loader_) return Missing("revision");
    SOFTLOOKUP_RETURN_IF_ERROR(Scan(KeysOfWriters(store_).begin, KeysOfWriters(store_).end));
    if (as_ != nullptr) SOFTLOOKUP_RETURN_IF_ERROR(as_->make_room(loader_->RowBytes()));
    return loader_->MakeRoom();
  }

  // Reads part `index` of the rows, which are split into `count` parts of about equal size. Adds
  // the records to `pending`. Threads may read different parts at the same time, each with a
  // `pending` of its own.
  absl::Status ReadPart(std::uint64_t index, std::uint64_t count,
                        std::vector<PendingRows>& pending) {
    const auto position_of = [&](std::uint64_t i) {
      return i == count ? newest_.row_count : newest_.row_count / count * i;
    };
    // Records of rows at the row count and beyond do not count (docs/storage_format.md).
    return log_.Scan(KeyOfRows(position_of(index)), KeyOfRows(position_of(index + 1)),
                     [&](absl::string_view key, absl::string_view value) {
                       return ReadRows(key, value, pending);
                     });
  }

  // Adds the rows that ReadPart() read. Call this once for each part, in the order of the parts.
  absl::Status AddRows(const std::vector<PendingRows>& pending) {
    for (const auto& [first_position, record] : pending) {
      const std::vector<std::optional<std::uint64_t>> ids = IdsByRow(record);
      SOFTLOOKUP_RETURN_IF_ERROR(
          loader_->BeginsCompactedBlock(first_position)
              ? loader_->AddCompactedBlock(first_position, ids, record.row_labels)
              : loader_->AddRows(first_position, record.row_count, ids, record.row_labels));
    }
    return absl::OkStatus();
  }

  // Returns the loaded store, or an error. `status` is the first error of ReadStore(), ReadPart()
  // and AddRows(), or OK. If it is OK, StoreLoader::Finish can still find an error. Any error but
  // those of IsNoDamage() becomes a DATA_LOSS error that names the store and the remedy.
  LoadedStore Finish(absl::Status status, Store::Executor executor) {
    absl::StatusOr<std::unique_ptr<StoreEditor>> editor = nullptr;
    if (status.ok()) {
      editor = loader_->Finish();
    } else {
      editor = std::move(status);
    }
    if (editor.ok()) {
      return {.number = store_,
              .name = name_,
              .store = std::make_shared<Store>(as_ == nullptr ? store_ : as_->store.store,
                                               *std::move(editor), config_.create_time,
                                               std::move(executor))};
    }
    if (IsNoDamage(editor.status()))
      return {.number = store_, .name = name_, .store = editor.status()};
    const std::string damage(editor.status().message());
    return {.number = store_,
            .name = name_,
            .store = MakeError(
                reasons::kDataLoss,
                absl::StrCat("Store ", NameOrNumber(), " is damaged: ", damage,
                             "; restore a backup", name_.empty() ? "" : ", or delete the store"),
                {{"store", name_}}),
            .damaged = DamagedInfo(damage)};
  }

 private:
  std::string NameOrNumber() const {
    return name_.empty() ? absl::StrCat("number ", store_) : absl::StrCat("\"", name_, "\"");
  }
  // Returns what is known of the store. `damage` says what is wrong with it.
  StoreInfo DamagedInfo(const std::string& damage) const {
    StoreInfo info{.config = config_.config,
                   .revision = newest_.revision,
                   .row_count = newest_.row_count,
                   .create_time = config_.create_time,
                   .damage = damage};
    info.config.name = name_;
    return info;
  }
  static absl::Status Missing(absl::string_view what) {
    return MakeError(reasons::kDataLoss, absl::StrCat("its ", what, " is missing"));
  }

  std::int64_t row_bytes() const { return PanelShapeOf(config_.config).row_bytes(); }
  std::string KeyOfRows(std::uint64_t position) const {
    return EncodeKey({.store = store_, .kind = RecordKind::kRows, .number = position});
  }

  absl::Status Scan(const std::string& begin, const std::string& end) {
    return log_.Scan(begin, end, [this](absl::string_view key, absl::string_view value) {
      return Add(key, value);
    });
  }

  absl::Status CheckCancel() const {
    return as_ == nullptr ? absl::OkStatus() : as_->cancel.Check();
  }

  // Adds one record of any kind but kRows. The scan visits the configuration first, then the
  // revision.
  absl::Status Add(absl::string_view key, absl::string_view value) {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckCancel());
    SOFTLOOKUP_ASSIGN_OR_RETURN(const RecordKey parsed, ParseKey(key));
    if (parsed.kind == RecordKind::kConfig) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(ConfigRecord record, ParseConfig(value));
      SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreConfig(record.config));
      config_ = std::move(record);
      name_ = config_.config.name;
      return absl::OkStatus();
    }
    if (parsed.kind == RecordKind::kRevision) {
      if (config_.config.name.empty()) return Missing("configuration");
      SOFTLOOKUP_ASSIGN_OR_RETURN(newest_, ParseRevision(value));
      StoreConfig config = config_.config;
      if (as_ != nullptr) {
        config.name = as_->store.name;
        // They name nodes of the group in which the copy was made.
        if (!as_->keeps_ranges) config.ranges.clear();
      }
      KeptRanges kept(config, node_);
      loader_.emplace(std::move(config), newest_.revision, newest_.row_count, std::move(kept));
      return absl::OkStatus();
    }
    if (!loader_) return Missing("revision");
    switch (parsed.kind) {
      case RecordKind::kBlockStart: {
        SOFTLOOKUP_ASSIGN_OR_RETURN(const BlockStartRecord start, ParseBlockStart(value));
        return loader_->AddBlockStart(parsed.number, start.memories, start.bounds);
      }
      case RecordKind::kLiveRows: {
        SOFTLOOKUP_ASSIGN_OR_RETURN(const LiveRowsRecord live, ParseLiveRows(value));
        loader_->AddLiveRows(parsed.number, RowMask::Of(live.live));
        if (live.kept) loader_->AddKeptRows(parsed.number, RowMask::Of(*live.kept));
        return absl::OkStatus();
      }
      default: {  // kWriter.
        SOFTLOOKUP_ASSIGN_OR_RETURN(const WriterRecord writer, ParseWriter(value));
        loader_->AddWriter(parsed.writer, {.last_sequence = writer.last_sequence,
                                           .last_position = writer.last_position});
        return absl::OkStatus();
      }
    }
  }

  absl::Status ReadRows(absl::string_view key, absl::string_view value,
                        std::vector<PendingRows>& pending) {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckCancel());
    SOFTLOOKUP_ASSIGN_OR_RETURN(const RecordKey rows, ParseKey(key));
    SOFTLOOKUP_ASSIGN_OR_RETURN(RowsRecord record, ParseRows(value, row_bytes()));
    SOFTLOOKUP_RETURN_IF_ERROR(
        loader_->BeginsCompactedBlock(rows.number)
            ? loader_->PutKeptComponents(rows.number, record.components)
            : loader_->PutComponents(rows.number, record.row_count, record.components));
    record.components = {};
    pending.push_back({.first_position = rows.number, .record = std::move(record)});
    return absl::OkStatus();
  }

  const std::uint64_t store_;
  std::string name_;  // May be empty until the configuration is read.
  const CommitLog& log_;
  const std::string node_;
  const LoadAs* const as_;
  ConfigRecord config_;    // The default one until it is read and checked.
  RevisionRecord newest_;  // The default one until it is read.
  std::optional<StoreLoader> loader_;
};

// Reads all rows on this thread. Call this after ReadStore().
absl::Status ReadRowsWhole(Loading& loading) {
  std::vector<PendingRows> pending;
  SOFTLOOKUP_RETURN_IF_ERROR(loading.ReadPart(0, 1, pending));
  return loading.AddRows(pending);
}

// A store with more bytes than this is read by several threads, in parts of at most about this many
// bytes. Parts are this small so that the threads end at about the same time.
constexpr std::int64_t kBytesOfOnePart = std::int64_t{16} << 20;

// Reads all rows on this thread and those of `pool`. Call this after ReadStore().
absl::Status ReadInParts(Loading& loading, ForkJoinPool& pool) {
  const std::int64_t count = loading.bytes() / kBytesOfOnePart + 1;
  std::vector<std::vector<PendingRows>> pending(static_cast<std::size_t>(count));
  std::vector<absl::Status> statuses(pending.size());
  pool.ForkJoin(count, [&](std::int64_t i) {
    statuses[i] = loading.ReadPart(static_cast<std::uint64_t>(i), pending.size(), pending[i]);
  });
  for (std::size_t i = 0; i < pending.size(); ++i) {
    SOFTLOOKUP_RETURN_IF_ERROR(statuses[i]);
    SOFTLOOKUP_RETURN_IF_ERROR(loading.AddRows(pending[i]));
  }
  return absl::OkStatus();
}

// Returns the stores that have any record, by number and without names. Slower than reading the
// records of names.
absl::StatusOr<std::vector<NamedStore>> FindStores(const CommitLog& log) {
  std::vector<NamedStore> stores;
  KeyRange keys = KeysOfAllStores();
  for (;;) {
    // The first record in the range belongs to the next store. The error CANCELLED ends the scan
    // there.
    std::optional<std::uint64_t> found;
    const absl::Status status =
        log.Scan(keys.begin, keys.end, [&](absl::string_view key, absl::string_view) {
          SOFTLOOKUP_ASSIGN_OR_RETURN(const RecordKey record, ParseKey(key));
          found = record.store;
          return absl::CancelledError();
        });
    if (!found) return status.ok() ? absl::StatusOr<std::vector<NamedStore>>(stores) : status;
    stores.push_back({.store = *found});
    keys.begin = KeysOfStore(*found).end;
  }
}

// Loads `stores` on this thread and those of `pool`. Calls `observer` and `on_loaded` for one store
// at a time, on any of these threads, damaged stores included. For a store that is UNAVAILABLE,
// calls neither, and at the end returns UNAVAILABLE.
absl::Status LoadEach(const std::vector<NamedStore>& stores, const CommitLog& log,
                      ForkJoinPool& pool, const Store::Executor& executor, const std::string& node,
                      LoadObserver& observer, absl::FunctionRef<void(LoadedStore)> on_loaded) {
  const auto count = static_cast<std::int64_t>(stores.size());
  absl::Mutex mutex;
  std::int64_t done = 0;
  std::vector<std::unique_ptr<Loading>> large;  // Stores whose rows are not read yet.
  absl::Status unavailable;
  const auto finish = [&](LoadedStore loaded) {
    if (absl::IsUnavailable(loaded.store.status())) {
      unavailable.Update(loaded.store.status());
      return;
    }
    Notify(observer, loaded);
    on_loaded(std::move(loaded));
    observer.OnProgress(++done, count);
  };
  pool.ForkJoin(count, [&](std::int64_t i) {
    auto loading = std::make_unique<Loading>(stores[i], log, node);
    absl::Status status = loading->ReadStore();
    const bool is_large = status.ok() && loading->bytes() > kBytesOfOnePart;
    if (status.ok() && !is_large) status = ReadRowsWhole(*loading);
    absl::MutexLock lock(&mutex);
    if (is_large) {
      large.push_back(std::move(loading));
    } else {
      finish(loading->Finish(std::move(status), executor));
    }
  });
  for (const std::unique_ptr<Loading>& loading : large) {
    finish(loading->Finish(ReadInParts(*loading, pool), executor));
  }
  return unavailable;
}

// The next three return reasons for LoadObserver::OnDiskKept().
absl::Status NamesAreNew() {
  return absl::FailedPreconditionError(
      "the names of all stores were written anew; the next start frees it");
}

absl::Status StoreIsDamaged() {
  return absl::FailedPreconditionError(
      "a store is damaged; the start after its deletion frees it, if what is left can be read");
}

// Returns `status`, that of ClearLeftovers(), and adds the remedy to its message if it is an error.
absl::Status WithRemedy(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(
          "what is left of deleted stores cannot be read: ", status.message(),
          "; to free it, make a backup and take each store from it into a server with a new "
          "data directory, or restore a backup from before the damage"));
}

}  // namespace

absl::StatusOr<std::vector<NamedStore>> StoresIn(const CommitLog& log) {
  std::vector<NamedStore> stores;
  const KeyRange names = KeysOfNames();
  const absl::Status status =
      log.Scan(names.begin, names.end, [&](absl::string_view key, absl::string_view value) {
        SOFTLOOKUP_ASSIGN_OR_RETURN(stores.emplace_back(), ParseName(key, value));
        return absl::OkStatus();
      });
  if (!status.ok() && !absl::IsDataLoss(status)) return status;
  if (!status.ok() || stores.empty()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(stores, FindStores(log));
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> unfinished, UnfinishedIn(log));
  std::erase_if(stores, [&](const NamedStore& store) {
    return store.name.empty() && std::ranges::binary_search(unfinished, store.store);
  });
  return stores;
}

LoadedStore LoadStore(const NamedStore& store, const CommitLog& log, Store::Executor executor,
                      const std::string& node) {
  Loading loading(store, log, node);
  absl::Status status = loading.ReadStore();
  if (status.ok()) status = ReadRowsWhole(loading);
  return loading.Finish(std::move(status), std::move(executor));
}

LoadedStore LoadStoreAs(const NamedStore& store, const CommitLog& log, const LoadAs& as,
                        const std::string& node) {
  Loading loading(store, log, node, &as);
  absl::Status status = loading.ReadStore();
  if (status.ok()) status = ReadRowsWhole(loading);
  return loading.Finish(std::move(status), as.executor);
}

void AddLoaded(LoadedStore loaded, CountedStores& stores) {
  if (loaded.store.ok()) {
    const std::shared_ptr<const Snapshot> snapshot = (*loaded.store)->snapshot();
    // Loaded stores may exceed the budget, so that acknowledged rows are kept. Appends are then
    // refused until there is room.
    stores.budget.Add(static_cast<std::int64_t>(snapshot->byte_size()));
    stores.totals.AddStore(*snapshot);
    stores.table.AddLoaded(loaded.name, *loaded.store);
    stores.QueueForResidency(*loaded.store, *snapshot);
    return;
  }
  stores.totals.AddDamagedStore();
  // Damage cannot pass the checksums, but records that never were a server's can hold any name.
  if (!CheckStoreName("name", loaded.name).ok()) return;
  stores.table.AddDamaged(
      loaded.name,
      {.number = loaded.number, .info = std::move(loaded.damaged), .error = loaded.store.status()});
}

void Notify(LoadObserver& observer, const LoadedStore& loaded) {
  if (loaded.store.ok()) {
    observer.OnStore((*loaded.store)->info());
  } else {
    observer.OnDamage(loaded.store.status());
  }
}

absl::StatusOr<std::uint64_t> LoadStores(CommitLog& log, ForkJoinPool& pool,
                                         const Store::Executor& executor, LoadObserver& observer,
                                         CountedStores& stores) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<NamedStore> named, StoresIn(log));
  const std::uint64_t last_number = LastNumberIn(named, log);
  const bool have_names = named.empty() || !named[0].name.empty();
  const std::unique_ptr<LogBatch> names = log.NewBatch();
  bool is_whole = true;
  SOFTLOOKUP_RETURN_IF_ERROR(
      LoadEach(named, log, pool, executor, stores.node, observer, [&](LoadedStore loaded) {
        is_whole = is_whole && loaded.store.ok();
        PutName(loaded.number, loaded.name, *names);
        AddLoaded(std::move(loaded), stores);
      }));
  // Writes a name record for every store, an empty one if the name is lost. Once the log has any
  // name records, StoresIn finds only stores that have one.
  if (!have_names) SOFTLOOKUP_RETURN_IF_ERROR(log.Commit(*names, Sync::kYes));
  ClearUnfinished(named, log);
  // If compaction read a damaged record, writes to all stores would fail from then on. So the log
  // is not compacted if a store is damaged, if the names had to be written anew, or if what is left
  // of deleted stores is damaged or cannot be read.
  const absl::Status why_not = !is_whole     ? StoreIsDamaged()
                               : !have_names ? NamesAreNew()
                                             : WithRemedy(ClearLeftovers(named, last_number, log));
  if (why_not.ok()) {
    log.AllowTableCompaction();
  } else {
    CountLeftovers(named, last_number, log);
    observer.OnDiskKept(why_not);
  }
  return last_number;
}

}  // namespace softlookup
