#ifndef SOFTLOOKUP_SERVER_RPC_RPC_H_
#define SOFTLOOKUP_SERVER_RPC_RPC_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/queue_event.h"

namespace softlookup::server {

// One call as gRPC carries it: metadata, messages as bytes, and a status. Its handler interprets
// the bytes. An Rpc deletes itself once the call is over.
//
// At most one read and one write may be in progress. Call either Finish() or WriteAndFinish() once,
// also after OnCancel(), and not during a write. Start no read or write after that. Thread-safe
// within these rules.
class Rpc {
 public:
  // Is notified of the ends of operations, on the threads of the queue. If two operations
  // end, two notifications may run at once. Work that takes long or waits belongs on another
  // thread.
  class Handler {
   public:
    virtual ~Handler() = default;
    // `ok` is false if no message was read: the client sends no more, or the call is over.
    virtual void OnReadDone(bool ok) {}
    // `ok` is false if the call is over. Not called for WriteAndFinish().
    virtual void OnWriteDone(bool ok) {}
    // The client is gone, its deadline is past, or the server cancels. Called at most once, perhaps
    // within Attach().
    virtual void OnCancel() {}
    // No operation is in progress any more. This is the last notification.
    virtual void OnDone() = 0;
  };

  // Starts Rpcs. Is notified when a call comes for one, when the call is cancelled, and when the
  // Rpc is deleted. The notifications come on the threads of the queue, but OnGone() may
  // come on any thread.
  class Owner {
   public:
    virtual ~Owner() = default;
    // A call has come. Attach() must be called, here or later.
    virtual void OnAccept(Rpc& rpc) = 0;
    // The call was cancelled before it was answered: by its client, by the server, or because its
    // deadline is past or its connection gone. May come before OnAccept().
    virtual void OnCancelled(const Rpc& rpc) = 0;
    // An Rpc was deleted, whether or not its call ever came.
    virtual void OnGone() = 0;
  };

  // Makes an Rpc that waits for a call of `service`. The Rpc's events come out of `queue`, as
  // QueueEvents. `owner`
  // must live until its OnGone() for this Rpc has returned.
  static void Request(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue,
                      Owner& owner);

  Rpc(const Rpc&) = delete;
  Rpc& operator=(const Rpc&) = delete;

  // The method, written `/package.Service/Method`.
  const std::string& path() const { return context_.method(); }
  // Several threads may read its metadata at once.
  grpc::ServerContext& context() { return context_; }
  const grpc::ServerContext& context() const { return context_; }
  // The connection's other end, as gRPC names it.
  const std::string& peer() const { return peer_; }
  // The queue of the call's events. Who answers the call may also use it for operations of a
  // client, as QueueEvents, if they are started before Finish().
  grpc::CompletionQueue& queue() const { return queue_; }
  // Time since the call came.
  absl::Duration age() const { return absl::FromChrono(std::chrono::steady_clock::now() - came_); }

  // Notifies `handler` from now on. Call this once, before any method below. `handler` must live
  // until its OnDone(), which may delete it.
  void Attach(Handler& handler);

  // `*message` must live until OnReadDone().
  void StartRead(grpc::ByteBuffer* message);
  // The bytes of `message` are shared, not copied.
  void StartWrite(const grpc::ByteBuffer& message);
  void WriteAndFinish(const grpc::ByteBuffer& message, const grpc::Status& status);
  void Finish(const grpc::Status& status);

 private:
  class Tag final : public QueueEvent {
   public:
    Tag(Rpc* rpc, void (Rpc::*on_event)(bool ok)) : rpc_(rpc), on_event_(on_event) {}
    void OnEvent(bool ok) override { (rpc_->*on_event_)(ok); }

   private:
    Rpc* const rpc_;
    void (Rpc::*const on_event_)(bool ok);
  };

  Rpc(grpc::CompletionQueue& queue, Owner& owner)
      : queue_(queue), owner_(owner), stream_(&context_) {}

  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok) { Release(); }
  // The call is over: gRPC has sent its status, or can send none any more.
  void OnOver(bool ok);
  // Counts one event less in pending_. After the last, calls the handler's OnDone(), deletes this,
  // and calls the owner's OnGone().
  void Release();

  grpc::CompletionQueue& queue_;
  Owner& owner_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  Tag accepted_{this, &Rpc::OnAccepted};
  Tag read_{this, &Rpc::OnRead};
  Tag written_{this, &Rpc::OnWritten};
  Tag finished_{this, &Rpc::OnFinished};
  Tag over_{this, &Rpc::OnOver};
  // Number of events still to come. Two always come: that of over_, and that of the operation which
  // sends the status. Each read and each write in progress adds one.
  std::atomic<int> pending_{2};
  // For checks of the rules in the class comment.
  std::atomic<bool> is_reading_{false};
  std::atomic<bool> is_writing_{false};
  std::atomic<bool> is_finishing_{false};

  // OnAccepted() writes peer_ and came_ once, under mutex_, because OnOver() may run before it or
  // at the same time, on another thread.
  std::string peer_;
  std::chrono::steady_clock::time_point came_;

  absl::Mutex mutex_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  Handler* handler_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool over_before_attach_ ABSL_GUARDED_BY(mutex_) = false;
  // The same as handler_, but read without the lock. Only events of operations that were started
  // after Attach() read it.
  Handler* attached_ = nullptr;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_RPC_H_
