#ifndef SOFTLOOKUP_SERVER_RPC_CALL_TRACKER_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_TRACKER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/limits.h"
#include "server/limits/connection_calls.h"
#include "server/limits/request_bytes.h"
#include "server/limits/stall_watch.h"
#include "server/limits/tenant_limits.h"
#include "server/limits/unsent_answers.h"
#include "server/limits/workers.h"
#include "server/observability/call_observer.h"
#include "server/observability/log_limiter.h"
#include "server/rpc/message_scans.h"
#include "server/security/audit_log.h"
#include "server/security/authenticator.h"

namespace softlookup::server {

// A call that may go on for as long as its client likes.
class Stream {
 public:
  virtual ~Stream() = default;
  // Ends the call as soon as none of its work is in progress. Waiting does not count as work.
  virtual void Drain() = 0;
  // Ends the call if its caller may no longer do what it does.
  virtual void Recheck() = 0;
};

// The bounds on all calls.
struct CallLimits {
  Limits engine;
  absl::Duration stall_timeout = absl::InfiniteDuration();
  // Longest wait for a call's first message.
  absl::Duration receive_timeout = absl::InfiniteDuration();
  // A lookup waits no longer than this for its revision, whatever its deadline.
  absl::Duration revision_wait_max = absl::InfiniteDuration();
  Rates tenant_rates;
  std::size_t calls_per_connection_max = 1024;
  std::int64_t request_bytes_max = std::int64_t{1} << 30;
};

// Counts the calls in progress, knows their streams, and owns what bounds them. Thread-safe.
class CallTracker {
 public:
  // `observer` is notified of every call. `audit`, which may be null, gets lines about changes,
  // failed logins and denials. All must outlive this.
  CallTracker(CallObserver& observer, const Authenticator& authenticator, AuditLog* audit,
              const CallLimits& limits = {});

  CallObserver& observer() { return observer_; }
  const Authenticator& authenticator() const { return authenticator_; }
  AuditLog* audit() const { return audit_; }
  LogLimiter& refusal_lines() { return refusal_lines_; }
  const CallLimits& limits() const { return limits_; }
  StallWatch& stalls() { return stalls_; }
  StallWatch& arrivals() { return arrivals_; }
  TenantLimits& tenants() { return tenants_; }
  ConnectionCalls& connections() { return connections_; }
  UnsentAnswers& unsent_answers() { return unsent_answers_; }
  const std::shared_ptr<RequestBytes>& request_bytes() { return request_bytes_; }
  const MessageScans& scans() const { return scans_; }
  Workers& workers() { return workers_; }

  // Adds `calls` calls in progress: 1 when a call begins, -1 when it is over.
  void Add(int calls) {
    absl::MutexLock lock(&mutex_);
    count_ += calls;
  }

  // Registers `stream` for DrainStreams() and RecheckStreams(). Drains it at once if the server is
  // already stopping.
  void AddStream(const std::shared_ptr<Stream>& stream);
  // Call this when the server stops. Sets is_draining() and drains all streams.
  void DrainStreams();
  bool is_draining() const { return draining_; }
  // Call this after the auth rules have changed. Rechecks all streams.
  void RecheckStreams();

  // Waits until no call has been in progress for `quiet`, or until `deadline`.
  void WaitUntilQuiet(absl::Duration quiet, absl::Time deadline);

 private:
  std::vector<std::shared_ptr<Stream>> StreamsOfNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  CallObserver& observer_;
  const Authenticator& authenticator_;
  AuditLog* const audit_;
  const CallLimits limits_;
  LogLimiter refusal_lines_;  // Bounds the audit log's lines about refusals.
  StallWatch stalls_;
  StallWatch arrivals_;
  TenantLimits tenants_;
  ConnectionCalls connections_;
  UnsentAnswers unsent_answers_;
  const std::shared_ptr<RequestBytes> request_bytes_;
  const MessageScans scans_;

  absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> draining_{false};  // Set under mutex_.
  std::vector<std::weak_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::size_t streams_before_sweep_ ABSL_GUARDED_BY(mutex_) = 16;

  Workers workers_;  // Last: its remaining tasks may use the other members.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_TRACKER_H_
