#include "server/cluster/fetch_seed.h"

#include <grpcpp/completion_queue.h>

#include <chrono>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "server/cluster/seed_writer.h"

namespace softlookup::server {
namespace {

constexpr std::chrono::milliseconds kStopInterval(100);

// The responses of a Seed.
class SeedStream {
 public:
  SeedStream(const std::string& address, const PeerOptions& options,
             const cluster::v1::SeedRequest& request, absl::FunctionRef<bool()> should_stop)
      : should_stop_(should_stop), stub_(OpenPeerChannel(address, options.credentials)) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + kSeedTimeout));
    reader_ = stub_.AsyncSeed(&context_, request, &queue_, this);
    // If the call could not be started, the first Read() says why.
    Await();
  }
  ~SeedStream() {
    if (!is_finished_) {
      context_.TryCancel();
      Finish().IgnoreError();
    }
    queue_.Shutdown();
    void* operation;
    bool ok;
    SOFTLOOKUP_CHECK(!queue_.Next(&operation, &ok)) << "an operation is in progress";
  }
  SeedStream(const SeedStream&) = delete;
  SeedStream& operator=(const SeedStream&) = delete;

  // Waits for the next response. False: there are no more, and the other replica says that all is
  // well. Must not be called after false or an error.
  absl::StatusOr<bool> Read(cluster::v1::SeedResponse& response) {
    reader_->Read(&response, this);
    const bool has_response = Await();
    if (!has_response) {
      const absl::Status finished = Finish();
      if (is_stopped_) return absl::CancelledError("Fetching the copy was stopped");
      SOFTLOOKUP_RETURN_IF_ERROR(finished);
    }
    return has_response;
  }

 private:
  // Waits for the operation in progress, of which there is always one. Returns whether it has
  // succeeded.
  bool Await() {
    void* operation;
    bool ok;
    for (;;) {
      if (!is_stopped_ && should_stop_()) {
        is_stopped_ = true;
        context_.TryCancel();
      }
      const auto until = std::chrono::system_clock::now() + kStopInterval;
      if (queue_.AsyncNext(&operation, &ok, until) == grpc::CompletionQueue::GOT_EVENT) return ok;
    }
  }
  absl::Status Finish() {
    grpc::Status status;
    reader_->Finish(&status, this);
    Await();
    is_finished_ = true;
    return FromPeerStatus(status);
  }

  const absl::FunctionRef<bool()> should_stop_;
  cluster::v1::PeerService::Stub stub_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReader<cluster::v1::SeedResponse>> reader_;
  bool is_stopped_ = false;
  bool is_finished_ = false;
};

}  // namespace

absl::Status FetchSeed(const std::string& address, const PeerOptions& options,
                       const std::string& to_node, const std::string& directory,
                       absl::FunctionRef<bool()> should_stop) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(SeedWriter writer, SeedWriter::Open(directory, should_stop));
  cluster::v1::SeedRequest request;
  *request.mutable_caller() = CallerOf(options, to_node);
  writer.AddKept(request);
  SeedStream stream(address, options, request, should_stop);
  cluster::v1::SeedResponse response;
  for (;;) {
    const absl::StatusOr<bool> has_response = stream.Read(response);
    if (!has_response.ok()) {
      writer.Keep();
      return has_response.status();
    }
    absl::Status written = *has_response ? writer.Add(response) : writer.Finish();
    if (!written.ok()) writer.Remove();
    if (!written.ok() || !*has_response) return written;
  }
}

}  // namespace softlookup::server
