#ifndef SOFTLOOKUP_SERVER_RPC_STREAM_REGISTRY_H_
#define SOFTLOOKUP_SERVER_RPC_STREAM_REGISTRY_H_

#include <atomic>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/weak_list.h"

namespace softlookup::server {

// A call that may last as long as its client likes, a unary lookup's wait for a revision, or the
// work of a CompactStore or RestoreStore call. The server must be able to end it: it could delay
// the server's stop, or outlast its caller's rights.
class DrainableStream {
 public:
  virtual ~DrainableStream() = default;
  // Called when the server stops. A stream of appends or lookups ends once it has answered the
  // messages that it has read. Any other stream, a wait, a compaction and a restore end soon. Does
  // nothing for a call that always ends by itself, such as ReadRows.
  virtual void Drain() = 0;
  // Ends the stream, the wait or the work if the caller no longer has the right to make the call.
  virtual void Recheck() = 0;
};

// Passes Drain() and Recheck() on to every stream in progress. Drains also each stream that begins
// after Drain(). Thread-safe.
class StreamRegistry {
 public:
  // Registers `stream` for Drain() and Recheck(). Drains it at once if the server is already
  // stopping.
  void Add(const std::shared_ptr<DrainableStream>& stream);
  // Call this when the server stops. Drains all streams.
  void Drain();
  // Whether Drain() was called: a stream that is added from now on is drained at once.
  bool is_draining() const { return draining_; }
  // Call this after the auth rules have changed. Rechecks all streams.
  void Recheck();

 private:
  absl::Mutex mutex_;
  // Set under mutex_, so that either Drain() or Add() drains a new stream.
  std::atomic<bool> draining_{false};
  WeakList<DrainableStream> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STREAM_REGISTRY_H_
