#include "core/engine/writes.h"

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/lookup.h"
#include "core/engine/store_records.h"

namespace softlookup {
namespace {

// A write to the rows or the configuration of one store, answered with a Result.
template <typename Result>
class StoreWrite : public Write {
 public:
  StoreWrite(const StoreTable& table, std::shared_ptr<Store> store, WriteCallback<Result> callback)
      : table_(table), store_(std::move(store)), callback_(std::move(callback)) {}

  absl::Status Stage(LogBatch* batch) override {
    // A write before this one may have deleted the store, and another one have made it anew.
    const std::string& name = store_->writer().newest()->config().name;
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> current, table_.Find("store", name));
    if (current != store_) return StoreNotFound(name);
    SOFTLOOKUP_ASSIGN_OR_RETURN(snapshot_, WriteTo(store_->writer(), batch));
    return absl::OkStatus();
  }
  void Publish() final { store_->Publish(snapshot_); }
  void Undo() final { store_->writer().Undo(); }
  void Answer(absl::Status status) final {
    if (!status.ok()) return callback_(std::move(status));
    callback_(MakeResult());
  }

 protected:
  // Returns the snapshot that shows the write.
  virtual absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreWriter& writer,
                                                                  LogBatch* batch) = 0;
  virtual Result MakeResult() = 0;

  const Store& store() const { return *store_; }
  const Snapshot& snapshot() const { return *snapshot_; }

 private:
  const StoreTable& table_;
  const std::shared_ptr<Store> store_;
  WriteCallback<Result> callback_;
  std::shared_ptr<const Snapshot> snapshot_;
};

MatrixView View(const std::vector<float>& floats, std::int64_t cols) {
  return {
      .data = floats.data(), .rows = static_cast<std::int64_t>(floats.size()) / cols, .cols = cols};
}

// Runs `stage` unless an append before it in the chain has failed.
absl::Status StageInChain(AppendChain* chain, absl::FunctionRef<absl::Status()> stage) {
  if (chain == nullptr) return stage();
  if (chain->failed) {
    return MakeError(reasons::kCancelled, "An append before this one on its stream has failed");
  }
  const absl::Status status = stage();
  if (!status.ok()) chain->failed = true;
  return status;
}

class RefusedAppend final : public Write {
 public:
  RefusedAppend(absl::Status status, std::shared_ptr<AppendChain> chain,
                WriteCallback<AppendResult> callback)
      : status_(std::move(status)), chain_(std::move(chain)), callback_(std::move(callback)) {}

  absl::Status Stage(LogBatch*) override {
    return StageInChain(chain_.get(), [this] { return status_; });
  }
  void Publish() override {}
  void Undo() override {}
  void Answer(absl::Status status) override { callback_(std::move(status)); }

 private:
  const absl::Status status_;
  const std::shared_ptr<AppendChain> chain_;
  WriteCallback<AppendResult> callback_;
};

class AppendWrite final : public StoreWrite<AppendResult> {
 public:
  AppendWrite(const StoreTable& table, std::shared_ptr<Store> store, RowsToAppend rows,
              WriteCallback<AppendResult> callback)
      : StoreWrite(table, std::move(store), std::move(callback)), rows_(std::move(rows)) {
    // Its memories are part of it from Stage to Answer.
    const std::shared_ptr<const Snapshot> snapshot = this->store().snapshot();
    const StoreConfig& config = snapshot->config();
    const auto floats = rows_.keys.size() + rows_.values.size();
    bytes_ =
        4 * static_cast<std::int64_t>(floats) +
        8 * static_cast<std::int64_t>(rows_.memories.size()) * (config.key_dim + config.value_dim);
  }

  absl::Status Stage(LogBatch* batch) override {
    return StageInChain(rows_.chain.get(), [&] { return StoreWrite::Stage(batch); });
  }

