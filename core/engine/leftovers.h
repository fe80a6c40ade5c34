#ifndef SOFTLOOKUP_CORE_ENGINE_LEFTOVERS_H_
#define SOFTLOOKUP_CORE_ENGINE_LEFTOVERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"

namespace softlookup {

// Leftovers are the records of deleted stores that the log still keeps in table files. No store
// reads them, so damage to them shows in no store. `stores` are the stores of the log, ordered by
// number.

// Returns the numbers of the log's unfinished stores (docs/storage_format.md), in order. A crash
// leaves them. Returns none if their marks are damaged. UNAVAILABLE if they cannot be read for
// another reason.
absl::StatusOr<std::vector<std::uint64_t>> UnfinishedIn(const CommitLog& log);

// Deletes the records of the unfinished stores that are not among `stores`, and the marks of all
// unfinished stores. If the log refuses this, they stay, and the next start tries again. Call this
// when the stores are loaded, before calls can change them, and before ClearLeftovers().
void ClearUnfinished(const std::vector<NamedStore>& stores, CommitLog& log);

// Returns the largest number that a store, an unfinished one or a leftover may have. 0 if there is
// none. A new store gets a larger number, so that it never meets damage that a deleted one has
// left.
std::uint64_t LastNumberIn(const std::vector<NamedStore>& stores, const CommitLog& log);

// Deletes the leftovers of numbers up to `last_number` once more, so that `log` frees their disk.
// There are leftovers if a server stopped before their disk was free, or if its version never freed
// any. Then reads the leftovers that are still in table files, and all records of names and marks
// there. DATA_LOSS if one is damaged, UNAVAILABLE if one cannot be read for another reason. After
// an error, compaction must not begin, because it would read the same records.
//
// `last_number` is what LastNumberIn() returned. Call this when the stores are loaded, before calls
// can change them.
absl::Status ClearLeftovers(const std::vector<NamedStore>& stores, std::uint64_t last_number,
                            CommitLog& log);

// Lets `log` count the bytes of the leftovers (CommitLog::deleted_bytes()), and deletes nothing.
// Call this in place of ClearLeftovers(), or after an error of it.
void CountLeftovers(const std::vector<NamedStore>& stores, std::uint64_t last_number,
                    CommitLog& log);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LEFTOVERS_H_
