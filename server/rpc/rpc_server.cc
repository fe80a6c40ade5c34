#include "server/rpc/rpc_server.h"

#include <grpc/grpc.h>

#include <chrono>

namespace softlookup::server {
namespace {

// Calls that may come at once before a thread has taken one. Others wait within gRPC.
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
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) Rpc::OnEvent(tag, ok);
}

void RpcServer::RequestOne() {
  // Under the lock: nothing may be started on a queue that is shut down.
  absl::MutexLock lock(&mutex_);
  if (stopping_) return;
  ++rpc_count_;
  Rpc::Request(service_, *queue_, *this);
}

void RpcServer::OnAccept(Rpc& rpc) {
  RequestOne();
  accept_(rpc);
}

void RpcServer::OnCancelled(grpc::ServerContext& context) {
  // One that was not answered in time is no fault of its client's.
  if (context.deadline() > std::chrono::system_clock::now()) taken_back_(context.peer());
}

void RpcServer::OnGone() {
  absl::MutexLock lock(&mutex_);
  --rpc_count_;
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
  const auto all_gone = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return rpc_count_ == 0; };
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&all_gone));
  }
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace softlookup::server
