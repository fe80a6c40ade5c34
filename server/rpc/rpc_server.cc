#include "server/rpc/rpc_server.h"

#include <grpc/grpc.h>

#include "server/rpc/time_slice.h"

namespace softlookup::server {
namespace {

// Number of Rpcs that wait for a call. If more calls come before a thread has accepted one, the
// rest wait within gRPC.
constexpr int kRequestsAhead = 64;

}  // namespace

RpcServer::~RpcServer() {
  if (server_ == nullptr) return;
  Shutdown(absl::InfinitePast());
  Wait();
}

absl::Status RpcServer::Start(grpc::ServerBuilder& builder, int thread_count) {
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
    return absl::InternalError("cannot start gRPC");
  }
  for (int i = 0; i < kRequestsAhead; ++i) RequestOne();
  for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this] { Run(); });
  return absl::OkStatus();
}

void RpcServer::Run() {
  // Each event is short, and a client waits for it.
  AskForShortTimeSlices();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) Rpc::OnEvent(tag, ok);
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
