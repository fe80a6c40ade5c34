#ifndef SOFTLOOKUP_CLIENT_TOOL_LOOKUP_BATCHES_H_
#define SOFTLOOKUP_CLIENT_TOOL_LOOKUP_BATCHES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// Queries of the first call, or fewer.
inline constexpr std::uint32_t kFirstCallQueries = 64;

// Returns how many queries the call after one of `queries` > 0 has, which took `elapsed`: as many
// as take a second, but at most eight times as many, and at least one.
std::uint32_t NextCallQueries(std::uint32_t queries, absl::Duration elapsed);

// Looks up any number of queries. The first call has kFirstCallQueries of them. Later ones have as
// many as take about a second and have a small answer, and two are under way at a time, so that the
// server always has work. Calls `take` with the answers of each call, in the order of the queries,
// on the caller's thread. A call that the server refuses as too large is made again with half as
// many. Each call sees the store at the revision of the first one, or at a later
// one.
//
// Returns the error of the first call that fails, once `take` has had the answers before it. If
// there are several calls, the error says how many queries those are, and which query it names.
absl::Status LookupInBatches(const v1::Store& store, FloatMatrixView queries,
                             const LookupOptions& options, Client* client,
                             absl::FunctionRef<void(const LookupAnswer&)> take);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_LOOKUP_BATCHES_H_
