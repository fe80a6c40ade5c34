#ifndef SOFTLOOKUP_CLIENT_CONSOLE_ATTENTION_CALLS_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_ATTENTION_CALLS_H_

#include "absl/status/statusor.h"
#include "client/console/api.h"
#include "client/output/json.h"

namespace softlookup::console {

// Returns the weights of several queries over the rows of a range of positions, for a heat map. Up
// to kColumnsMax live rows are shown row by row, and more rows as blocks of positions.
absl::StatusOr<output::Json> Attention(const Backend& backend, const output::Json& request);

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_ATTENTION_CALLS_H_
