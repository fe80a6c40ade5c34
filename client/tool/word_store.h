#ifndef SOFTLOOKUP_CLIENT_TOOL_WORD_STORE_H_
#define SOFTLOOKUP_CLIENT_TOOL_WORD_STORE_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// The keys and values of a word store are WordEncoder's encodings of words. `store create --words`
// makes such a store and marks it by the label "encoding" = "words". An encoding does not depend on
// what the word means, so it says nothing about the rows of any other store.

// Sets the label "encoding" = "words". UsageError if the label already has another value.
absl::Status MarkAsWordStore(v1::Store* store);

// UsageError unless `store` has the label "encoding" = "words", or `any_store` is set.
absl::Status CheckIsWordStore(const v1::Store& store, bool any_store);

// Adds the flag --any-store, which is refused without the option `words` of the same command.
// `any_store` must outlive `command`.
void AddAnyStoreFlag(CLI::App* command, CLI::Option* words, bool* any_store);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_WORD_STORE_H_
