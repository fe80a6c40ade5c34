#ifndef SOFTLOOKUP_CORE_REPLICATION_PEERS_H_
#define SOFTLOOKUP_CORE_REPLICATION_PEERS_H_

#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/replication/group_records.h"

namespace softlookup {

// An entry with its bytes. It is committed once the slot of its sequence has its digest.
struct Entry {
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  EntryDigest previous;
  EntryDigest digest;
  std::string bytes;
};

// The other replicas of a group. The caller must call these functions on one thread. The callbacks
// run on the same thread, after the function has returned. An error tells nothing about what the
// other replica has done.
class Peers {
 public:
  virtual ~Peers() = default;

  // Has `node` sync the entry. OK: it has.
  virtual void Stage(const std::string& node, const Entry& entry,
                     absl::AnyInvocable<void(absl::Status)> done) = 0;
  // Asks `node` for the bytes of an entry. OUT_OF_RANGE: it has applied the entry, and no longer
  // has them.
  virtual void Fetch(const std::string& node, std::uint64_t sequence, const EntryDigest& digest,
                     absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_PEERS_H_
