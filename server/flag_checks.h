#ifndef SOFTLOOKUP_SERVER_FLAG_CHECKS_H_
#define SOFTLOOKUP_SERVER_FLAG_CHECKS_H_

#include <optional>
#include <string>

#include "server/flags.h"

namespace softlookup::server {

// These functions check the flags once all values are parsed. Each returns the first error that it
// finds, as a sentence for the operator, or nullopt if it finds none.

// Checks that all numbers are finite. The error begins with the flag and ": ".
std::optional<std::string> NonFiniteFlag(const Flags& flags);

// Checks that no flags contradict each other, that --data-dir is not empty, and that neither
// --backup-dir nor the directory of --audit-log is --data-dir. Compares directories after following
// links. `is_ephemeral`:
// --ephemeral is set. `sets_data_dir`: the operator has set --data-dir, so flags.data_dir is not
// the default.
std::optional<std::string> FlagConflict(const Flags& flags, bool is_ephemeral, bool sets_data_dir);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAG_CHECKS_H_
