#ifndef SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_
#define SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// The stores of an engine by name. Thread-safe.
class StoreTable {
 public:
  // STORE_NOT_FOUND, INVALID_NAME about `field`, where the name stands in the request, or what is
  // wrong with the store.
  absl::StatusOr<std::shared_ptr<Store>> Find(absl::string_view field,
                                              absl::string_view name) const;
  // At most `count_max` stores that are served and whose name starts with `prefix` and comes after
  // `after`.
  ListResult List(absl::string_view prefix, absl::string_view after, std::int64_t count_max) const;

  // STORE_EXISTS if the name is taken, TOO_MANY_STORES if there are `count_max` already.
  absl::Status CheckFree(absl::string_view name, std::int64_t count_max) const;
  // There is no store of this name yet. One that cannot be served is its error.
  void Add(const std::string& name, absl::StatusOr<std::shared_ptr<Store>> store);
  // There is a store of this name.
  void Remove(absl::string_view name);

 private:
  mutable absl::Mutex mutex_;
  absl::btree_map<std::string, absl::StatusOr<std::shared_ptr<Store>>> stores_
      ABSL_GUARDED_BY(mutex_);
};

absl::Status StoreNotFound(absl::string_view name);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_
