#ifndef SOFTLOOKUP_SERVER_LIMITS_UNSENT_ANSWERS_H_
#define SOFTLOOKUP_SERVER_LIMITS_UNSENT_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// Counts the bytes of memory that unary calls' answers take until clients take them from gRPC.
// Add() can refuse an answer that would exceed a maximum. UnsentAnswer says which answers are
// counted. Thread-safe.
class UnsentAnswers {
 public:
  // Maximum number of counted bytes of one connection's answers, and of all answers. An answer of
  // more than kConnectionBytesMax is allowed if its connection has no other counted answer. An
  // answer of more than kBytesMax is allowed if there is no other counted answer at all.
  static constexpr std::int64_t kConnectionBytesMax = std::int64_t{64} << 20;
  static constexpr std::int64_t kBytesMax = std::int64_t{256} << 20;

  // Adds `bytes` of an answer. Returns false, and adds nothing, if they would exceed a maximum and
  // `may_refuse` is set. `connection` is the connection's peer, as gRPC names it. A router's
  // connection counts as one for each address of a client that the router tells.
  bool Add(const std::string& connection, std::int64_t bytes, bool may_refuse);
  // Subtracts `bytes`, which Add() added for an answer.
  void Remove(const std::string& connection, std::int64_t bytes);

 private:
  absl::Mutex mutex_;
  std::int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of all connections.
  // The bytes of each connection. A connection without bytes has no entry.
  absl::flat_hash_map<std::string, std::int64_t> bytes_of_ ABSL_GUARDED_BY(mutex_);
};

// The bytes of one unsent answer, from when it is passed to gRPC until the call is over.
class UnsentAnswer {
 public:
  explicit UnsentAnswer(UnsentAnswers& answers) : answers_(answers) {}
  ~UnsentAnswer() {
    if (bytes_ > 0) answers_.Remove(connection_, bytes_);
  }
  UnsentAnswer(const UnsentAnswer&) = delete;
  UnsentAnswer& operator=(const UnsentAnswer&) = delete;

  // Counts an answer on `connection` until this object is destroyed. Counts twice its `bytes`,
  // because memory holds two copies. Does nothing if the answer has fewer than 4 KiB. QUEUE_FULL if
  // the counted bytes would exceed a maximum and `may_refuse` is set. The answer must then not be
  // sent. Do not set `may_refuse` if the call has changed anything, because its client must learn
  // of the change. Call this once, before the answer is passed to gRPC.
  absl::Status Hold(std::size_t bytes, bool may_refuse, const std::string& connection);
  // Whether an answer is counted: Hold() has succeeded, and the answer had 4 KiB or more.
  bool is_counted() const { return bytes_ > 0; }

 private:
  UnsentAnswers& answers_;
  std::string connection_;
  std::int64_t bytes_ = 0;  // As added to answers_. 0: none.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_UNSENT_ANSWERS_H_
