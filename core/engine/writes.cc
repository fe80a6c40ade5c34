#include "core/engine/writes.h"

#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/memories.h"
#include "core/engine/put_records.h"
#include "core/engine/range_rows.h"
#include "core/engine/store_write.h"

namespace softlookup {

void EndChain(AppendChain& chain, std::uint64_t last_to_run) {
  std::uint64_t seen = chain.last_to_run;
  while (last_to_run < seen && !chain.last_to_run.compare_exchange_weak(seen, last_to_run)) {
  }
}

namespace {

MatrixView View(const std::vector<float>& floats, std::int64_t cols) {
  return {
      .data = floats.data(), .rows = static_cast<std::int64_t>(floats.size()) / cols, .cols = cols};
}

// Runs `stage` for append `number` of its chain, and ends the chain if `stage` fails. If an append
// before it in the chain has failed, returns CANCELLED instead. `chain` may be null.
absl::Status StageInChain(AppendChain* chain, std::uint64_t number,
                          absl::FunctionRef<absl::Status()> stage) {
  if (chain == nullptr) return stage();
  if (number > chain->last_to_run) {
    return MakeError(reasons::kCancelled, "An append before this one on its stream has failed");
  }
  absl::Status status = stage();
  if (!status.ok()) EndChain(*chain, number);
  return status;
}

class RefusedAppend final : public Write {
 public:
  RefusedAppend(absl::Status status, std::shared_ptr<AppendChain> chain, std::uint64_t chain_number,
                WriteCallback<AppendResult> callback)
      : status_(std::move(status)),
        chain_(std::move(chain)),
        chain_number_(chain_number),
        callback_(std::move(callback)) {}

  absl::Status Stage(LogBatch*) override {
    return StageInChain(chain_.get(), chain_number_, [this] { return status_; });
  }
  void Publish() override {}
  void Rollback() override {}
  void Answer(absl::Status status) override {
    if (chain_ != nullptr) EndChain(*chain_, chain_number_);
    callback_(std::move(status));
  }

 private:
  const absl::Status status_;
  const std::shared_ptr<AppendChain> chain_;
  const std::uint64_t chain_number_;
  WriteCallback<AppendResult> callback_;
};

// Returns about how many bytes an append holds until it is answered. They include the running
// memories to return, which it holds only from Stage() on.
std::int64_t BytesOf(const RowsToAppend& rows, const StoreConfig& config) {
  std::size_t bytes = 4 * (rows.keys.size() + rows.values.size()) + 8 * rows.ids.size();
  for (const std::vector<std::string>& labels : rows.row_labels) {
    bytes += sizeof(labels) + labels.size() * sizeof(labels[0]);
    for (const std::string& label : labels) bytes += label.size();
  }
  return static_cast<std::int64_t>(bytes) +
         8 * static_cast<std::int64_t>(rows.memories.size()) * (config.key_dim + config.value_dim);
}

class AppendWrite final : public StoreWrite<AppendResult> {
 public:
  AppendWrite(CountedStores& stores, std::shared_ptr<Store> store, RowsToAppend rows,
              WriteCallback<AppendResult> callback)
      : StoreWrite(stores, std::move(store), std::move(callback)),
        rows_(std::move(rows)),
        bytes_(BytesOf(rows_, this->store().snapshot()->config())),
        reserved_(stores.budget, bytes_) {}

  absl::Status Stage(LogBatch* batch) override {
    AppendChain* chain = rows_.chain.get();
    return StageInChain(chain, rows_.chain_number, [&]() -> absl::Status {
      if (chain != nullptr) {
        // All appends of a chain go to the store of its first append. `first` is 0 if this is the
        // first append.
        const std::uint64_t first = std::exchange(chain->store_number, store().number());
        if (first != 0 && first != store().number()) {
          return StoreReplaced(store().snapshot()->config().name);
        }
      }
      return StoreWrite::Stage(batch);
    });
  }
  void Answer(absl::Status status) override {
    // The error may be the log's, or may come without Stage().
    if (!status.ok() && rows_.chain != nullptr) EndChain(*rows_.chain, rows_.chain_number);
    StoreWrite::Answer(std::move(status));
  }

