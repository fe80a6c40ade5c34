#ifndef SOFTLOOKUP_SERVER_BASE_DATA_FILES_H_
#define SOFTLOOKUP_SERVER_BASE_DATA_FILES_H_

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace softlookup::server {

// Names in a data directory.

// The file through which the engine finds all its other files.
inline constexpr char kRootFile[] = "CURRENT";
// Returns whether `name` is a number and then `suffix`, as the names of the engine's files are.
inline bool IsNumberedFile(absl::string_view name, absl::string_view suffix) {
  return absl::ConsumeSuffix(&name, suffix) && !name.empty() &&
         std::ranges::all_of(
             name, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

// What a replica keeps beside the engine's files: copies of all records, which replicas give each
// other.
inline constexpr char kSeedIncoming[] = "seed-incoming";  // What has come so far.
inline constexpr char kSeedComplete[] = "seed-complete";  // All has come, and is being moved up.
inline constexpr char kSeedOutgoing[] = "seed-outgoing";  // Copies for other replicas.
inline constexpr char kSeedAgain[] = "seed-again";        // The directory is too far behind.

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_DATA_FILES_H_
