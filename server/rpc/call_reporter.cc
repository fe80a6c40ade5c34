#include "server/rpc/call_reporter.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "core/base/error.h"
#include "server/observability/trace_context.h"
#include "server/rpc/status.h"

namespace softlookup::server {

grpc::Status CallReporter::Answer(const absl::Status& status) {
  observer_.OnAnswer(Info(), begin_, status);
  return EndStream(status);
}

grpc::Status CallReporter::AnswerLookup(const absl::Status& status, const LookupFacts& facts) {
  observer_.OnLookup(Info(), begin_, status, facts);
  return EndStream(status);
}

grpc::Status CallReporter::CutStream(const absl::Status& status) {
  observer_.OnStreamCut(status);
  return EndStream(status);
}

grpc::Status CallReporter::EndStream(const absl::Status& status) {
  Audit(status);
  return ToGrpcStatus(status, rpc_.context());
}

void CallReporter::Audit(const absl::Status& status) {
  if (audit_ == nullptr) return;
  const bool is_login_failure = absl::IsUnauthenticated(status);
  if (!spec_.is_audited && !is_login_failure && !absl::IsPermissionDenied(status)) return;
  const bool is_denial = absl::IsPermissionDenied(status);
  std::optional<std::int64_t> left_out = 0;
  if (is_login_failure || is_denial) left_out = audit_->AllowRefusal(absl::Now());
  if (!left_out) return;
  const char* event = is_login_failure                 ? "login_failure"
                      : is_denial                      ? "denial"
                      : spec_.access == Access::kAdmin ? "admin"
                                                       : "change";
  nlohmann::ordered_json fields = {{"event", event},
                                   {"identity", gate_.identity()},
                                   {"peer", gate_.peer()},
                                   {"method", std::string(spec_.name)}};
  fields["store"] = gate_.store();
  fields["result"] = absl::StatusCodeToString(status.code());
  if (!status.ok()) fields["reason"] = ReasonOf(status);
  if (const std::uint64_t changes = changes_; changes > 0) {
    fields["changes"] = changes;
    fields["rows"] = changed_rows_.load();
  }
  fields["trace_id"] = std::string(TraceIdOf(rpc_.context()));
  if (*left_out > 0) fields["left_out"] = *left_out;
  audit_->Write(fields);
}

}  // namespace softlookup::server
