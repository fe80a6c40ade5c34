#ifndef SOFTLOOKUP_SERVER_RPC_STREAM_PIPELINE_H_
#define SOFTLOOKUP_SERVER_RPC_STREAM_PIPELINE_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/status/status.h"
#include "server/limits/pipeline_budget.h"

namespace softlookup::server {

// Decides what a stream of requests and responses does next: whether it reads another request,
// which response it writes, and when it ends. Responses are written in the order of their requests.
// The stream tells the pipeline what has happened, and then does what Next() says. Not thread-safe.
class StreamPipeline {
 public:
  // What the stream must do at once.
  struct Step {
    bool reads = false;                          // Start to read a request.
    const grpc::ByteBuffer* response = nullptr;  // If not null: start to write it.
    bool ends = false;                           // Finish the call. Nothing comes after that.
  };

  // The arguments are those of PipelineBudget: beyond either, the next request stays unread.
  StreamPipeline(std::size_t count_max, std::size_t bytes_max) : budget_(count_max, bytes_max) {}

  // Returns what the stream does next, and assumes that it does so. At most one read and one write
  // are in progress. If `may_read` is false, the stream starts no read yet. The response is valid
  // until the next call of any method.
  //
  // The stream ends once all requests are handled and answered, all responses are written or
  // dropped, and no further request is read. Before that, it waits for the read in progress, unless
  // EndWith() was called. The end of the call then ends the read.
  Step Next(bool may_read = true);

  // The read in progress has brought a request. Returns its number. The first request has number 0.
  // Until OnHandled(), the stream neither reads the next request nor ends.
  std::uint64_t OnRequest(std::size_t request_bytes);
  // The request that was read last is handled: it is answered already, or will be.
  void OnHandled();
  // The read in progress is over and has brought no request, or one to ignore. No further request
  // is read.
  void OnLastReadOver();
  // The write in progress is over.
  void OnWritten();

  // Answers a request with `response`. From now on, the response's bytes count instead of the
  // request's.
  void Answer(std::uint64_t number, const grpc::ByteBuffer& response);
  // Answers a request without a response.
  void Drop(std::uint64_t number);

  // The client takes no more responses. Responses that are not being written yet are dropped, and
  // no further request is read.
  void Break() { is_broken_ = true; }
  bool is_broken() const { return is_broken_; }
  // Makes the stream read no further request, and end with `status`, an error, once all requests
  // that were read are answered. Only the first call counts.
  void EndWith(const absl::Status& status);
  // OK: EndWith() was not called.
  const absl::Status& error() const { return error_; }
  // Whether Next() has ended the stream.
  bool has_ended() const { return has_ended_; }

 private:
  struct Request {
    std::size_t bytes = 0;  // Of the request or, once it is answered, of the response.
    bool is_answered = false;
    std::optional<grpc::ByteBuffer> response;
  };

  // Answers a request with a response of `response_bytes`, and returns the request.
  Request& OnAnswer(std::uint64_t number, std::size_t response_bytes);
  void PopFront();

  PipelineBudget budget_;  // Counts requests_.
  // The requests that are not answered, or whose responses are not written. While is_writing_ is
  // set, the response to the first one is being written.
  std::deque<Request> requests_;
  std::uint64_t first_number_ = 0;  // Of requests_.front().
  bool is_reading_ = false;
  bool is_handling_ = false;  // The request that was read last is being handled.
  bool is_writing_ = false;
  bool reads_over_ = false;
  bool is_broken_ = false;
  bool has_ended_ = false;
  absl::Status error_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STREAM_PIPELINE_H_
