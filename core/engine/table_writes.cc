#include "core/engine/table_writes.h"

#include <utility>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/engine/put_records.h"

namespace softlookup {
namespace {

// Ends a store that is deleted. Call this once no call finds it any more. Calls that wait for one
// of its revisions get `status`.
void Retire(Store& store, absl::Status status, CountedStores& stores) {
  const std::shared_ptr<const Snapshot> last = store.snapshot();
  stores.totals.RemoveStore(*last);
  // The bytes of the store count until the last of its snapshots is destroyed.
  store.editor().lease().OnEnd([&budget = stores.budget, bytes = last->byte_size()] {
    budget.Add(-static_cast<std::int64_t>(bytes));
  });
  store.Close(std::move(status));
}

class CreateStoreWrite final : public Write {
 public:
  CreateStoreWrite(CountedStores& stores, std::uint64_t number, StoreConfig config,
                   Store::Executor executor, std::int64_t store_count_max,
                   WriteCallback<StoreInfo> callback)
      : stores_(stores),
        number_(number),
        config_(std::move(config)),
        executor_(std::move(executor)),
        store_count_max_(store_count_max),
        callback_(std::move(callback)) {}

  // Other writes may be staged in the same group: none of them finds the store before Publish(),
  // and its name is reserved.
  absl::Status Stage(LogBatch* batch) override {
    SOFTLOOKUP_RETURN_IF_ERROR(stores_.table.Reserve(config_.name, store_count_max_));
    store_ = std::make_shared<Store>(number_, std::make_unique<StoreEditor>(config_), absl::Now(),
                                     executor_);
    absl::Status room = stores_.budget.Check(StoreBytes(), /*own_reserved_bytes=*/0);
    if (!room.ok()) {
      stores_.table.Release(config_.name);
      return room;
    }
    stores_.budget.Add(StoreBytes());
    if (batch != nullptr) PutNewStore(number_, *store_->snapshot(), store_->create_time(), *batch);
    return absl::OkStatus();
  }
  void Publish() override {
    stores_.table.Add(config_.name, store_);
    stores_.totals.AddStore(*store_->snapshot());
  }
  void Rollback() override {
    stores_.table.Release(config_.name);
    stores_.budget.Add(-StoreBytes());
  }
  void Answer(absl::Status status) override {
    if (!status.ok()) return callback_(std::move(status));
    callback_(store_->info());
  }

 private:
  // Returns the bytes of the store, which has no rows until it is published.
  std::int64_t StoreBytes() const {
    return static_cast<std::int64_t>(store_->snapshot()->byte_size());
  }

  CountedStores& stores_;
  const std::uint64_t number_;
  const StoreConfig config_;
  const Store::Executor executor_;
  const std::int64_t store_count_max_;
  WriteCallback<StoreInfo> callback_;
  std::shared_ptr<Store> store_;
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

  // No CreateStoreWrite is then staged at the same time, so no name is reserved.
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
    // The rename ends compactions under the old name.
    stores_.compaction_queue.Add(renamed);
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
                                       StoreConfig config, Store::Executor executor,
                                       std::int64_t store_count_max,
                                       WriteCallback<StoreInfo> callback) {
  return std::make_unique<CreateStoreWrite>(stores, number, std::move(config), std::move(executor),
                                            store_count_max, std::move(callback));
}

std::unique_ptr<Write> MakeDeleteStore(CountedStores& stores, std::string name,
                                       absl::AnyInvocable<void(absl::Status)> callback) {
  return std::make_unique<DeleteStoreWrite>(stores, std::move(name), std::move(callback));
}

std::unique_ptr<Write> MakeRenameStore(CountedStores& stores, StoreRename rename,
                                       WriteCallback<StoreRenamed> callback) {
  return std::make_unique<RenameStoreWrite>(stores, std::move(rename), std::move(callback));
}

}  // namespace softlookup
