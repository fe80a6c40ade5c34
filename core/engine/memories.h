#ifndef SOFTLOOKUP_CORE_ENGINE_MEMORIES_H_
#define SOFTLOOKUP_CORE_ENGINE_MEMORIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/store/snapshot.h"
#include "softlookup/memory.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Returns the index of the store's memory `name` (empty: average), numbered as in
// Snapshot::MemoryAsOf. MEMORY_NOT_FOUND if there is none.
absl::StatusOr<std::size_t> FindMemory(const StoreConfig& config, absl::string_view name);
absl::string_view MemoryNameOf(const StoreConfig& config, std::size_t index);

// Returns the memory over the rows at positions [begin, end) of the snapshot, deleted ones
// included. Leaves `incarnation` at 0. The errors are those of Snapshot::MemoryAsOf, and
// INVALID_OPTION if `begin` is above 0 and memories of this kind have no windows.
absl::StatusOr<MemoryState> ReadMemory(const Snapshot& snapshot, std::size_t index,
                                       std::uint64_t begin, std::uint64_t end);

// Returns the memory `name` over the rows that a client asks for. A `begin` that is not set stands
// for position 0. An `end` that is not set stands for the end of the snapshot's rows. Also returns
// the errors of FindMemory() and of RowSelection::Make().
absl::StatusOr<MemoryState> ReadMemory(const Snapshot& snapshot, absl::string_view name,
                                       std::optional<std::uint64_t> begin,
                                       std::optional<std::uint64_t> end);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_MEMORIES_H_
