#ifndef SOFTLOOKUP_SERVER_FLAG_CHECKS_H_
#define SOFTLOOKUP_SERVER_FLAG_CHECKS_H_

#include <optional>
#include <string>

#include "server/flags.h"

namespace softlookup::server {

// What is wrong with flags whose values were parsed one by one. Each function returns the first
// error that it finds, as a sentence for the operator, or nullopt.

// A value that is not finite. The error begins with the flag and ": ".
std::optional<std::string> NonFiniteFlag(const Flags& flags);

// Flags that contradict each other, or directories that must differ and do not. `is_ephemeral`:
// --ephemeral is set. `sets_data_dir`: the operator has set --data-dir, so flags.data_dir is not
// the default. Follows links on the disk.
std::optional<std::string> FlagConflict(const Flags& flags, bool is_ephemeral, bool sets_data_dir);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FLAG_CHECKS_H_
