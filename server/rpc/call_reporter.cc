#include "server/rpc/call_reporter.h"

#include "server/rpc/status.h"

namespace softlookup::server {

grpc::Status CallReporter::ToSend(const absl::Status& status) const {
  return ToGrpcStatus(status, rpc_.context());
}

grpc::Status CallReporter::Answer(const absl::Status& status) {
  observer_.OnAnswer(Info(), begin_, status);
  auditor_.Answer(status);
  return ToSend(status);
}

grpc::Status CallReporter::AnswerLookup(const absl::Status& status, const LookupFacts& facts) {
  observer_.OnLookup(Info(), begin_, status, facts);
  auditor_.Answer(status);
  return ToSend(status);
}

grpc::Status CallReporter::CutStream(const absl::Status& status) {
  observer_.OnStreamCut(status);
  auditor_.Answer(status);
  return ToSend(status);
}

grpc::Status CallReporter::EndStream(const absl::Status& status) {
  auditor_.EndStream(status);
  return ToSend(status);
}

void CallReporter::AnswerMessage(SteadyTimePoint begin, const absl::Status& status) {
  observer_.OnAnswer(Info(), begin, status);
  auditor_.AnswerMessage(status);
}

void CallReporter::AnswerLookupMessage(SteadyTimePoint begin, const absl::Status& status,
                                       const LookupFacts& facts) {
  observer_.OnLookup(Info(), begin, status, facts);
  auditor_.AnswerMessage(status);
}

}  // namespace softlookup::server
