#include "server/observability/call_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "core/base/error.h"
#include "server/observability/server_log.h"
#include "server/observability/trace_context.h"

namespace softlookup::server {
namespace {

double Milliseconds(absl::Duration duration) {
  return static_cast<double>(absl::ToInt64Microseconds(duration)) / 1e3;
}

// Whether the server, or its disk, is to blame.
bool IsTheServersFault(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return true;
    case absl::StatusCode::kUnavailable:
      return ReasonOf(status) == reasons::kStorageFailed.name;
    default:
      return false;
  }
}

// Whether the stores have reached --memory-limit.
bool IsForLackOfMemory(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && ReasonOf(status) == reasons::kMemoryLimit.name;
}

nlohmann::ordered_json FieldsOf(const CallInfo& call, absl::Duration duration,
                                const absl::Status& status) {
  nlohmann::ordered_json fields = {{"method", std::string(NameOf(call.method))},
                                   {"code", absl::StatusCodeToString(status.code())},
                                   {"duration_ms", Milliseconds(duration)},
                                   {"peer", std::string(call.peer)}};
  if (!call.identity.empty()) fields["identity"] = std::string(call.identity);
  const absl::string_view trace_id = TraceIdOf(call.context);
  if (!trace_id.empty()) fields["trace_id"] = std::string(trace_id);
  return fields;
}

// Returns the largest number of rows that counted for a head query; 0 if the lookup failed.
std::uint64_t CountedRows(const LookupResult* result) {
  std::uint64_t rows = 0;
  if (result != nullptr) {
    for (const QueryStats& stats : result->stats) rows = std::max(rows, stats.counted_rows);
  }
  return rows;
}

void LogLeftOut(absl::string_view what, std::int64_t left_out) {
  if (left_out > 0) WriteServerLog(spdlog::level::warn, what, {{"left_out", left_out}});
}

}  // namespace

CallLog::~CallLog() {
  LogLeftOut("failed calls were left out of the log", failure_lines_.TakeLeftOut());
  LogLeftOut("calls refused for memory were left out of the log", memory_lines_.TakeLeftOut());
  LogLeftOut("slow lookups were left out of the log", slow_lookup_lines_.TakeLeftOut());
}

void CallLog::LogFailure(const CallInfo& call, absl::Duration duration,
                         const absl::Status& status) {
  const bool lacks_memory = IsForLackOfMemory(status);
  if (!lacks_memory && !IsTheServersFault(status)) return;
  LineLimiter& lines = lacks_memory ? memory_lines_ : failure_lines_;
  const std::optional<std::int64_t> left_out = lines.Allow(absl::Now());
  if (!left_out) return;
  nlohmann::ordered_json fields = FieldsOf(call, duration, status);
  fields["reason"] = ReasonOf(status);
  fields["error"] = std::string(status.message());
  if (*left_out > 0) fields["left_out"] = *left_out;
  WriteServerLog(lacks_memory ? spdlog::level::warn : spdlog::level::err,
                 lacks_memory ? "a call was refused" : "a call failed", fields);
}

void CallLog::LogSlowLookup(const CallInfo& call, absl::Duration duration,
                            const absl::Status& status, const LookupFacts& facts) {
  const std::optional<std::int64_t> left_out = slow_lookup_lines_.Allow(absl::Now());
  if (!left_out) return;
  nlohmann::ordered_json fields = FieldsOf(call, duration, status);
  fields["store"] = std::string(facts.store);
  fields["queries"] = std::max(facts.request.queries().rows(), facts.request.inputs().rows());
  fields["counted_rows"] = CountedRows(facts.result);
  fields["scanned_rows"] = facts.report.scanned_rows;
  fields["queue_ms"] = Milliseconds(facts.report.queue_wait);
  fields["compute_ms"] = Milliseconds(facts.report.compute);
  if (facts.report.revision_wait > absl::ZeroDuration()) {
    fields["revision_wait_ms"] = Milliseconds(facts.report.revision_wait);
  }
  if (*left_out > 0) fields["left_out"] = *left_out;
  WriteServerLog(spdlog::level::warn, "slow lookup", fields);
}

}  // namespace softlookup::server
