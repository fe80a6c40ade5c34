#ifndef SOFTLOOKUP_SERVER_RPC_CALL_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_H_

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/limits/connection_calls.h"
#include "server/limits/request_bytes.h"
#include "server/observability/call_observer.h"
#include "server/rpc/call_tracker.h"
#include "server/rpc/method.h"
#include "server/rpc/rpc.h"
#include "server/security/authenticator.h"

namespace softlookup::server {

// What the bytes of a request take, of all requests and of its caller's, until this goes.
struct MessageCharge {
  RequestCharge of_all;
  RequestCharge of_caller;
};

// A call in progress, for as long as it lives, and the way that all calls go, whatever their
// method: is there room for one more call of its connection; who calls; may they ever do this; how
// many requests have they left (Admit); how many bytes does a message take, and is there room for
// them; is it a message of its type (Receive); may they do this with the store that it names; how
// many rows have they left (Enter). After that the engine is asked.
//
// Whoever answers the call says so here before gRPC hears of it. Thread-safe but for Receive and
// Enter, which are called for one message at a time.
class Call {
 public:
  Call(CallTracker& tracker, Rpc& rpc, const MethodSpec& spec);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // SHUTTING_DOWN, TOO_MANY_CALLS, UNAUTHENTICATED, PERMISSION_DENIED or IDENTITY_LIMIT if no
  // message of the call is to be read. Once, first.
  absl::Status Admit();

  // Makes `message` of `bytes`, and empties them: MESSAGE_TOO_LARGE, LIMIT_EXCEEDED, REQUEST_BYTES,
  // IDENTITY_LIMIT or MALFORMED_MESSAGE. `charge` must live as long as anything refers to the
  // message.
  absl::Status Receive(grpc::ByteBuffer& bytes, google::protobuf::Message& message,
                       MessageCharge& charge);

  // PERMISSION_DENIED, or what the rates refuse, unless the caller may go on with `store`, and
  // `rows` of it.
  absl::Status Enter(absl::string_view store, std::int64_t rows = 0);
  // The part of Enter() for a request that names no store: IDENTITY_LIMIT.
  absl::Status TakeRows(std::int64_t rows);
  // One more message of a stream: what of Admit() is for each of them.
  absl::Status AdmitNext();

  // Whether the caller may still do what it does, now that the rules have changed.
  absl::Status Recheck();
  // Who calls, as of now.
  Caller caller() const;
  // Whose turn it is when callers take turns: an identity's, or a connection's.
  absl::string_view turn() const { return identity_.empty() ? connection_.peer() : identity_; }

  // The whole call is answered with `status`. Returns what its caller hears.
  grpc::Status Answer(const absl::Status& status);
  grpc::Status AnswerLookup(const absl::Status& status, const LookupFacts& facts);
  // A stream ends with `status`, which is not an answer to one of its messages.
  grpc::Status CutStream(const absl::Status& status);
  // The same of a stream whose messages are answered each.
  grpc::Status EndStream(const absl::Status& status);

  // Writes the audit log's line, if there is to be one, of the call or of a message that is
  // refused.
  void Audit(const absl::Status& status);
  // For the audit log: a message of the stream was applied, with `rows`.
  void CountChange(std::uint64_t rows) {
    changes_.fetch_add(1, std::memory_order_relaxed);
    changed_rows_.fetch_add(rows, std::memory_order_relaxed);
  }

  const MethodSpec& spec() const { return spec_; }
  CallTracker& tracker() const { return tracker_; }
  CallObserver& observer() const { return tracker_.observer(); }
  Rpc& rpc() const { return rpc_; }
  const CallInfo& info() const { return info_; }
  // When the caller stops waiting.
  absl::Time deadline() const;

 private:
  // UNAUTHENTICATED if the rules of now know the caller no longer.
  absl::Status FollowRules() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckAccess(absl::string_view store);
  absl::Status Denied(const Caller& caller, absl::string_view store) const;

  CallTracker& tracker_;
  Rpc& rpc_;
  const MethodSpec& spec_;
  const ConnectionCalls::Call connection_;
  const SteadyTime begin_ = std::chrono::steady_clock::now();
  std::string identity_;  // The caller's name. Set by Admit().
  CallInfo info_;
  std::atomic<std::uint64_t> changes_{0};
  std::atomic<std::uint64_t> changed_rows_{0};

  mutable absl::Mutex mutex_;
  Caller caller_ ABSL_GUARDED_BY(mutex_);
  std::string store_ ABSL_GUARDED_BY(mutex_);  // The last that Enter() was asked about.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_H_
