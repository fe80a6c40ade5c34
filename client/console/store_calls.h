#ifndef SOFTLOOKUP_CLIENT_CONSOLE_STORE_CALLS_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_STORE_CALLS_H_

#include "absl/status/statusor.h"
#include "client/console/api.h"
#include "client/output/json.h"

namespace softlookup::console {

// Returns one page of the stores.
absl::StatusOr<output::Json> ListStores(const Backend& backend, const output::Json& request);
absl::StatusOr<output::Json> GetStore(const Backend& backend, const output::Json& request);
// Returns one page of the rows that pass a filter.
absl::StatusOr<output::Json> ReadRows(const Backend& backend, const output::Json& request);
// Returns the labels of a few rows, by their positions.
absl::StatusOr<output::Json> ReadLabels(const Backend& backend, const output::Json& request);

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_STORE_CALLS_H_
