#ifndef SOFTLOOKUP_SERVER_UNARY_CALL_H_
#define SOFTLOOKUP_SERVER_UNARY_CALL_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "server/call.h"
#include "server/codec.h"
#include "server/status.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// A call that needs nothing but to be finished. Deletes itself when the call is over.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryCall(CallTracker& calls) : call_(calls) {}
  void OnDone() override { delete this; }

 private:
  const CallTracker::Call call_;
};

// A call that `work`, which returns a Status, answers here and now.
template <typename Work>
grpc::ServerUnaryReactor* AnswerNow(CallTracker& calls, const Engine& engine,
                                    grpc::CallbackServerContext& context,
                                    const google::protobuf::MessageLite& request,
                                    const Work& work) {
  auto* reactor = new UnaryCall(calls);
  absl::Status status = CheckMessageBytes(request, engine.limits().message_bytes_max);
  if (status.ok()) status = work();
  reactor->Finish(ToGrpcStatus(status, context));
  return reactor;
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_UNARY_CALL_H_
