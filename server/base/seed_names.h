#ifndef SOFTLOOKUP_SERVER_BASE_SEED_NAMES_H_
#define SOFTLOOKUP_SERVER_BASE_SEED_NAMES_H_

namespace softlookup::server {

// What a replica keeps in its data directory beside the engine's files: copies of all records,
// which replicas give each other.
inline constexpr char kSeedIncoming[] = "seed-incoming";  // What has come so far.
inline constexpr char kSeedComplete[] = "seed-complete";  // All has come, and is being moved up.
inline constexpr char kSeedOutgoing[] = "seed-outgoing";  // Copies for other replicas.
inline constexpr char kSeedAgain[] = "seed-again";        // The directory is too far behind.

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_SEED_NAMES_H_
