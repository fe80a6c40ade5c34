#include "core/engine/table_writes.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/engine/entry_replay.h"
#include "core/engine/put_records.h"

namespace softlookup {
namespace {

// Adds a store to the table: a new one without rows, or one whose records are in the log already.
class AddStoreWrite final : public Write {
 public:
  // `is_new`: the store is new, without rows. `reserved` holds the bytes of the store in the
  // budget. Null: none are reserved.
  AddStoreWrite(CountedStores& stores, std::shared_ptr<Store> store, std::uint64_t replay_count,
                bool is_new, std::optional<ByteBudget::Reserved>* reserved,
                std::int64_t store_count_max, WriteCallback<StoreInfo> callback)
      : stores_(stores),
        store_(std::move(store)),
        snapshot_(store_->snapshot()),
        replay_count_(replay_count),
        is_new_(is_new),
        reserved_(reserved),
        store_count_max_(store_count_max),
        callback_(std::move(callback)) {}

  // Other writes may be staged in the same group: none of them finds the store before Publish(),
  // and its name is reserved.
  absl::Status Stage(LogBatch* batch) override {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckNoReplaySince(replay_count_, stores_));
    SOFTLOOKUP_RETURN_IF_ERROR(stores_.table.Reserve(name(), store_count_max_));
    // Reserved bytes were checked when they were reserved.
    if (reserved_ == nullptr) {
      absl::Status room = stores_.CheckRoom(StoreBytes(), /*own_reserved_bytes=*/0);
      if (!room.ok()) {
        stores_.table.Release(name());
        return room;
      }
    }
    stores_.budget.Add(StoreBytes());
    if (reserved_ != nullptr) reserved_->reset();
    if (batch == nullptr) return absl::OkStatus();
    if (is_new_) {
      PutNewStore(store_->number(), *snapshot_, store_->create_time(), *batch);
    } else {
      PutFinished(store_->number(), *snapshot_, store_->create_time(), *batch);
    }
    return absl::OkStatus();
  }
  void Publish() override {
    stores_.table.Add(name(), store_);
    stores_.totals.AddStore(*snapshot_);
    if (!is_new_) stores_.compaction_queue.Add(store_);
    stores_.QueueForResidency(store_, *snapshot_);
  }
  void Rollback() override {
    stores_.table.Release(name());
    stores_.budget.Add(-StoreBytes());
  }
  void Answer(absl::Status status) override {
    if (!status.ok()) return callback_(std::move(status));
    callback_(store_->InfoOf(*snapshot_));
  }

 private:
  const std::string& name() const { return snapshot_->config().name; }
  // Returns the bytes of the store, to which nothing is written until it is published.
  std::int64_t StoreBytes() const { return static_cast<std::int64_t>(snapshot_->byte_size()); }

  CountedStores& stores_;
  const std::shared_ptr<Store> store_;
  const std::shared_ptr<const Snapshot> snapshot_;
  const std::uint64_t replay_count_;
  const bool is_new_;
  std::optional<ByteBudget::Reserved>* const reserved_;
  const std::int64_t store_count_max_;
  WriteCallback<StoreInfo> callback_;
};

class DeleteStoreWrite final : public Write {
 public:
  DeleteStoreWrite(CountedStores& stores, std::string name,
                   absl::AnyInvocable<void(absl::Status)> callback)
      : stores_(stores), name_(std::move(name)), callback_(std::move(callback)) {}

  bool alone() const override { return true; }

  absl::Status Stage(LogBatch* batch) override {
    damaged_ = stores_.table.FindDamaged(name_);
    if (damaged_ == nullptr) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(store_, stores_.table.Find("name", name_));
    }
    if (batch == nullptr) return absl::OkStatus();
    DeleteRecords(damaged_ == nullptr ? store_->number() : damaged_->number, *batch);
    return absl::OkStatus();
  }
  void Publish() override {
    stores_.table.Remove(name_);
    if (damaged_ != nullptr) return stores_.totals.RemoveDamagedStore();
    Retire(*store_, StoreNotFound(name_), stores_);
  }
  void Rollback() override {}
  void Answer(absl::Status status) override { callback_(std::move(status)); }

 private:
  CountedStores& stores_;
  const std::string name_;
  absl::AnyInvocable<void(absl::Status)> callback_;
  // Set by Stage(), one of the two.
  std::shared_ptr<Store> store_;
  std::shared_ptr<const DamagedStore> damaged_;
};

class RenameStoreWrite final : public Write {
 public:
  RenameStoreWrite(CountedStores& stores, StoreRename rename, WriteCallback<StoreRenamed> callback)
      : stores_(stores), rename_(std::move(rename)), callback_(std::move(callback)) {}

  // No AddStoreWrite is then staged at the same time, so no name is reserved.
  bool alone() const override { return true; }