  Sync sync() const override { return rows_.sync; }
  std::int64_t bytes() const override { return bytes_; }

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreEditor& editor) override {
    const std::uint64_t revision = editor.newest()->revision();
    SOFTLOOKUP_ASSIGN_OR_RETURN(outcome_, editor.Append(Batch(editor.newest()->config())));
    const Snapshot& snapshot = *outcome_.snapshot;
    changed_ = snapshot.revision() != revision;
    result_ = {.first_position = outcome_.first_position,
               .appended_count = outcome_.appended_count,
               .duplicate = outcome_.duplicate,
               .row_count = snapshot.row_count(),
               .revision = snapshot.revision()};
    for (const std::size_t index : rows_.memories) {
      result_.memories.push_back({.name = std::string(MemoryNameOf(snapshot.config(), index)),
                                  .memory = editor.ReadMemory(index),
                                  .end = snapshot.row_count(),
                                  .revision = snapshot.revision()});
    }
    return outcome_.snapshot;
  }
  void PutRecords(const StoreEditor& editor, LogBatch& batch) override {
    if (!changed_) return;
    PutAppend(store().number(), outcome_, Batch(editor.newest()->config()),
              editor.FindWriter(rows_.writer), batch);
  }
  // While the budget is exceeded, an append is refused even if its rows fit into room that its
  // store has already. An append that changes nothing, such as a duplicate, is not refused.
  bool IsBounded(const Snapshot&, const Snapshot&) const override { return changed_; }
  AppendResult MakeResult() override { return std::move(result_); }

 private:
  RowBatch Batch(const StoreConfig& config) const {
    return {.keys = View(rows_.keys, config.key_dim),
            .values = View(rows_.values, config.value_dim),
            .ids = rows_.ids,
            .row_labels = rows_.row_labels,
            .on_conflict = rows_.on_conflict,
            .writer = rows_.writer,
            .sequence = rows_.sequence};
  }

  const RowsToAppend rows_;
  const std::int64_t bytes_;
  const ByteBudget::Reserved reserved_;
  AppendOutcome outcome_;
  bool changed_ = false;
  AppendResult result_;
};

class DeleteRowsWrite final : public StoreWrite<DeleteRowsResult> {
 public:
  DeleteRowsWrite(CountedStores& stores, std::shared_ptr<Store> store, RowFilter filter,
                  WriteCallback<DeleteRowsResult> callback)
      : StoreWrite(stores, std::move(store), std::move(callback)), filter_(std::move(filter)) {}

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreEditor& editor) override {
    SOFTLOOKUP_ASSIGN_OR_RETURN(outcome_, editor.Delete(filter_));
    result_ = {.deleted_count = outcome_.deleted_count, .revision = outcome_.snapshot->revision()};
    return outcome_.snapshot;
  }
  void PutRecords(const StoreEditor&, LogBatch& batch) override {
    if (outcome_.deleted_count > 0) PutDeletion(store().number(), outcome_, batch);
  }
  // A deletion is never refused for its bytes, although masks and packed rows can make the store
  // grow.
  bool IsBounded(const Snapshot&, const Snapshot&) const override { return false; }
  DeleteRowsResult MakeResult() override { return result_; }

 private:
  const RowFilter filter_;
  DeleteOutcome outcome_;
  DeleteRowsResult result_;
};

class UpdateWrite final : public StoreWrite<StoreInfo> {
 public:
  UpdateWrite(CountedStores& stores, std::shared_ptr<Store> store, StoreUpdate update,
              WriteCallback<StoreInfo> callback)
      : StoreWrite(stores, std::move(store), std::move(callback)), update_(std::move(update)) {}

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreEditor& editor) override {
    return editor.Update([this](StoreConfig& config) {
      if (update_.score) {
        config.score = *update_.score == Score::kUnspecified ? Score::kScaledDot : *update_.score;
      }
      if (update_.temperature) config.temperature = *update_.temperature;
      if (update_.projection) config.projection = *update_.projection;
      if (update_.labels) config.labels = *update_.labels;
    });
  }
  void PutRecords(const StoreEditor&, LogBatch& batch) override {
    PutConfig(store().number(), snapshot(), store().create_time(), batch);
  }
  StoreInfo MakeResult() override { return store().InfoOf(snapshot()); }

 private:
  const StoreUpdate update_;
};

