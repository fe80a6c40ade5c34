#include "server/observability/call_observer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/clock.h"
#include "core/base/error.h"
#include "server/observability/server_log.h"
#include "server/observability/trace_context.h"

namespace softlookup::server {
namespace {

// Reasons of RESOURCE_EXHAUSTED and UNAVAILABLE. The metrics list each of them, even if its count
// is 0. The last stands for all other reasons.
constexpr std::array kRejectionReasons = {
    reasons::kQueueFull.name,      reasons::kMemoryLimit.name,      reasons::kMessageTooLarge.name,
    reasons::kAnswerTooLarge.name, reasons::kTooManyStores.name,    reasons::kTooManyWriters.name,
    reasons::kStorageFailed.name,  reasons::kBackupInProgress.name, reasons::kLoading.name,
    reasons::kTenantRate.name,     reasons::kShuttingDown.name,     reasons::kIdentityLimit.name,
    reasons::kRequestBytes.name,   reasons::kTooManyCalls.name,     absl::string_view("OTHER")};

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

nlohmann::ordered_json FieldsOf(const CallInfo& call, absl::Duration duration,
                                const absl::Status& status) {
  nlohmann::ordered_json fields = {{"method", std::string(NameOf(call.method))},
                                   {"code", absl::StatusCodeToString(status.code())},
                                   {"duration_ms", Milliseconds(duration)},
                                   {"peer", call.context.peer()}};
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

CallObserver::~CallObserver() {
  LogLeftOut("failed calls were left out of the log", failure_lines_.TakeLeftOut());
  LogLeftOut("slow lookups were left out of the log", slow_lookup_lines_.TakeLeftOut());
}

std::chrono::nanoseconds CallObserver::CountAnswer(const CallInfo& call, SteadyTime begin,
                                                   const absl::Status& status) {
  const std::chrono::nanoseconds duration = std::chrono::steady_clock::now() - begin;
  MethodCounters& counters = Of(call.method);
  const auto code = std::min(static_cast<std::size_t>(status.code()), kCodeCount - 1);
  counters.answers_by_code[code].fetch_add(1, std::memory_order_relaxed);
  counters.duration.Observe(duration);
  if (!status.ok()) {
    CountRejection(status);
    if (IsTheServersFault(status)) LogFailure(call, absl::FromChrono(duration), status);
  }
  return duration;
}

void CallObserver::OnLookup(const CallInfo& call, SteadyTime begin, const absl::Status& status,
                            const LookupFacts& facts) {
  const absl::Duration duration = absl::FromChrono(CountAnswer(call, begin, status));
  // The request itself asked to wait for a revision, so that wait does not make the lookup slow.
  const absl::Duration work = duration - facts.report.revision_wait;
  if (slow_lookup_ == absl::ZeroDuration() || work < slow_lookup_) return;
  slow_lookup_count_.fetch_add(1, std::memory_order_relaxed);
  LogSlowLookup(call, duration, status, facts);
}

void CallObserver::CountRejection(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) && !absl::IsUnavailable(status)) return;
  const auto last = kRejectionReasons.end() - 1;
  const auto found = std::find(kRejectionReasons.begin(), last, ReasonOf(status));
  static_assert(kRejectionReasons.size() <= kReasonsMax);
  rejections_[static_cast<std::size_t>(found - kRejectionReasons.begin())].fetch_add(
      1, std::memory_order_relaxed);
}

void CallObserver::LogFailure(const CallInfo& call, absl::Duration duration,
                              const absl::Status& status) {
  const std::optional<std::int64_t> left_out = failure_lines_.Allow(absl::Now());
  if (!left_out) return;
  nlohmann::ordered_json fields = FieldsOf(call, duration, status);
  fields["reason"] = ReasonOf(status);
  fields["error"] = std::string(status.message());
  if (*left_out > 0) fields["left_out"] = *left_out;
  WriteServerLog(spdlog::level::err, "a call failed", fields);
}

void CallObserver::LogSlowLookup(const CallInfo& call, absl::Duration duration,
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

CallObserver::MethodCounts CallObserver::CountsOf(Method method) const {
  const MethodCounters& counters = methods_[static_cast<std::size_t>(method)];
  MethodCounts counts{.duration = counters.duration.counts(), .in_progress = counters.in_progress};
  for (std::size_t i = 0; i < kCodeCount; ++i) {
    counts.answers_by_code[i] = counters.answers_by_code[i];
  }
  return counts;
}

std::vector<CallObserver::ReasonCount> CallObserver::RejectionCounts() const {
  std::vector<ReasonCount> counts;
  for (std::size_t i = 0; i < kRejectionReasons.size(); ++i) {
    counts.push_back({.reason = kRejectionReasons[i], .count = rejections_[i]});
  }
  return counts;
}

}  // namespace softlookup::server
