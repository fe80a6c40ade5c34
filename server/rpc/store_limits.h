#ifndef SOFTLOOKUP_SERVER_RPC_STORE_LIMITS_H_
#define SOFTLOOKUP_SERVER_RPC_STORE_LIMITS_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/security/authenticator.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// The class and the function below check an identity's limits on stores. A limit counts all stores
// that the identity's grants cover, no matter who created them.

// The names that calls are giving to new or renamed stores now. They count for identities' limits,
// so that creations at the same time, or beside renames, cannot exceed a limit. Thread-safe.
class StoreCreations {
 public:
  // Keeps a name in StoreCreations for the lifetime of this object.
  class Reservation {
   public:
    Reservation(StoreCreations& creations, std::string name)
        : creations_(creations), name_(std::move(name)) {}
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

   private:
    StoreCreations& creations_;
    const std::string name_;
  };

  // Call this before `engine` creates the store `name`, and keep the reservation until it has.
  // IDENTITY_LIMIT if the caller's grants of at least `manage` already cover as many other stores,
  // existing or being created or renamed, as the caller may have.
  absl::StatusOr<std::unique_ptr<Reservation>> Reserve(Engine& engine, const Caller& caller,
                                                       const std::string& name);
  // Call this before an engine renames a store to `name`, and keep the reservation until it has.
  // Reserve() lists the stores in several parts, so the list may miss a store that is being
  // renamed, or have it under both names. With the reservation, Reserve() counts the new name in
  // any case. The store is then never left out, but it may count twice. Refuses nothing: a rename
  // adds no store, and needs the role `manage` for both names.
  std::unique_ptr<Reservation> ReserveNewName(const std::string& name);

 private:
  // Returns IDENTITY_LIMIT if, with a new store `name`, the caller would have too many stores. Does
  // not count a store that has this name already: the engine refuses to create it. Counts a name
  // once, even if several calls are creating it.
  absl::Status CheckCount(Engine& engine, const Caller& caller, const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  // A name stands here once for each call that gives it to a store.
  std::multiset<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

// IDENTITY_LIMIT if `growth` more bytes would exceed the caller's limit on the bytes of all stores
// that its grants of at least `write` cover. Thread-safe. Reads the stores' sizes at most about
// once per second, and adds the growth of the calls in between.
absl::Status CheckStoreGrowth(Engine& engine, const Caller& caller, std::int64_t growth);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STORE_LIMITS_H_
