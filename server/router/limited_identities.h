#ifndef SOFTLOOKUP_SERVER_ROUTER_LIMITED_IDENTITIES_H_
#define SOFTLOOKUP_SERVER_ROUTER_LIMITED_IDENTITIES_H_

#include <cstddef>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Which identities nodes have lately refused, because they had used up their rates. Thread-safe.
class LimitedIdentities {
 public:
  // For how long a refusal is remembered.
  static constexpr absl::Duration kTime = absl::Seconds(1);

  explicit LimitedIdentities(std::size_t identities_max = 4096) : identities_max_(identities_max) {}

  // A node has refused `identity` at `now`, by the steady clock.
  void Note(absl::string_view identity, absl::Time now) {
    absl::MutexLock lock(&mutex_);
    if (until_.size() >= identities_max_) until_.clear();
    until_[identity] = now + kTime;
  }
  bool Has(absl::string_view identity, absl::Time now) const {
    absl::ReaderMutexLock lock(&mutex_);
    const auto found = until_.find(identity);
    return found != until_.end() && now < found->second;
  }

 private:
  const std::size_t identities_max_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, absl::Time> until_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_LIMITED_IDENTITIES_H_
