#ifndef SOFTLOOKUP_CLIENT_TOOL_LOOKUP_BATCHES_H_
#define SOFTLOOKUP_CLIENT_TOOL_LOOKUP_BATCHES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// Most queries of the first call. Later calls have NextCallQueries() queries at most.
inline constexpr std::uint32_t kFirstCallQueries = 64;

// Returns how many queries take a second, if a call of `queries` > 0 took `elapsed`. At least 1,
// and at most 8 * `queries`.
std::uint32_t NextCallQueries(std::uint32_t queries, absl::Duration elapsed);

// Looks up any number of queries in several calls. The first call has at most kFirstCallQueries.
// Later calls have as many queries as the server answers in about a second, but fewer if the answer
// would be large. After the first call, two calls are in progress at a time, so that the server
// always has work. Calls `take` with the answers of each call, in the order of the queries, on the
// caller's thread. If the server refuses a call of several queries as too large, they are sent
// again, half as many per call. Each call sees the store at the revision of the first call, or at a
// later one. Once a call was answered, no later one waits for a revision. Without any queries,
// makes one call all the same.
//
// Returns the error of the first call that fails, after `take` got the answers of the calls before
// it. If there are such calls, the error says how many queries they answered. If the error names a
// query, it gives the query's number in `queries`. Aborted if another store has taken the name of
// `store` before the last answer: `take` may then have got answers of both. Aborted, too, if an
// answer is of an earlier revision than those before it.
absl::Status LookupInBatches(const v1::Store& store, FloatMatrixView queries,
                             const LookupOptions& options, Client* client,
                             absl::FunctionRef<void(const LookupAnswer&)> take);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_LOOKUP_BATCHES_H_
