#include "core/engine/store_records.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/storage/records.h"
#include "core/store/row_codec.h"
#include "core/store/store_loader.h"

namespace softlookup {
namespace {

std::string KeyOf(std::uint64_t store, RecordKind kind, std::uint64_t number = 0) {
  return EncodeKey({.store = store, .kind = kind, .number = number});
}

void LogHead(std::uint64_t store, const Snapshot& snapshot, LogBatch& batch) {
  batch.Put(KeyOf(store, RecordKind::kHead),
            EncodeHead({.revision = snapshot.revision(), .row_count = snapshot.row_count()}));
}

void LogLiveRows(std::uint64_t store, const Snapshot& snapshot,
                 const std::vector<std::int64_t>& blocks, LogBatch& batch) {
  for (const std::int64_t block : blocks) {
    LiveRowsRecord record;
    std::copy_n(snapshot.LiveRowsOf(block)->words(), record.size(), record.begin());
    batch.Put(KeyOf(store, RecordKind::kLiveRows, static_cast<std::uint64_t>(block)),
              EncodeLiveRows(record));
  }
}

// The starts of the blocks whose first row is in [begin, end).
void LogBlockStarts(std::uint64_t store, const Snapshot& snapshot, std::uint64_t begin,
                    std::uint64_t end, LogBatch& batch) {
  const std::uint64_t block_rows = static_cast<std::uint64_t>(snapshot.block_rows());
  for (std::uint64_t block = (begin + block_rows - 1) / block_rows; block * block_rows < end;
       ++block) {
    const std::int64_t index = static_cast<std::int64_t>(block);
    BlockStartRecord record{.memories = snapshot.MemoriesBefore(index).Save()};
    if (index > 0) record.bounds = SaveBounds(snapshot.BoundsOf(index - 1));
    batch.Put(KeyOf(store, RecordKind::kBlockStart, block), EncodeBlockStart(record));
  }
}

// Reads the records of one store in their order.
class Loading {
 public:
  explicit Loading(std::uint64_t store) : store_(store) {}

  const std::string& name() const { return config_.config.name; }

  absl::Status Add(absl::string_view key, absl::string_view value) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(const RecordKey record, ParseKey(key));
    if (record.kind == RecordKind::kConfig) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(config_, ParseConfig(value));
      return absl::OkStatus();
    }
    if (record.kind == RecordKind::kHead) {
      if (name().empty()) return Missing("configuration");
      SOFTLOOKUP_ASSIGN_OR_RETURN(const HeadRecord head, ParseHead(value));
      loader_.emplace(config_.config, head.revision, head.row_count);
      return absl::OkStatus();
    }
    if (!loader_) return Missing("head");
    switch (record.kind) {
      case RecordKind::kBlockStart: {
        SOFTLOOKUP_ASSIGN_OR_RETURN(const BlockStartRecord start, ParseBlockStart(value));
        return loader_->AddBlockStart(record.number, start.memories, start.bounds);
      }
      case RecordKind::kLiveRows: {
        SOFTLOOKUP_ASSIGN_OR_RETURN(const LiveRowsRecord live, ParseLiveRows(value));
        loader_->AddLiveRows(record.number, RowMask::Of(live));
        return absl::OkStatus();
      }
      case RecordKind::kRows: {
        const std::int64_t row_bytes = 4 * (config_.config.key_dim + config_.config.value_dim);
        SOFTLOOKUP_ASSIGN_OR_RETURN(const RowsRecord rows, ParseRows(value, row_bytes));
        return loader_->AddRows(record.number, rows.row_count, rows.components, rows.ids,
                                rows.row_labels);
      }
      default: {
        SOFTLOOKUP_ASSIGN_OR_RETURN(const WriterRecord writer, ParseWriter(value));
        loader_->AddWriter(record.writer, {.last_sequence = writer.last_sequence,
                                           .last_position = writer.last_position});
        return absl::OkStatus();
      }
    }
  }

  absl::StatusOr<std::shared_ptr<Store>> Finish(Store::Executor executor) {
    if (!loader_) return Missing("head");
    SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<StoreWriter> writer, loader_->Finish());
    return std::make_shared<Store>(store_, std::move(writer), config_.create_time,
                                   std::move(executor));
  }

 private:
  static absl::Status Missing(absl::string_view what) {
    return MakeError(reasons::kDataLoss, absl::StrCat("its ", what, " is missing"));
  }

  const std::uint64_t store_;
  ConfigRecord config_;
  std::optional<StoreLoader> loader_;
};

}  // namespace

