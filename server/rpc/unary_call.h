#ifndef SOFTLOOKUP_SERVER_RPC_UNARY_CALL_H_
#define SOFTLOOKUP_SERVER_RPC_UNARY_CALL_H_

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "server/limits/stall_watch.h"
#include "server/limits/unsent_answers.h"
#include "server/rpc/call.h"
#include "server/rpc/rpc.h"

namespace softlookup::server {

// A call with one request and one answer. Deletes itself when the call is over.
class UnaryCall : public Rpc::Handler {
 public:
  // The thread that parses the request and calls the engine. A method that may wait for a disk
  // needs a worker. A request of more than kNetworkThreadParseBytesMax bytes always goes to a
  // worker.
  enum class RunOn { kNetworkThread, kWorker };

  UnaryCall(std::unique_ptr<Call> call, RunOn run_on)
      : call_(std::move(call)),
        run_on_(run_on),
        arrival_(call_->limiters().arrivals, call_->rpc().context()),
        unsent_(call_->limiters().unsent_answers) {}

  // Starts to read the request, which is then parsed and run. Call this once, before any other
  // method.
  void Start();

  void OnReadDone(bool ok) final;
  void OnDone() final { delete this; }

 protected:
  // Checks `bytes` and parses them into the request. Returns an error if either fails.
  virtual absl::Status Receive(grpc::ByteBuffer& bytes) = 0;
  // Executes the request. Must answer or refuse the call exactly once, before or after it returns.
  virtual void Run() = 0;

  // Ends the call with `response` if `status` is OK, else with `status`. Ends it with QUEUE_FULL if
  // Hold() refuses `response`.
  void Answer(absl::Status status, const google::protobuf::MessageLite& response);
  // Ends the call with `status`, an error.
  void Refuse(const absl::Status& status) { call_->rpc().Finish(call_->reporter().Answer(status)); }
  // As Answer(), but calls `report` with the final status. `report` must pass this status to a
  // method of CallReporter, and return the grpc::Status to send.
  template <typename Report>
  void AnswerAs(absl::Status status, const google::protobuf::MessageLite& response,
                const Report& report) {
    grpc::ByteBuffer bytes;
    if (status.ok()) status = Hold(response, bytes);
    const bool is_ok = status.ok();
    const grpc::Status grpc_status = report(status);
    if (is_ok) {
      call_->rpc().WriteAndFinish(bytes, grpc_status);
    } else {
      call_->rpc().Finish(grpc_status);
    }
  }

  // As Answer(), with the bytes of a response.
  void AnswerBytes(absl::Status status, const grpc::ByteBuffer& response);

  Call& call() { return *call_; }

 private:
  // Parses the request, then calls Run(), both on this thread.
  void Proceed();
  // If a response of `size` bytes is not small (UnsentAnswer), counts its bytes as unsent, and ends
  // the call later if its client takes too long to read it. QUEUE_FULL if too many bytes would be
  // unsent. Never refuses if the method has MethodSpec::makes_changes.
  absl::Status Hold(std::size_t size);
  // As above, and serializes `response` into `bytes`.
  absl::Status Hold(const google::protobuf::MessageLite& response, grpc::ByteBuffer& bytes);

  const std::unique_ptr<Call> call_;
  const RunOn run_on_;
  StallWatch::Waits arrival_;  // The wait for the request.
  UnsentAnswer unsent_;
  std::optional<StallWatch::Waits> write_;  // The wait until the client takes a counted answer.
  grpc::ByteBuffer bytes_;
};

// A unary call with typed request and response messages.
template <typename RequestMessage, typename ResponseMessage>
class MessageCall : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

 protected:
  absl::Status Receive(grpc::ByteBuffer& bytes) final {
    return call().Receive(bytes, request_, charge_);
  }

  RequestMessage request_;
  ResponseMessage response_;

 private:
  MessageCall(const MessageCall&) = delete;

  MessageCharge charge_;
};

// A call whose answer is complete when `work` returns. `work` is a function
// (Call&, const Request&, Response&) -> absl::Status.
template <typename RequestMessage, typename ResponseMessage, typename Work>
class WorkCall final : public MessageCall<RequestMessage, ResponseMessage> {
 public:
  WorkCall(std::unique_ptr<Call> call, UnaryCall::RunOn run_on, Work work)
      : MessageCall<RequestMessage, ResponseMessage>(std::move(call), run_on),
        work_(std::move(work)) {}

 protected:
  void Run() override {
    absl::Status status = work_(this->call(), this->request_, this->response_);
    this->Answer(std::move(status), this->response_);
  }

 private:
  const Work work_;
};

// Starts a WorkCall.
template <typename RequestMessage, typename ResponseMessage, typename Work>
void StartCall(std::unique_ptr<Call> call, UnaryCall::RunOn run_on, Work work) {
  (new WorkCall<RequestMessage, ResponseMessage, Work>(std::move(call), run_on, std::move(work)))
      ->Start();
}

// A call that ends before its first message is read. Deletes itself.
class RefusedCall final : public Rpc::Handler {
 public:
  static void Start(std::unique_ptr<Call> call, const absl::Status& status) {
    auto* refused = new RefusedCall(std::move(call));
    Rpc& rpc = refused->call_->rpc();
    const grpc::Status grpc_status = refused->call_->reporter().Answer(status);
    rpc.Attach(*refused);
    rpc.Finish(grpc_status);
  }
  void OnDone() override { delete this; }

 private:
  explicit RefusedCall(std::unique_ptr<Call> call) : call_(std::move(call)) {}

  const std::unique_ptr<Call> call_;
};

// A call whose caller may not make it. Reads the request only for the names in it, which the audit
// line then has. The answer is the denial, also if the request is large or malformed, or does not
// come. Deletes itself.
class DeniedCall final : public Rpc::Handler {
 public:
  // Passes the names in a request of at most kNetworkThreadParseBytesMax bytes to
  // CallGate::KeepNames(), if it can be parsed.
  using KeepNames = void (*)(Call& call, grpc::ByteBuffer& bytes);

  static void Start(std::unique_ptr<Call> call, absl::Status denial, KeepNames keep_names);
  void OnReadDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  DeniedCall(std::unique_ptr<Call> call, absl::Status denial, KeepNames keep_names)
      : call_(std::move(call)),
        denial_(std::move(denial)),
        keep_names_(keep_names),
        arrival_(call_->limiters().arrivals, call_->rpc().context()) {}

  const std::unique_ptr<Call> call_;
  const absl::Status denial_;
  const KeepNames keep_names_;
  StallWatch::Waits arrival_;
  grpc::ByteBuffer bytes_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_UNARY_CALL_H_
