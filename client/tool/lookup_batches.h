#ifndef SOFTLOOKUP_CLIENT_TOOL_LOOKUP_BATCHES_H_
#define SOFTLOOKUP_CLIENT_TOOL_LOOKUP_BATCHES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// Most queries of the first call. Later ones follow NextCallQueries().
inline constexpr std::uint32_t kFirstCallQueries = 64;

// Returns how many queries the next call has, if a call of `queries` > 0 took `elapsed`. At the
// same speed, the next call takes a second. It has at least one query, and at most 8 * `queries`.
std::uint32_t NextCallQueries(std::uint32_t queries, absl::Duration elapsed);

// Looks up any number of queries in several calls. The first call has at most kFirstCallQueries.
// Later calls have as many queries as take about a second and have a small answer. Two of them are
// in progress at a time, so that the server always has work. Calls `take` with the answers of each
// call, in the order of the queries, on the caller's thread. A call that the server refuses as too
// large is made again with half as many queries. Each call sees the store at the revision of the
// first call, or at a later one.
//
// Returns the error of the first call that fails, after `take` got the answers of the calls before
// it. If there are such calls, the error says how many queries they answered. If the error names a
// query, its number is that in `queries`.
absl::Status LookupInBatches(const v1::Store& store, FloatMatrixView queries,
                             const LookupOptions& options, Client* client,
                             absl::FunctionRef<void(const LookupAnswer&)> take);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_LOOKUP_BATCHES_H_
