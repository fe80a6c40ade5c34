#ifndef SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_
#define SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// A store whose records are damaged.
struct DamagedStore {
  std::uint64_t number = 0;
  StoreInfo info;      // See StoreInfo for what is set.
  absl::Status error;  // The error of calls to the store.
};

// The stores of an engine, by name. Thread-safe.
class StoreTable {
 public:
  // Returns the store. `field` is the request's field that holds `name`. Errors: STORE_NOT_FOUND;
  // INVALID_NAME, which names `field`; for a damaged store, its `error`.
  absl::StatusOr<std::shared_ptr<Store>> Find(absl::string_view field,
                                              absl::string_view name) const;
  // Returns the damaged store `name`, or null if there is none.
  std::shared_ptr<const DamagedStore> FindDamaged(absl::string_view name) const;
  // Returns the name of the store with this number, damaged or not. Empty if there is none.
  std::string NameOf(std::uint64_t number) const;
  // Returns the information on a store, damaged or not. Errors: STORE_NOT_FOUND; INVALID_NAME,
  // which names `field`.
  absl::StatusOr<StoreInfo> Info(absl::string_view field, absl::string_view name) const;
  // Returns at most `count_max` stores whose name starts with `prefix` and comes after `after`,
  // damaged ones included.
  ListResult List(absl::string_view prefix, absl::string_view after, std::int64_t count_max) const;
  // Returns all stores, by name, without the damaged ones.
  std::vector<std::shared_ptr<Store>> Stores() const;
  // Returns the names of the damaged stores, ascending.
  std::vector<std::string> DamagedNames() const;

  // Returns the error that Reserve() would return now.
  absl::Status CheckNew(const std::string& name, std::int64_t count_max) const;
  // Reserves `name` for a new store until Add() or Release(). Find() does not see the name before
  // Add(). STORE_EXISTS if `name` is taken or reserved. TOO_MANY_STORES if `count_max` names are
  // taken or reserved already.
  absl::Status Reserve(const std::string& name, std::int64_t count_max);
  void Release(const std::string& name);
  // Adds a new store and ends the reservation of its name. There must be no store of this name.
  void Add(const std::string& name, std::shared_ptr<Store> store);
  // The next two add a store that was loaded from the log. Call them for all stores of the log
  // before any other method that takes a name.
  void AddLoaded(const std::string& name, std::shared_ptr<Store> store);
  void AddDamaged(const std::string& name, DamagedStore store);
  // Removes the store `name`, which must exist.
  void Remove(absl::string_view name);
  // Removes the store `name`, which must exist, and adds `store` under `new_name`, in one step. A
  // store that has `new_name` is removed in the same step. `new_name` must not be reserved. Neither
  // name may be that of a damaged store.
  void Rename(const std::string& name, const std::string& new_name, std::shared_ptr<Store> store);

 private:
  using Entry = std::variant<std::shared_ptr<Store>, std::shared_ptr<const DamagedStore>>;

  absl::Status CheckNewLocked(const std::string& name, std::int64_t count_max) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  static bool IsWhole(const Entry& entry);
  static std::uint64_t NumberOf(const Entry& entry);
  static StoreInfo InfoOf(const Entry& entry);

  mutable absl::Mutex mutex_;
  absl::btree_map<std::string, Entry> stores_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::uint64_t, std::string> names_ ABSL_GUARDED_BY(mutex_);  // By number.
  absl::flat_hash_set<std::string> reserved_ ABSL_GUARDED_BY(mutex_);
};

absl::Status StoreNotFound(absl::string_view name);
// STORE_NOT_FOUND for a call whose store no longer has its name: it was deleted, renamed or
// replaced.
absl::Status StoreReplaced(absl::string_view name);
absl::Status StoreExists(absl::string_view name);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_
