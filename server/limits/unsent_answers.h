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

// Counts the bytes of answers to unary calls that gRPC has and that clients have not taken yet.
// Add() can refuse an answer that would exceed a maximum. Small answers are not counted.
// Thread-safe.
class UnsentAnswers {
 public:
  // Maximum number of bytes of one connection's answers, and of all answers. An answer above
  // kConnectionBytesMax is allowed if its connection has no other answer. An answer above kBytesMax
  // is allowed if there is no other answer at all.
  static constexpr std::int64_t kConnectionBytesMax = std::int64_t{64} << 20;
  static constexpr std::int64_t kBytesMax = std::int64_t{256} << 20;

  // Adds `bytes` of an answer. Returns false, and adds nothing, if they would exceed a maximum and
  // `may_refuse` is set. `connection` is the connection's peer, as gRPC names it.
  bool Add(const std::string& connection, std::int64_t bytes, bool may_refuse);
  // Subtracts `bytes`, which Add() added for an answer.
  void Remove(const std::string& connection, std::int64_t bytes);

 private:
  absl::Mutex mutex_;
  std::int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of all connections.
  // The bytes of each connection. A connection without bytes has no entry.
  absl::flat_hash_map<std::string, std::int64_t> bytes_of_ ABSL_GUARDED_BY(mutex_);
};

// One unsent answer, from when it is passed to gRPC until the call is over.
class UnsentAnswer {
 public:
  UnsentAnswer(UnsentAnswers& answers, StallWatch& stalls) : answers_(answers), stalls_(stalls) {}
  ~UnsentAnswer() {
    if (bytes_ > 0) answers_.Remove(connection_, bytes_);
  }
  UnsentAnswer(const UnsentAnswer&) = delete;
  UnsentAnswer& operator=(const UnsentAnswer&) = delete;

  // Counts an answer of `bytes` to the call of `context`, until this object is destroyed.
  // Meanwhile, the call is ended if its client takes too long to read the answer. Does nothing if
  // the answer is small. QUEUE_FULL if the bytes would exceed a maximum and `may_refuse` is set;
  // then the answer must not be sent. Do not set `may_refuse` if the call has changed anything,
  // because its client must learn of the change. Call this once, before the answer is passed to
  // gRPC.
  absl::Status Hold(std::size_t bytes, bool may_refuse, grpc::ServerContextBase& context);

 private:
  UnsentAnswers& answers_;
  StallWatch& stalls_;
  std::string connection_;
  std::int64_t bytes_ = 0;  // As added to answers_. 0: none.
  std::optional<StallWatch::Waits> write_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_UNSENT_ANSWERS_H_
