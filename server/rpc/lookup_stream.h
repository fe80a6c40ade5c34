#ifndef SOFTLOOKUP_SERVER_RPC_LOOKUP_STREAM_H_
#define SOFTLOOKUP_SERVER_RPC_LOOKUP_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/base/cancellation.h"
#include "server/rpc/call.h"
#include "server/rpc/codec.h"
#include "server/rpc/pipelined_stream.h"
#include "server/rpc/revision_wait.h"
#include "softlookup/engine.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {

// Whether a StreamLookup that has refused a lookup with `status` must also end with `status`,
// instead of OK. True if the lookup's message is malformed or its caller lacks rights. Until its
// end, the stream still answers later lookups.
bool FailsLookupStream(const absl::Status& status);

// One StreamLookup call: turns its requests into lookups, and their results into responses. Several
// lookups run at once. A failed lookup gets a response with `error`.
//
// The stream decodes one request at a time: it reads the next request once the previous one is
// decoded or refused.
class LookupStream final : public PipelinedStream {
 public:
  static void Start(std::unique_ptr<Call> call, Engine& engine);

  void OnCancel() override;

 private:
  // Maximum number of requests that were read and whose responses are not yet written. Beyond it,
  // the next request stays unread.
  static constexpr std::size_t kPipelineMax = 16;
  // Approximate maximum of the bytes of these requests and responses. Beyond it, too, the next
  // request stays unread. A hundred streams whose clients do not read hold about 50 MiB.
  static constexpr std::size_t kPipelineBytesMax = std::size_t{512} << 10;

  LookupStream(std::unique_ptr<Call> call, Engine& engine)
      : PipelinedStream(std::move(call), kPipelineMax, kPipelineBytesMax), engine_(engine) {}

  // A lookup from its request to its answer.
  struct Lookup {
    v1::LookupRequest request;
    MessageCharge charge;   // For `request`.
    SteadyTimePoint begin;  // When the stream began to handle the request.
    std::string store;      // The request's, or the stream's if the request names none.
    DecodedLookup decoded;
    LookupReport report;
    std::shared_ptr<CancelToken> cancel;
    RevisionWait revision_wait;
    std::uint64_t number = 0;  // The request's number in the pipeline.
  };

  // Passes the request to the engine, or answers with an error.
  void HandleRequest(std::uint64_t number) override;
  grpc::Status ReportEnd() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ReportCutOr(final_);
  }
  // Also ends the waits for revisions: the lookups that wait fail with `status`.
  void Cut(const absl::Status& status) override;
  // Parses, checks and decodes the request that was read last. Returns the error to answer with if
  // the request is refused.
  absl::Status Prepare(Lookup& lookup);
  // Makes the response to `lookup`. The stream writes it once all earlier responses are written.
  void Answer(std::unique_ptr<Lookup> lookup, absl::StatusOr<LookupResult> result);
  // Returns the cancel tokens of the lookups that are not answered, in the order of their requests.
  std::vector<std::shared_ptr<CancelToken>> Cancels() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Engine& engine_;
  std::string store_;  // The first store that a message named.

  // The cancel tokens of the lookups that are not answered, by the number of their request.
  std::map<std::uint64_t, std::shared_ptr<CancelToken>> cancels_ ABSL_GUARDED_BY(mutex_);
  // The status to end with if the server does not cut the stream.
  absl::Status final_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_LOOKUP_STREAM_H_
