#ifndef SOFTLOOKUP_CLIENT_TOOL_WORD_STORE_H_
#define SOFTLOOKUP_CLIENT_TOOL_WORD_STORE_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// A word store has WordEncoder's encodings for rows: `store create --words` makes one, and marks it
// by the label "encoding" = "words". A word's encoding knows nothing of its meaning, so in any
// other store it is noise.

// UsageError if the store has another label "encoding" already.
absl::Status MarkAsWordStore(v1::Store* store);

// UsageError unless `store` has the mark, or `any_store` is set.
absl::Status CheckIsWordStore(const v1::Store& store, bool any_store);

// Adds the flag --any-store, which `words`, the option of the same command, needs. `any_store` must
// outlive `command`.
void AddAnyStoreFlag(CLI::App* command, CLI::Option* words, bool* any_store);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_WORD_STORE_H_
