#include "server/rpc/rpc_server.h"

#include <grpc/grpc.h>

#include <utility>

#include "absl/time/clock.h"
#include "server/base/queue_event.h"
#include "server/rpc/time_slice.h"

namespace softlookup::server {
namespace {

// Number of Rpcs that wait for a call. If more calls come before a thread has accepted one, the
// rest wait within gRPC.
constexpr int kRequestsAhead = 64;

}  // namespace

RpcServer::~RpcServer() {
  if (server_ != nullptr) {
    Shutdown(absl::Now());  // gRPC takes InfinitePast() for the infinite future.
    Wait();
    return;
  }
  if (queue_ == nullptr) return;
  queue_->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
  }
}

absl::Status RpcServer::Start(grpc::ServerBuilder& builder, int thread_count) {
  AddTo(builder);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::InternalError("cannot start gRPC");
  Serve(std::move(server), thread_count);
  return absl::OkStatus();
}

void RpcServer::AddTo(grpc::ServerBuilder& builder) {
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
}

void RpcServer::Serve(std::shared_ptr<grpc::Server> server, int thread_count) {
  server_ = std::move(server);
  for (int i = 0; i < kRequestsAhead; ++i) RequestOne();
  for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this] { Run(); });
}

void RpcServer::Run() {
  // Each event is short, and a client waits for it.
  AskForShortTimeSlices();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    static_cast<QueueEvent*>(tag)->OnEvent(ok);
  }
}

void RpcServer::RequestOne() {
  // Under the lock, since no operation may be started on a queue that is shut down.
  absl::ReaderMutexLock lock(&mutex_);
  if (stopping_) return;
  rpc_count_.fetch_add(1, std::memory_order_relaxed);
  Rpc::Request(service_, *queue_, *this);
}

void RpcServer::OnAccept(Rpc& rpc) {
  RequestOne();
  accept_(rpc);
}

void RpcServer::OnCancelled(const Rpc& rpc) {
  {
    absl::ReaderMutexLock lock(&mutex_);
    if (stopping_) return;
  }
  on_cancel_(rpc);
}

void RpcServer::OnGone() {
  // Until the server stops, at least one Rpc waits for a call. After that, none is added.
  if (rpc_count_.fetch_sub(1, std::memory_order_acq_rel) == 1) all_gone_.Notify();
}

void RpcServer::Shutdown(absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  server_->Shutdown(absl::ToChronoTime(deadline));
}

void RpcServer::CancelAll() { grpc_server_cancel_all_calls(server_->c_server()); }

void RpcServer::Wait() {
  if (threads_.empty()) return;
  all_gone_.WaitForNotification();
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace softlookup::server
