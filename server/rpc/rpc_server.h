#ifndef SOFTLOOKUP_SERVER_RPC_RPC_SERVER_H_
#define SOFTLOOKUP_SERVER_RPC_RPC_SERVER_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/rpc/rpc.h"

namespace softlookup::server {

// Serves every call that gRPC accepts, whatever its method, on threads of its own. No message is
// read before the call's handler asks for it.
class RpcServer final : private Rpc::Owner {
 public:
  // Called on the threads, several at once, with each call that comes. It must see to it that the
  // call gets a handler.
  using Accept = std::function<void(Rpc&)>;
  // Called on the threads with the peer of each call that its client takes back soon after it came,
  // or (late) whose deadline nobody could have kept.
  using TakenBack = std::function<void(const std::string& peer, bool is_late)>;

  RpcServer(Accept accept, TakenBack taken_back)
      : accept_(std::move(accept)), taken_back_(std::move(taken_back)) {}
  ~RpcServer() override;
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Adds to `builder` what it needs and serves. Once. INTERNAL if gRPC does not start.
  absl::Status Start(grpc::ServerBuilder& builder, int thread_count);

  // Takes no new calls, and cancels those that are in progress at `deadline`. Returns once no
  // connection is left. Handlers may still be at work.
  void Shutdown(absl::Time deadline);
  // Cancels all calls and closes all connections.
  void CancelAll();
  // Waits until every call is gone. After Shutdown().
  void Wait();

 private:
  void OnAccept(Rpc& rpc) override;
  void OnCancelled(const Rpc& rpc) override;
  void OnGone() override;
  // Waits for one more call, unless the server stops.
  void RequestOne();
  void Run();

  const Accept accept_;
  const TakenBack taken_back_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::thread> threads_;

  // Threads that read stopping_ lock it shared. They do not wait for each other then.
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Counts the Rpcs that wait for their call, too. It is 0 only once the server has stopped.
  std::atomic<int> rpc_count_{0};
  absl::Notification all_gone_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_RPC_SERVER_H_