  Sync sync() const override { return rows_.sync; }
  std::int64_t bytes() const override { return bytes_; }

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreWriter& writer,
                                                          LogBatch* batch) override {
    const StoreConfig& config = writer.newest()->config();
    const RowBatch rows{.keys = View(rows_.keys, config.key_dim),
                        .values = View(rows_.values, config.value_dim),
                        .ids = rows_.ids,
                        .row_labels = rows_.row_labels,
                        .on_conflict = rows_.on_conflict,
                        .writer = rows_.writer,
                        .sequence = rows_.sequence};
    const std::uint64_t revision = writer.newest()->revision();
    SOFTLOOKUP_ASSIGN_OR_RETURN(AppendOutcome outcome, writer.Append(rows));
    const Snapshot& snapshot = *outcome.snapshot;
    if (batch != nullptr && snapshot.revision() != revision) {
      LogAppend(store().number(), outcome, rows, writer.FindWriter(rows.writer), *batch);
    }
    result_ = {.first_position = outcome.first_position,
               .appended_count = outcome.appended_count,
               .duplicate = outcome.duplicate,
               .row_count = snapshot.row_count(),
               .revision = snapshot.revision()};
    for (const std::size_t index : rows_.memories) {
      result_.memories.push_back({.name = std::string(MemoryNameOf(snapshot.config(), index)),
                                  .memory = writer.ReadMemory(index),
                                  .end = snapshot.row_count(),
                                  .revision = snapshot.revision()});
    }
    return std::move(outcome.snapshot);
  }
  AppendResult MakeResult() override { return std::move(result_); }

 private:
  const RowsToAppend rows_;
  std::int64_t bytes_ = 0;
  AppendResult result_;
};

class DeleteRowsWrite final : public StoreWrite<DeleteRowsResult> {
 public:
  DeleteRowsWrite(const StoreTable& table, std::shared_ptr<Store> store, RowFilter filter,
                  WriteCallback<DeleteRowsResult> callback)
      : StoreWrite(table, std::move(store), std::move(callback)), filter_(std::move(filter)) {}

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreWriter& writer,
                                                          LogBatch* batch) override {
    SOFTLOOKUP_ASSIGN_OR_RETURN(DeleteOutcome outcome, writer.Delete(filter_));
    if (batch != nullptr && outcome.deleted_count > 0) {
      LogDelete(store().number(), outcome, *batch);
    }
    result_ = {.deleted_count = outcome.deleted_count, .revision = outcome.snapshot->revision()};
    return std::move(outcome.snapshot);
  }
  DeleteRowsResult MakeResult() override { return result_; }

 private:
  const RowFilter filter_;
  DeleteRowsResult result_;
};

class UpdateWrite final : public StoreWrite<StoreInfo> {
 public:
  UpdateWrite(const StoreTable& table, std::shared_ptr<Store> store, StoreUpdate update,
              WriteCallback<StoreInfo> callback)
      : StoreWrite(table, std::move(store), std::move(callback)), update_(std::move(update)) {}

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreWriter& writer,
                                                          LogBatch* batch) override {
    std::shared_ptr<const Snapshot> updated = writer.Update([this](StoreConfig& config) {
      if (update_.score) {
        config.score = *update_.score == Score::kUnspecified ? Score::kScaledDot : *update_.score;
      }
      if (update_.temperature) config.temperature = *update_.temperature;
      if (update_.projection) config.projection = *update_.projection;
      if (update_.labels) config.labels = *update_.labels;
    });
    if (batch != nullptr) LogConfig(store().number(), *updated, store().create_time(), *batch);
    return updated;
  }
  StoreInfo MakeResult() override { return store().InfoOf(snapshot()); }

 private:
  const StoreUpdate update_;
};

class GetWriterWrite final : public StoreWrite<WriterInfo> {
 public:
  GetWriterWrite(const StoreTable& table, std::shared_ptr<Store> store, std::string writer,
                 WriteCallback<WriterInfo> callback)
      : StoreWrite(table, std::move(store), std::move(callback)), writer_(std::move(writer)) {}

  Sync sync() const override { return Sync::kNo; }

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreWriter& writer, LogBatch*) override {
    const WriterState* state = writer.FindWriter(writer_);
    if (state == nullptr) {
      return MakeError(reasons::kWriterNotFound,
                       absl::StrCat("Writer \"", writer_, "\" has not appended to the store"),
                       {{"writer", writer_}});
    }
    result_ = {.last_sequence = state->last_sequence, .last_position = state->last_position};
    return writer.newest();
  }
  WriterInfo MakeResult() override { return result_; }

 private:
  const std::string writer_;
  WriterInfo result_;
};

