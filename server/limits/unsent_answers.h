#ifndef SOFTLOOKUP_SERVER_LIMITS_UNSENT_ANSWERS_H_
#define SOFTLOOKUP_SERVER_LIMITS_UNSENT_ANSWERS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/limits/stall_watch.h"

namespace softlookup::server {

// The bytes of the answers to unary calls that gRPC has and their clients do not. Small answers do
// not count. Thread-safe.
class UnsentAnswers {
 public:
  // Of one connection, and of all together. One alone is let through, however large.
  static constexpr std::int64_t kConnectionBytesMax = std::int64_t{64} << 20;
  static constexpr std::int64_t kBytesMax = std::int64_t{256} << 20;

  // False, and nothing is added, if `may_refuse` and there is no room. `connection` is its peer.
  bool Add(const std::string& connection, std::int64_t bytes, bool may_refuse);
  void Remove(const std::string& connection, std::int64_t bytes);

 private:
  absl::Mutex mutex_;
  std::int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, std::int64_t> bytes_of_ ABSL_GUARDED_BY(mutex_);
};

// One of them, from when it is given to gRPC until the call is over.
class UnsentAnswer {
 public:
  UnsentAnswer(UnsentAnswers& answers, StallWatch& stalls) : answers_(answers), stalls_(stalls) {}
  ~UnsentAnswer() {
    if (bytes_ > 0) answers_.Remove(connection_, bytes_);
  }
  UnsentAnswer(const UnsentAnswer&) = delete;
  UnsentAnswer& operator=(const UnsentAnswer&) = delete;

  // The answer to the call of `context`, of `bytes`, is about to be given to gRPC. QUEUE_FULL if
  // there is no room for it and `may_refuse`: not where the call has changed something. Once.
  absl::Status Hold(std::size_t bytes, bool may_refuse, grpc::ServerContextBase& context);

 private:
  UnsentAnswers& answers_;
  StallWatch& stalls_;
  std::string connection_;
  std::int64_t bytes_ = 0;
  std::optional<StallWatch::Waits> write_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_UNSENT_ANSWERS_H_
