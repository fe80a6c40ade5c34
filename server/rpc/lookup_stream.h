#ifndef SOFTLOOKUP_SERVER_RPC_LOOKUP_STREAM_H_
#define SOFTLOOKUP_SERVER_RPC_LOOKUP_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/base/cancellation.h"
#include "server/limits/pipeline_budget.h"
#include "server/limits/stall_watch.h"
#include "server/rpc/call.h"
#include "server/rpc/codec.h"
#include "server/rpc/revision_wait.h"
#include "softlookup/engine.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {

// One StreamLookup call. Several lookups run at once. Their responses are written in the order of
// the requests. A failed lookup gets a response with `error`.
//
// The stream decodes one request at a time: it reads the next request once the previous one is
// passed to the engine or refused. The stream owns itself until the call is over. After that, a
// callback of the engine or a worker's task that still refers to the stream keeps it alive.
class LookupStream final : public Rpc::Handler,
                           public DrainableStream,
                           public std::enable_shared_from_this<LookupStream> {
 public:
  static void Start(std::unique_ptr<Call> call, Engine& engine);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void Drain() override;
  void Recheck() override;

 private:
  // Maximum number of requests that were read and whose responses are not yet written. Beyond it,
  // the next request stays unread.
  static constexpr std::size_t kPipelineMax = 16;
  // Approximate maximum of the bytes of these requests and responses. Beyond it, too, the next
  // request stays unread. A hundred streams whose clients do not read hold 50 MiB.
  static constexpr std::size_t kPipelineBytesMax = std::size_t{512} << 10;

  LookupStream(std::unique_ptr<Call> call, Engine& engine)
      : call_(std::move(call)),
        engine_(engine),
        arrival_(call_->limiters().arrivals, call_->rpc().context()),
        writes_(call_->limiters().stalls, call_->rpc().context()),
        budget_(kPipelineMax, kPipelineBytesMax) {}

  // A lookup from its request to its response.
  struct Slot {
    v1::LookupRequest request;
    MessageCharge charge;  // For `request`.
    SteadyTime begin;      // When the stream began to handle the request.
    std::string store;     // The request's, or the stream's if the request names none.
    DecodedLookup decoded;
    LookupReport report;
    std::shared_ptr<CancelToken> cancel;
    RevisionWait revision_wait;
    grpc::ByteBuffer response;
    std::size_t request_bytes = 0;
    std::size_t response_bytes = 0;  // Set when the lookup is answered.
    bool answered = false;
  };

  // Handles the request that was read last: passes it to the engine, or answers with an error.
  void HandleRequest();
  // Parses, checks and decodes the request that was read last. Returns the error to answer with if
  // the request is refused.
  absl::Status Prepare(Slot& slot);
  // Makes the response to the lookup of `slot`. The stream writes it once all earlier responses are
  // written.
  void Answer(Slot& slot, absl::StatusOr<LookupResult> result);
  // Starts the next read and the next write if possible, or ends the stream if it is done.
  void Proceed();
  void ProceedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the first slot, whose response was written or has no reader.
  void PopFront() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stops reading. Ends the waits for revisions: the lookups that wait fail with `status`. Once all
  // lookups are answered, the stream ends with the `status` of the first EndWaits().
  void EndWaits(const absl::Status& status);

  std::shared_ptr<LookupStream> self_;
  const std::unique_ptr<Call> call_;
  Engine& engine_;
  StallWatch::Waits arrival_;  // The wait for the first message.
  StallWatch::Waits writes_;   // The waits until the client takes a response.
  // The request being read or handled. Only the read in progress and HandleRequest() use it, from
  // StartRead() until `reading_` is false again.
  grpc::ByteBuffer bytes_;
  std::string store_;  // The first store that a message named.

  absl::Mutex mutex_;
  // In the order of the requests. While writing_ is set, the response of the first slot is being
  // written.
  std::deque<std::unique_ptr<Slot>> slots_ ABSL_GUARDED_BY(mutex_);
  PipelineBudget budget_ ABSL_GUARDED_BY(mutex_);    // Counts slots_.
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;     // A request is being read or handled.
  bool reads_over_ ABSL_GUARDED_BY(mutex_) = false;  // No further request comes.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // The client reads no more responses.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status cut_ ABSL_GUARDED_BY(mutex_);    // Not OK: the server ends the stream with it.
  absl::Status final_ ABSL_GUARDED_BY(mutex_);  // The status to end with if cut_ is OK.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_LOOKUP_STREAM_H_
