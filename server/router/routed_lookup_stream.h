#ifndef SOFTLOOKUP_SERVER_ROUTER_ROUTED_LOOKUP_STREAM_H_
#define SOFTLOOKUP_SERVER_ROUTER_ROUTED_LOOKUP_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "server/router/routed_call.h"
#include "server/rpc/call.h"
#include "server/rpc/pipelined_stream.h"

namespace softlookup::server {

// One StreamLookup call at a router. Each of its messages goes to a replica as a Lookup of its own,
// so the stream outlives any of them. Answers are in the order of the messages, as LookupStream
// gives them.
class RoutedLookupStream final : public PipelinedStream {
 public:
  // `parts` must outlive the call.
  static void Start(std::unique_ptr<Call> call, const RouterParts& parts);

  void OnCancel() override;

 private:
  // As of LookupStream.
  static constexpr std::size_t kPipelineMax = 16;
  static constexpr std::size_t kPipelineBytesMax = std::size_t{512} << 10;

  RoutedLookupStream(std::unique_ptr<Call> call, const RouterParts& parts)
      : PipelinedStream(std::move(call), kPipelineMax, kPipelineBytesMax), parts_(parts) {}

  // A message on its way.
  struct Lookup {
    std::uint64_t number = 0;  // In the pipeline.
    std::uint64_t tag = 0;
    SteadyTimePoint begin;  // When the stream began to handle the message.
    grpc::ByteBuffer bytes;
    MessageCharge charge;
  };

  void HandleRequest(std::uint64_t number) override;
  grpc::Status ReportEnd() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ReportCutOr(final_);
  }
  // Checks the message that was read last, and names its store. Returns the error to answer with if
  // it is refused.
  absl::Status Prepare(Lookup& lookup);
  void Answer(const std::shared_ptr<Lookup>& lookup, const absl::Status& status,
              grpc::ByteBuffer response);

  const RouterParts& parts_;
  std::string store_;  // The first store that a message named.

  // The lookups that are not answered, by number.
  std::map<std::uint64_t, std::shared_ptr<Route>> running_ ABSL_GUARDED_BY(mutex_);
  // The status to end with if the server does not cut the stream.
  absl::Status final_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_ROUTED_LOOKUP_STREAM_H_
