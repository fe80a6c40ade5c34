#ifndef SOFTLOOKUP_CLIENT_CLI_BYTE_SIZE_H_
#define SOFTLOOKUP_CLIENT_CLI_BYTE_SIZE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace softlookup::cli {

// Parses a number of bytes, such as "4GiB", "512 MiB" or "1000000". The unit is KiB, MiB, GiB or
// TiB, in upper or lower case. Nullopt for other texts, and for a number that does not fit.
std::optional<std::int64_t> ParseByteSize(absl::string_view text);

// Returns what replaces a size such as "4GiB" by its number of bytes, for every flag that takes
// bytes. It refuses what is no size, and sizes below `min` or above `max`.
CLI::Validator ByteSize(std::int64_t min, std::int64_t max);

}  // namespace softlookup::cli

#endif  // SOFTLOOKUP_CLIENT_CLI_BYTE_SIZE_H_
