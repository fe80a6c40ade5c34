#ifndef SOFTLOOKUP_CORE_ENGINE_STORE_WRITE_H_
#define SOFTLOOKUP_CORE_ENGINE_STORE_WRITE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/status_macros.h"
#include "core/engine/committer.h"
#include "core/engine/compactor.h"
#include "core/engine/counted_stores.h"
#include "core/storage/commit_log.h"
#include "core/store/snapshot.h"
#include "core/store/store.h"
#include "core/store/store_editor.h"

namespace softlookup {

// A write to the rows or the configuration of one store. Its answer is a Result.
template <typename Result>
class StoreWrite : public Write {
 public:
  StoreWrite(CountedStores& stores, std::shared_ptr<Store> store, WriteCallback<Result> callback)
      : stores_(stores), store_(std::move(store)), callback_(std::move(callback)) {}

  absl::Status Stage(LogBatch* batch) override {
    // Since the caller found the store, a write may have deleted or renamed it. The same write, or
    // a later one, may have given its name to another store.
    const std::shared_ptr<const Snapshot> shown = store_->snapshot();
    const std::string& name = shown->config().name;
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> current,
                                stores_.table.Find("store", name));
    if (current != store_) return StoreReplaced(name);
    SOFTLOOKUP_RETURN_IF_ERROR(WriteWithinBudget());
    if (batch != nullptr) PutRecords(store_->editor(), *batch);
    return absl::OkStatus();
  }
  void Publish() final {
    stores_.kept_snapshots.Keep(*store_, *snapshot_);
    store_->Publish(snapshot_);
    stores_.totals.AddWrite(snapshot_->config(), change_);
    if (may_drop_more_) stores_.compaction_queue.Add(store_);
    stores_.QueueForResidency(store_, *snapshot_);
  }
  void Rollback() final {
    store_->editor().Rollback();
    stores_.budget.Add(-growth_);
  }
  void Answer(absl::Status status) override {
    if (!status.ok()) return callback_(std::move(status));
    callback_(MakeResult());
  }

 protected:
  // Makes the write. Returns the snapshot that shows it.
  virtual absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreEditor& editor) = 0;
  // Adds the write's records to `batch`. Called once the write is made and within the budget.
  virtual void PutRecords(const StoreEditor& editor, LogBatch& batch) = 0;
  // Returns whether the budget may refuse a write that made the snapshot `after` from `before`.
  virtual bool IsBounded(const Snapshot& before, const Snapshot& after) const {
    return after.byte_size() > before.byte_size();
  }
  virtual Result MakeResult() = 0;

  const Store& store() const { return *store_; }
  const Snapshot& snapshot() const { return *snapshot_; }

 private:
  // Makes the write and counts its growth in the budget. How many bytes a write takes is known only
  // once it is made. A write that takes too many is rolled back to a savepoint, so that the writes
  // staged before it stay.
  absl::Status WriteWithinBudget() {
    StoreEditor& editor = store_->editor();
    ByteBudget& budget = stores_.budget;
    const std::shared_ptr<const Snapshot> before = editor.newest();
    std::optional<StoreEditor::Savepoint> savepoint;
    if (budget.has_limit()) savepoint = editor.MakeSavepoint();
    SOFTLOOKUP_ASSIGN_OR_RETURN(snapshot_, WriteTo(editor));
    const std::int64_t growth = static_cast<std::int64_t>(snapshot_->byte_size()) -
                                static_cast<std::int64_t>(before->byte_size());
    if (savepoint && IsBounded(*before, *snapshot_)) {
      absl::Status room = stores_.CheckRoom(growth, bytes());
      if (!room.ok()) {
        editor.RollbackTo(*savepoint);
        return room;
      }
    }
    change_ = {.rows = static_cast<std::int64_t>(snapshot_->row_count() - before->row_count()),
               .live_rows = static_cast<std::int64_t>(snapshot_->live_row_count()) -
                            static_cast<std::int64_t>(before->live_row_count())};
    may_drop_more_ = MayDropMore(*before, *snapshot_);
    growth_ = growth;
    budget.Add(growth_);
    return absl::OkStatus();
  }

  CountedStores& stores_;
  const std::shared_ptr<Store> store_;
  WriteCallback<Result> callback_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::int64_t growth_ = 0;  // Bytes by which the store grows.
  StoreChange change_;
  bool may_drop_more_ = false;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_STORE_WRITE_H_
