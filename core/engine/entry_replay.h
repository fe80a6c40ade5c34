#ifndef SOFTLOOKUP_CORE_ENGINE_ENTRY_REPLAY_H_
#define SOFTLOOKUP_CORE_ENGINE_ENTRY_REPLAY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/engine/committer.h"
#include "core/engine/counted_stores.h"
#include "core/storage/commit_log.h"
#include "core/store/store.h"

namespace softlookup {

// Makes the changes of an entry, which another replica has made, in the stores in memory. All
// referred to must outlive this.
struct EntryReplay {
  const CommitLog& log;
  CountedStores& stores;
  Store::Executor executor;                       // That of new stores.
  std::atomic<std::uint64_t>& last_store_number;  // Becomes at least that of each new store.

  // `log` must have the changes of this entry, and of none after it. Lookups see each write of the
  // entry by itself. DATA_LOSS if the entry does not follow what the stores have. They then have a
  // part of the entry.
  absl::Status Replay(absl::string_view entry) const;
};

// Returns an error if entries of other replicas have changed the stores since replay_count was
// `count`. A write that was prepared outside of its Stage(), such as with a new number or with keys
// of records, may no longer fit then.
absl::Status CheckNoReplaySince(std::uint64_t count, const CountedStores& stores);

// Makes the write that replays `entry`. `done` gets the result of EntryReplay::Replay(), or an
// error if the entry was not replayed. The write puts no records.
std::unique_ptr<Write> MakeReplay(EntryReplay replay, std::shared_ptr<const std::string> entry,
                                  absl::AnyInvocable<void(absl::Status)> done);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_ENTRY_REPLAY_H_
