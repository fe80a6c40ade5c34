#include "core/engine/memories.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/store/row_selection.h"
#include "softlookup/engine.h"

namespace softlookup {

absl::StatusOr<std::size_t> FindMemory(const StoreConfig& config, absl::string_view name) {
  if (name.empty() || name == kAverageMemory) return 0;
  for (std::size_t i = 0; i < config.memories.size(); ++i) {
    if (config.memories[i].name == name) return i + 1;
  }
  return MakeError(reasons::kMemoryNotFound,
                   absl::StrCat("The store keeps no memory \"", name, "\""),
                   {{"memory", std::string(name)}});
}

absl::string_view MemoryNameOf(const StoreConfig& config, std::size_t index) {
  return index == 0 ? kAverageMemory : absl::string_view(config.memories[index - 1].name);
}

absl::StatusOr<MemoryState> ReadMemory(const Snapshot& snapshot, std::size_t index,
                                       std::uint64_t begin, std::uint64_t end) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::unique_ptr<RunningMemory> memory,
                              snapshot.MemoryAsOf(end, index));
  MemoryState state{.name = std::string(MemoryNameOf(snapshot.config(), index)),
                    .begin = begin,
                    .end = end,
                    .revision = snapshot.revision()};
  if (begin == 0) {
    state.memory = memory->Read();
  } else if (memory->has_windows()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::unique_ptr<RunningMemory> before,
                                snapshot.MemoryAsOf(begin, index));
    state.memory = memory->ReadSince(*before);
  } else {
    return InvalidOption("begin", absl::StrCat("only AVERAGE memories have windows; \"", state.name,
                                               "\" always begins at 0"));
  }
  return state;
}

absl::StatusOr<MemoryState> ReadMemory(const Snapshot& snapshot, absl::string_view name,
                                       std::optional<std::uint64_t> begin,
                                       std::optional<std::uint64_t> end) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::size_t index, FindMemory(snapshot.config(), name));
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const RowSelection range,
      RowSelection::Make(snapshot, {.begin = begin, .end = end}, /*prefix=*/""));
  return ReadMemory(snapshot, index, range.begin(), range.end());
}

}  // namespace softlookup
