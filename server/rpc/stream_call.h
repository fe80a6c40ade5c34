#ifndef SOFTLOOKUP_SERVER_RPC_STREAM_CALL_H_
#define SOFTLOOKUP_SERVER_RPC_STREAM_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "server/limits/stall_watch.h"
#include "server/rpc/call.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/rpc.h"
#include "server/rpc/stream_registry.h"

namespace softlookup::server {

// A call with a stream of requests, of answers, or of both. Is ended if its client takes too long
// to send the first message, or to take a message (StallWatch). `Derived` is the class that derives
// from this, and says what is read and written.
//
// The object owns itself until the call is over. After that, a callback or a worker's task that
// still refers to the object keeps it alive.
template <typename Derived>
class StreamCall : public Rpc::Handler,
                   public DrainableStream,
                   public std::enable_shared_from_this<Derived> {
 public:
  void OnReadDone(bool ok) final {
    arrival_.OnDone();
    OnRead(ok);
  }
  void OnWriteDone(bool ok) final {
    writes_.OnDone();
    OnWritten(ok);
  }
  void OnDone() final {
    arrival_.End();
    writes_.End();
    self_.reset();  // Deletes this if nothing else refers to it.
  }

 protected:
  explicit StreamCall(std::unique_ptr<Call> call)
      : call_(std::move(call)),
        arrival_(call_->limiters().arrivals, call_->rpc().context()),
        writes_(call_->limiters().stalls, call_->rpc().context()) {}

  // Starts the call with its first read. Call this once, before any other method. A shared_ptr must
  // hold this object when Begin() is called.
  void Begin() {
    const std::shared_ptr<Derived> self = this->shared_from_this();
    self_ = self;
    call_->rpc().Attach(*this);
    arrival_.OnStart();
    ReadFirst();
    call_->streams().Add(self);
  }

  // Calls StartRead() for the first message.
  virtual void ReadFirst() { StartRead(); }
  // As OnReadDone() and OnWriteDone() of Rpc::Handler.
  virtual void OnRead(bool ok) = 0;
  virtual void OnWritten(bool ok) = 0;

  // Start to read a message into bytes(), and to write `message`. The rules of Rpc hold.
  void StartRead() { call_->rpc().StartRead(&bytes_); }
  void StartWrite(const grpc::ByteBuffer& message) {
    writes_.OnStart();
    call_->rpc().StartWrite(message);
  }

  // Runs `handle`, which parses bytes(), on this thread, or on a worker's if they are more than
  // kNetworkThreadParseBytesMax. `handle` must keep this object alive.
  template <typename Handle>
  void HandleMessage(Handle handle) {
    if (bytes_.Length() <= kNetworkThreadParseBytesMax) return handle();
    call_->limiters().workers.PostNext(call_->turn(), std::move(handle));
  }

  Call& call() { return *call_; }
  // The message that was read last. Nothing may use it during a read.
  grpc::ByteBuffer& bytes() { return bytes_; }

 private:
  std::shared_ptr<Derived> self_;  // Null before Begin() and after OnDone().
  const std::unique_ptr<Call> call_;
  StallWatch::Waits arrival_;  // The wait for the first message.
  StallWatch::Waits writes_;   // The waits until the client takes a message.
  grpc::ByteBuffer bytes_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STREAM_CALL_H_
