#ifndef SOFTLOOKUP_CORE_REPLICATION_ENTRY_STORE_H_
#define SOFTLOOKUP_CORE_REPLICATION_ENTRY_STORE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "softlookup/peers.h"

namespace softlookup {

// The last entry that a replica has applied. Sequence 0 and an empty digest: none.
struct AppliedEntry {
  std::uint64_t sequence = 0;
  EntryDigest digest;

  bool operator==(const AppliedEntry&) const = default;
};

// The entries and the records of one replica, on its disk. Not thread-safe.
class EntryStore {
 public:
  virtual ~EntryStore() = default;

  // Keeps and syncs an entry, under its sequence and its epoch.
  virtual absl::Status Stage(const Entry& entry) = 0;
  // Returns the staged entry of that sequence and epoch; nullopt if there is none.
  virtual std::optional<Entry> Staged(std::uint64_t sequence, std::uint64_t epoch) const = 0;
  // Returns the staged entry of that sequence and digest. NOT_FOUND if there is none. After another
  // error there is one that cannot be read: DATA_LOSS if it is damaged.
  virtual absl::StatusOr<Entry> Find(std::uint64_t sequence, const EntryDigest& digest) const = 0;
  // Returns whether Apply() can be called for an entry of another replica now. Readers may still be
  // shown the one before.
  virtual bool is_ready() const { return true; }
  // Applies an entry to the records, which readers then see, and makes it applied(). A power cut
  // can undo it, together with all that were applied later. The entry must be staged, so that it
  // can then be applied again. It must follow applied(). DATA_LOSS if the entry's bytes cannot be
  // understood. After other errors another call can succeed.
  virtual absl::Status Apply(const Entry& entry) = 0;
  // Makes applied() outlive a power cut.
  virtual absl::Status Sync() = 0;
  // Forgets the staged entries of all sequences below `sequence`. May forget other entries that are
  // applied, too, if all take much room.
  virtual void Trim(std::uint64_t sequence) = 0;

  virtual AppliedEntry applied() const = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATION_ENTRY_STORE_H_
