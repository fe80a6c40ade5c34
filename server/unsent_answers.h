#ifndef SOFTLOOKUP_SERVER_UNSENT_ANSWERS_H_
#define SOFTLOOKUP_SERVER_UNSENT_ANSWERS_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "server/stall_watch.h"

namespace softlookup::server {

// The bytes of the answers to unary calls that gRPC has and their clients do not. Small answers do
// not count. Thread-safe.
class UnsentAnswers {
 public:
  // Of all of them together. One alone is let through, however large.
  static constexpr std::int64_t kBytesMax = std::int64_t{256} << 20;

  bool TryAdd(std::int64_t bytes);
  void Remove(std::int64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> bytes_{0};
};

// One of them, from when it is given to gRPC until the call is over.
class UnsentAnswer {
 public:
  UnsentAnswer(UnsentAnswers& answers, StallWatch& stalls) : answers_(answers), stalls_(stalls) {}
  ~UnsentAnswer() {
    if (bytes_ > 0) answers_.Remove(bytes_);
  }
  UnsentAnswer(const UnsentAnswer&) = delete;
  UnsentAnswer& operator=(const UnsentAnswer&) = delete;

  // The answer to the call of `context`, of `bytes`, is about to be given to gRPC. QUEUE_FULL if it
  // must not be. Once.
  absl::Status Hold(std::size_t bytes, grpc::CallbackServerContext& context);

 private:
  UnsentAnswers& answers_;
  StallWatch& stalls_;
  std::int64_t bytes_ = 0;
  std::optional<StallWatch::Writes> write_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_UNSENT_ANSWERS_H_
