#ifndef SOFTLOOKUP_SERVER_RPC_ADMISSION_H_
#define SOFTLOOKUP_SERVER_RPC_ADMISSION_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "softlookup/engine.h"
#include "softlookup/v1/attention.pb.h"
#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/row.pb.h"

// Facts about a request that are known before its matrices are decoded.
namespace softlookup::server {

// RowsOf() and QueriesOf() return the number of rows or queries that the request states, capped at
// the limit. The engine refuses a request that states more.
inline std::int64_t RowsOf(const v1::AppendRequest& request, const Limits& limits) {
  const std::int64_t rows = request.has_inputs() ? request.inputs().rows() : request.keys().rows();
  return std::min(rows, limits.rows_per_append_max);
}

inline std::int64_t QueriesOf(const v1::LookupRequest& request, const Limits& limits) {
  const std::int64_t queries =
      request.has_inputs() ? request.inputs().rows() : request.queries().rows();
  return std::min(queries, limits.queries_per_lookup_max);
}

inline std::int64_t QueriesOf(const v1::AttendRequest& request, const Limits& limits) {
  const std::int64_t queries = request.self() ? request.inputs().rows() : request.queries().rows();
  return std::min(queries, limits.queries_per_lookup_max);
}

// Whether the lookup may wait: for its min_revision, or to be linearizable.
inline bool MayWait(const Engine& engine, const v1::LookupRequest& request) {
  return request.min_revision() > 0 || (request.linearizable() && engine.asks_for_latest());
}

// QUEUE_FULL if the engine would now refuse this lookup in `store` for load. Always OK if the
// lookup has a filter, waits (MayWait), or reads a memory. The check assumes a lookup over all rows
// that the store has now.
inline absl::Status CheckRoom(Engine& engine, const std::string& store,
                              const v1::LookupRequest& request) {
  const bool over_all_rows =
      !request.has_filter() && !MayWait(engine, request) &&
      (request.source() == v1::SOURCE_UNSPECIFIED || request.source() == v1::SOURCE_ROWS);
  return over_all_rows ? engine.CheckRoom(store, QueriesOf(request, engine.limits()))
                       : absl::OkStatus();
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_ADMISSION_H_