void LogConfig(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
               LogBatch& batch) {
  batch.Put(KeyOf(store, RecordKind::kConfig),
            EncodeConfig({.config = snapshot.config(), .create_time = create_time}));
  LogHead(store, snapshot, batch);
}

void LogAppend(std::uint64_t store, const AppendOutcome& outcome, const RowBatch& rows,
               const WriterState* writer, LogBatch& batch) {
  const Snapshot& snapshot = *outcome.snapshot;
  const std::uint64_t begin = outcome.first_position;
  const std::uint64_t end = begin + outcome.appended_count;
  if (begin < end) {
    LogBlockStarts(store, snapshot, begin, end, batch);
    const std::string components = EncodeComponents(snapshot, begin, end);
    RowsRecord record{.row_count = static_cast<std::uint32_t>(outcome.appended_count),
                      .components = components};
    for (std::uint64_t position = begin; position < end; ++position) {
      Snapshot::TagsOfRow tags = snapshot.TagsOf(position);
      if (!rows.ids.empty()) record.ids.push_back(*tags.id);
      if (!rows.row_labels.empty()) record.row_labels.push_back(std::move(tags.labels));
    }
    batch.Put(KeyOf(store, RecordKind::kRows, begin), EncodeRows(record));
  }
  LogLiveRows(store, snapshot, outcome.masked_blocks, batch);
  if (writer != nullptr) {
    batch.Put(
        EncodeKey(
            {.store = store, .kind = RecordKind::kWriter, .writer = std::string(rows.writer)}),
        EncodeWriter(
            {.last_sequence = writer->last_sequence, .last_position = writer->last_position}));
  }
  LogHead(store, snapshot, batch);
}

void LogDelete(std::uint64_t store, const DeleteOutcome& outcome, LogBatch& batch) {
  LogLiveRows(store, *outcome.snapshot, outcome.masked_blocks, batch);
  LogHead(store, *outcome.snapshot, batch);
}

void LogNoStore(std::uint64_t store, LogBatch& batch) {
  const KeyRange keys = KeysOfStore(store);
  batch.DeleteRange(keys.begin, keys.end);
}

absl::StatusOr<std::vector<std::uint64_t>> StoresIn(const CommitLog& log) {
  std::vector<std::uint64_t> stores;
  KeyRange keys = KeysOfAllStores();
  for (;;) {
    // The first record from there on is the next store's.
    std::optional<std::uint64_t> found;
    const absl::Status status =
        log.Scan(keys.begin, keys.end, [&](absl::string_view key, absl::string_view) {
          SOFTLOOKUP_ASSIGN_OR_RETURN(const RecordKey record, ParseKey(key));
          found = record.store;
          return absl::CancelledError();
        });
    if (!found) return status.ok() ? absl::StatusOr<std::vector<std::uint64_t>>(stores) : status;
    stores.push_back(*found);
    keys.begin = KeysOfStore(*found).end;
  }
}

LoadedStore LoadStore(std::uint64_t store, const CommitLog& log, Store::Executor executor) {
  Loading loading(store);
  const KeyRange keys = KeysOfStore(store);
  const absl::Status status =
      log.Scan(keys.begin, keys.end, [&loading](absl::string_view key, absl::string_view value) {
        return loading.Add(key, value);
      });
  LoadedStore loaded{.name = loading.name(), .store = nullptr};
  if (status.ok()) {
    loaded.store = loading.Finish(std::move(executor));
  } else {
    loaded.store = status;
  }
  if (!loaded.store.ok()) {
    loaded.store = MakeError(
        reasons::kDataLoss,
        absl::StrCat("Store \"", loaded.name, "\" is damaged: ", loaded.store.status().message()),
        {{"store", loaded.name}});
  }
  return loaded;
}

void LoadStores(const std::vector<std::uint64_t>& stores, const CommitLog& log, ForkJoinPool& pool,
                const Store::Executor& executor, LoadObserver& observer,
                absl::FunctionRef<void(LoadedStore)> on_loaded) {
  const auto count = static_cast<std::int64_t>(stores.size());
  absl::Mutex mutex;
  std::int64_t done = 0;
  pool.ForkJoin(count, [&](std::int64_t i) {
    LoadedStore loaded = LoadStore(stores[i], log, executor);
    absl::MutexLock lock(&mutex);
    if (loaded.store.ok()) {
      observer.OnStore((*loaded.store)->info());
    } else {
      observer.OnDamage(loaded.store.status());
    }
    if (!loaded.name.empty()) on_loaded(std::move(loaded));
    observer.OnProgress(++done, count);
  });
}

}  // namespace softlookup
