#ifndef SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_
#define SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// The stores of an engine, by name. Thread-safe.
class StoreTable {
 public:
  // Returns the store. `field` is the request's field that holds `name`. Errors: STORE_NOT_FOUND;
  // INVALID_NAME, which names `field`; for a damaged store, the error that AddLoaded() was given.
  absl::StatusOr<std::shared_ptr<Store>> Find(absl::string_view field,
                                              absl::string_view name) const;
  // Returns at most `count_max` stores whose name starts with `prefix` and comes after `after`.
  // Leaves out damaged stores.
  ListResult List(absl::string_view prefix, absl::string_view after, std::int64_t count_max) const;

  // Reserves `name` for a new store until Add() or Release(). Find() does not see the name before
  // Add(). STORE_EXISTS if `name` is taken or reserved. TOO_MANY_STORES if `count_max` names are
  // taken or reserved already.
  absl::Status Reserve(const std::string& name, std::int64_t count_max);
  void Release(const std::string& name);
  // Adds a new store and ends the reservation of its name. There must be no store of this name.
  void Add(const std::string& name, std::shared_ptr<Store> store);
  // Adds a store that was loaded from the log. Call this for all stores of the log before any other
  // method that takes a name. If the store is damaged, `store` is the error that Find() then
  // returns.
  void AddLoaded(const std::string& name, absl::StatusOr<std::shared_ptr<Store>> store);
  // Removes the store `name`, which must exist and not be damaged.
  void Remove(absl::string_view name);
  // Removes `name`, which must exist, and adds `store` under `new_name`, in one step. A store that
  // has `new_name` is removed in the same step. `new_name` must not be reserved.
  void Rename(const std::string& name, const std::string& new_name, std::shared_ptr<Store> store);

 private:
  mutable absl::Mutex mutex_;
  absl::btree_map<std::string, absl::StatusOr<std::shared_ptr<Store>>> stores_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> reserved_ ABSL_GUARDED_BY(mutex_);
};

absl::Status StoreNotFound(absl::string_view name);
// STORE_NOT_FOUND for a call whose store no longer has its name: it was deleted, renamed or
// replaced.
absl::Status StoreReplaced(absl::string_view name);
absl::Status StoreExists(absl::string_view name);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_