  absl::Status Stage(LogBatch* batch) override {
    SOFTLOOKUP_ASSIGN_OR_RETURN(store_, stores_.table.Find("store", rename_.name));
    SOFTLOOKUP_RETURN_IF_ERROR(FindReplaced());
    StoreEditor& editor = store_->editor();
    const std::shared_ptr<const Snapshot> before = editor.newest();
    const std::shared_ptr<const Snapshot> after =
        editor.Update([this](StoreConfig& config) { config.name = rename_.new_name; });
    growth_ = static_cast<std::int64_t>(after->byte_size()) -
              static_cast<std::int64_t>(before->byte_size());
    stores_.budget.Add(growth_);
    if (batch != nullptr) {
      if (replaced_ != nullptr) DeleteRecords(replaced_->number(), *batch);
      PutName(store_->number(), rename_.new_name, *batch);
      PutConfig(store_->number(), *after, store_->create_time(), *batch);
    }
    return absl::OkStatus();
  }
  void Publish() override {
    const std::shared_ptr<Store> renamed = store_->HandOver();
    stores_.table.Rename(rename_.name, rename_.new_name, renamed);
    store_->Close(StoreNotFound(rename_.name));
    stores_.kept_snapshots.Drop(*store_);
    // The rename ends a compaction under the old name, so the store is queued again.
    stores_.compaction_queue.Add(renamed);
    stores_.QueueForResidency(renamed, *renamed->snapshot());
    result_.store = renamed->info();
    if (replaced_ == nullptr) return;
    result_.replaced = replaced_->info();
    Retire(*replaced_, StoreReplaced(rename_.new_name), stores_);
  }
  void Rollback() override {
    store_->editor().Rollback();
    stores_.budget.Add(-growth_);
  }
  void Answer(absl::Status status) override {
    if (!status.ok()) return callback_(std::move(status));
    callback_(std::move(result_));
  }

 private:
  // Sets replaced_ to the store that has the new name, if there is one.
  absl::Status FindReplaced() {
    absl::StatusOr<std::shared_ptr<Store>> found = stores_.table.Find("new_name", rename_.new_name);
    if (absl::IsNotFound(found.status())) return absl::OkStatus();
    // The name of a damaged store is taken, too.
    if (!rename_.replace) return StoreExists(rename_.new_name);
    SOFTLOOKUP_ASSIGN_OR_RETURN(replaced_, std::move(found));
    return absl::OkStatus();
  }

  CountedStores& stores_;
  const StoreRename rename_;
  WriteCallback<StoreRenamed> callback_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<Store> replaced_;  // Null: no store has the new name.
  std::int64_t growth_ = 0;          // Bytes by which the store grows.
  StoreRenamed result_;
};

}  // namespace

std::unique_ptr<Write> MakeCreateStore(CountedStores& stores, std::uint64_t number,
                                       std::uint64_t replay_count, StoreConfig config,
                                       Store::Executor executor, std::int64_t store_count_max,
                                       WriteCallback<StoreInfo> callback) {
  auto store = std::make_shared<Store>(number, std::make_unique<StoreEditor>(std::move(config)),
                                       absl::Now(), std::move(executor));
  return std::make_unique<AddStoreWrite>(stores, std::move(store), replay_count, /*is_new=*/true,
                                         /*reserved=*/nullptr, store_count_max,
                                         std::move(callback));
}

std::unique_ptr<Write> MakeAddStore(CountedStores& stores, std::shared_ptr<Store> store,
                                    std::uint64_t replay_count,
                                    std::optional<ByteBudget::Reserved>& reserved,
                                    std::int64_t store_count_max,
                                    WriteCallback<StoreInfo> callback) {
  return std::make_unique<AddStoreWrite>(stores, std::move(store), replay_count, /*is_new=*/false,
                                         &reserved, store_count_max, std::move(callback));
}

std::unique_ptr<Write> MakeDeleteStore(CountedStores& stores, std::string name,
                                       absl::AnyInvocable<void(absl::Status)> callback) {
  return std::make_unique<DeleteStoreWrite>(stores, std::move(name), std::move(callback));
}

std::unique_ptr<Write> MakeRenameStore(CountedStores& stores, StoreRename rename,
                                       WriteCallback<StoreRenamed> callback) {
  return std::make_unique<RenameStoreWrite>(stores, std::move(rename), std::move(callback));
}

void Retire(Store& store, absl::Status status, CountedStores& stores) {
  const std::shared_ptr<const Snapshot> last = store.snapshot();
  stores.totals.RemoveStore(*last);
  // The bytes of the store count until the last of its snapshots is destroyed.
  store.editor().lease().OnEnd([&budget = stores.budget, bytes = last->byte_size()] {
    budget.Add(-static_cast<std::int64_t>(bytes));
  });
  store.Close(std::move(status));
  stores.kept_snapshots.Drop(store);
}

}  // namespace softlookup
