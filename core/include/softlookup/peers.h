#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PEERS_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PEERS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace softlookup {

// The SHA-256 of an entry, of its epoch and of all entries before it, as 64 hexadecimal digits. The
// epoch tells two entries apart that two primaries have made of the same write, because what became
// of one of them says nothing about the other.
using EntryDigest = std::string;

// An entry with its bytes. It is committed once the slot of its sequence has its digest.
struct Entry {
  // Maximum size of `bytes`.
  static constexpr std::size_t kBytesMax = std::size_t{1} << 30;

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

  // Says where `node` listens for other replicas, as HOST:PORT. Calls of a node whose address is
  // not known fail.
  virtual void SetAddress(const std::string& node, const std::string& address) {}

  // Has `node` sync the entry. OK: it has.
  virtual void Stage(const std::string& node, const Entry& entry,
                     absl::AnyInvocable<void(absl::Status)> done) = 0;
  // Asks `node` for the bytes of an entry. OUT_OF_RANGE: it has applied the entry, and no longer
  // has them.
  virtual void Fetch(const std::string& node, std::uint64_t sequence, const EntryDigest& digest,
                     absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) = 0;
};

// What the other replicas of a group ask of this one. Thread-safe. The callbacks run on any thread,
// also before the function has returned. After an error the caller may ask again.
class PeerRequests {
 public:
  virtual ~PeerRequests() = default;

  // Syncs the entry. OK: it is on the disk.
  virtual void OnStage(Entry entry, absl::AnyInvocable<void(absl::Status)> done) = 0;
  // Finds the bytes of an entry. OUT_OF_RANGE: this replica has applied the entry, and no longer
  // has them.
  virtual void OnFetch(std::uint64_t sequence, EntryDigest digest,
                       absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) = 0;
  // Makes a copy of this replica's records in `directory`, as CommitLog::CopyTo() does. Takes long.
  // UNAVAILABLE if this replica is not the primary.
  virtual absl::Status CopyRecordsTo(const std::string& directory) = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PEERS_H_
