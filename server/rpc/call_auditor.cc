#include "server/rpc/call_auditor.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/time/clock.h"
#include "core/base/error.h"

namespace softlookup::server {

void CallAuditor::Answer(const absl::Status& status) {
  if (log_ == nullptr) return;
  const bool is_login_failure = absl::IsUnauthenticated(status);
  const bool is_denial = absl::IsPermissionDenied(status);
  if (is_login_failure || is_denial) {
    const std::optional<std::int64_t> left_out = refusals_.Allow(absl::Now());
    if (left_out) Write(is_denial ? "denial" : "login_failure", status, *left_out);
  } else if (spec_.is_audited) {
    Write(spec_.access == Access::kAdmin ? "admin" : "change", status, /*left_out=*/0);
  }
}

void CallAuditor::AnswerMessage(const absl::Status& status) {
  if (absl::IsPermissionDenied(status)) Answer(status);
}

void CallAuditor::EndStream(const absl::Status& status) {
  if (!absl::IsPermissionDenied(status)) Answer(status);
}

void CallAuditor::Write(const char* event, const absl::Status& status, std::int64_t left_out) {
  const AuditSubject subject = subject_();
  nlohmann::ordered_json fields = {{"event", event},
                                   {"identity", subject.identity},
                                   {"peer", subject.peer},
                                   {"method", std::string(spec_.name)}};
  fields["store"] = subject.store;
  if (!subject.new_name.empty()) fields["new_name"] = subject.new_name;
  if (!node_.empty()) fields["node"] = node_;
  fields["result"] = absl::StatusCodeToString(status.code());
  if (!status.ok()) fields["reason"] = ReasonOf(status);
  if (replaced_) fields["replaced"] = true;
  if (const std::uint64_t changes = changes_; changes > 0) {
    fields["changes"] = changes;
    fields["rows"] = changed_rows_.load();
  }
  fields["trace_id"] = subject.trace_id;
  if (left_out > 0) fields["left_out"] = left_out;
  log_->Write(fields);
}

}  // namespace softlookup::server