class SetRangesWrite final : public StoreWrite<std::shared_ptr<const Snapshot>> {
 public:
  SetRangesWrite(CountedStores& stores, std::shared_ptr<Store> store, Engine::RangesOf plan,
                 WriteCallback<std::shared_ptr<const Snapshot>> callback)
      : StoreWrite(stores, std::move(store), std::move(callback)), plan_(plan) {}

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreEditor& editor) override {
    SOFTLOOKUP_ASSIGN_OR_RETURN(std::vector<StoreRange> ranges,
                                PlanOf(*editor.newest(), store(), plan_));
    made_ = editor.Update([&](StoreConfig& config) { config.ranges = std::move(ranges); });
    return made_;
  }
  void PutRecords(const StoreEditor&, LogBatch& batch) override {
    PutConfig(store().number(), snapshot(), store().create_time(), batch);
  }
  std::shared_ptr<const Snapshot> MakeResult() override { return std::move(made_); }

 private:
  const Engine::RangesOf plan_;
  std::shared_ptr<const Snapshot> made_;
};

class GetWriterWrite final : public StoreWrite<WriterInfo> {
 public:
  GetWriterWrite(CountedStores& stores, std::shared_ptr<Store> store, std::string writer,
                 WriteCallback<WriterInfo> callback)
      : StoreWrite(stores, std::move(store), std::move(callback)), writer_(std::move(writer)) {}

  Sync sync() const override { return Sync::kNo; }

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreEditor& editor) override {
    const WriterState* state = editor.FindWriter(writer_);
    if (state == nullptr) {
      return MakeError(reasons::kWriterNotFound,
                       absl::StrCat("Writer \"", writer_, "\" has not appended to the store"),
                       {{"writer", writer_}});
    }
    result_ = {.last_sequence = state->last_sequence, .last_position = state->last_position};
    return editor.newest();
  }
  void PutRecords(const StoreEditor&, LogBatch&) override {}
  WriterInfo MakeResult() override { return result_; }

 private:
  const std::string writer_;
  WriterInfo result_;
};

}  // namespace

std::unique_ptr<Write> MakeAppend(CountedStores& stores, std::shared_ptr<Store> store,
                                  RowsToAppend rows, WriteCallback<AppendResult> callback) {
  return std::make_unique<AppendWrite>(stores, std::move(store), std::move(rows),
                                       std::move(callback));
}

std::unique_ptr<Write> MakeRefusedAppend(absl::Status status, std::shared_ptr<AppendChain> chain,
                                         std::uint64_t chain_number,
                                         WriteCallback<AppendResult> callback) {
  return std::make_unique<RefusedAppend>(std::move(status), std::move(chain), chain_number,
                                         std::move(callback));
}

std::unique_ptr<Write> MakeDeleteRows(CountedStores& stores, std::shared_ptr<Store> store,
                                      RowFilter filter, WriteCallback<DeleteRowsResult> callback) {
  return std::make_unique<DeleteRowsWrite>(stores, std::move(store), std::move(filter),
                                           std::move(callback));
}

std::unique_ptr<Write> MakeUpdate(CountedStores& stores, std::shared_ptr<Store> store,
                                  StoreUpdate update, WriteCallback<StoreInfo> callback) {
  return std::make_unique<UpdateWrite>(stores, std::move(store), std::move(update),
                                       std::move(callback));
}

std::unique_ptr<Write> MakeSetRanges(CountedStores& stores, std::shared_ptr<Store> store,
                                     Engine::RangesOf plan,
                                     WriteCallback<std::shared_ptr<const Snapshot>> callback) {
  return std::make_unique<SetRangesWrite>(stores, std::move(store), plan, std::move(callback));
}

std::unique_ptr<Write> MakeGetWriter(CountedStores& stores, std::shared_ptr<Store> store,
                                     std::string writer, WriteCallback<WriterInfo> callback) {
  return std::make_unique<GetWriterWrite>(stores, std::move(store), std::move(writer),
                                          std::move(callback));
}

}  // namespace softlookup