class CreateStoreWrite final : public Write {
 public:
  CreateStoreWrite(StoreTable& table, std::uint64_t number, StoreConfig config,
                   Store::Executor executor, std::int64_t store_count_max,
                   WriteCallback<StoreInfo> callback)
      : table_(table),
        number_(number),
        config_(std::move(config)),
        executor_(std::move(executor)),
        store_count_max_(store_count_max),
        callback_(std::move(callback)) {}

  bool alone() const override { return true; }

  absl::Status Stage(LogBatch* batch) override {
    SOFTLOOKUP_RETURN_IF_ERROR(table_.CheckFree(config_.name, store_count_max_));
    store_ = std::make_shared<Store>(number_, std::make_unique<StoreWriter>(config_), absl::Now(),
                                     executor_);
    if (batch != nullptr) LogConfig(number_, *store_->snapshot(), store_->create_time(), *batch);
    return absl::OkStatus();
  }
  void Publish() override { table_.Add(config_.name, store_); }
  void Undo() override {}
  void Answer(absl::Status status) override {
    if (!status.ok()) return callback_(std::move(status));
    callback_(store_->info());
  }

 private:
  StoreTable& table_;
  const std::uint64_t number_;
  const StoreConfig config_;
  const Store::Executor executor_;
  const std::int64_t store_count_max_;
  WriteCallback<StoreInfo> callback_;
  std::shared_ptr<Store> store_;
};

class DeleteStoreWrite final : public Write {
 public:
  DeleteStoreWrite(StoreTable& table, std::string name,
                   absl::AnyInvocable<void(absl::Status)> callback)
      : table_(table), name_(std::move(name)), callback_(std::move(callback)) {}

  bool alone() const override { return true; }

  absl::Status Stage(LogBatch* batch) override {
    SOFTLOOKUP_ASSIGN_OR_RETURN(store_, table_.Find("name", name_));
    if (batch != nullptr) LogNoStore(store_->number(), *batch);
    return absl::OkStatus();
  }
  void Publish() override {
    table_.Remove(name_);
    store_->Close(StoreNotFound(name_));
  }
  void Undo() override {}
  void Answer(absl::Status status) override { callback_(std::move(status)); }

 private:
  StoreTable& table_;
  const std::string name_;
  absl::AnyInvocable<void(absl::Status)> callback_;
  std::shared_ptr<Store> store_;
};

}  // namespace

std::unique_ptr<Write> MakeAppend(const StoreTable& table, std::shared_ptr<Store> store,
                                  RowsToAppend rows, WriteCallback<AppendResult> callback) {
  return std::make_unique<AppendWrite>(table, std::move(store), std::move(rows),
                                       std::move(callback));
}

std::unique_ptr<Write> MakeRefusedAppend(absl::Status status, std::shared_ptr<AppendChain> chain,
                                         WriteCallback<AppendResult> callback) {
  return std::make_unique<RefusedAppend>(std::move(status), std::move(chain), std::move(callback));
}

std::unique_ptr<Write> MakeDeleteRows(const StoreTable& table, std::shared_ptr<Store> store,
                                      RowFilter filter, WriteCallback<DeleteRowsResult> callback) {
  return std::make_unique<DeleteRowsWrite>(table, std::move(store), std::move(filter),
                                           std::move(callback));
}

std::unique_ptr<Write> MakeUpdate(const StoreTable& table, std::shared_ptr<Store> store,
                                  StoreUpdate update, WriteCallback<StoreInfo> callback) {
  return std::make_unique<UpdateWrite>(table, std::move(store), std::move(update),
                                       std::move(callback));
}

std::unique_ptr<Write> MakeGetWriter(const StoreTable& table, std::shared_ptr<Store> store,
                                     std::string writer, WriteCallback<WriterInfo> callback) {
  return std::make_unique<GetWriterWrite>(table, std::move(store), std::move(writer),
                                          std::move(callback));
}

std::unique_ptr<Write> MakeCreateStore(StoreTable& table, std::uint64_t number, StoreConfig config,
                                       Store::Executor executor, std::int64_t store_count_max,
                                       WriteCallback<StoreInfo> callback) {
  return std::make_unique<CreateStoreWrite>(table, number, std::move(config), std::move(executor),
                                            store_count_max, std::move(callback));
}

std::unique_ptr<Write> MakeDeleteStore(StoreTable& table, std::string name,
                                       absl::AnyInvocable<void(absl::Status)> callback) {
  return std::make_unique<DeleteStoreWrite>(table, std::move(name), std::move(callback));
}

}  // namespace softlookup
