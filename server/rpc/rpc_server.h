#ifndef SOFTLOOKUP_SERVER_RPC_RPC_SERVER_H_
#define SOFTLOOKUP_SERVER_RPC_RPC_SERVER_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/rpc/rpc.h"

namespace softlookup::server {

// Takes calls from gRPC, whatever their methods, and runs their events on threads of its own. No
// message is read before the call's handler asks for it.
class RpcServer final : private Rpc::Owner {
 public:
  // Called with each new call, on the server's threads, several at once. Must attach a handler to
  // the call, before or after it returns.
  using Accept = std::function<void(Rpc&)>;
  // Called on the server's threads for each call that was cancelled before it was answered. Not
  // called once the server stops.
  using OnCancel = std::function<void(const Rpc&)>;

  RpcServer(Accept accept, OnCancel on_cancel)
      : accept_(std::move(accept)), on_cancel_(std::move(on_cancel)) {}
  ~RpcServer() override;
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Registers with `builder`, starts gRPC and serves on `thread_count` threads. Call this once, or
  // the next two in its place. INTERNAL if gRPC does not start.
  absl::Status Start(grpc::ServerBuilder& builder, int thread_count);
  // Registers with `builder`, for all methods that no other service of it has.
  void AddTo(grpc::ServerBuilder& builder);
  // Serves on `thread_count` threads. `server` was started by the builder of AddTo().
  void Serve(std::shared_ptr<grpc::Server> server, int thread_count);

  // Takes no new calls, and cancels those that are in progress at `deadline`, also those of the
  // server's other services. Returns once no connection is left. Handlers may still be at work.
  void Shutdown(absl::Time deadline);
  // Cancels all calls and closes all connections.
  void CancelAll();
  // Waits until every Rpc is deleted, then ends the threads. Call this after Shutdown().
  void Wait();

 private:
  void OnAccept(Rpc& rpc) override;
  void OnCancelled(const Rpc& rpc) override;
  void OnGone() override;
  // Asks gRPC for one more call, unless the server is stopping.
  void RequestOne();
  void Run();

  const Accept accept_;
  const OnCancel on_cancel_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;  // Null before AddTo().
  std::shared_ptr<grpc::Server> server_;                // Null before Serve().
  std::vector<std::thread> threads_;

  // Threads that only read stopping_ take this lock shared, so that they do not wait for each
  // other.
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Number of Rpcs, including those that wait for a call. Falls to 0 only after stopping_ is set.
  std::atomic<int> rpc_count_{0};
  absl::Notification all_gone_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_RPC_SERVER_H_
