#include "server/router/routed_call.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/error.h"
#include "core/base/steady_time.h"
#include "server/rpc/alarm.h"
#include "server/rpc/status.h"

namespace softlookup::server {

RoutedCall::RoutedCall(const RouterParts& parts, RoutedRequest request, std::string store,
                       Done done)
    : parts_(parts),
      request_(std::move(request)),
      store_(std::move(store)),
      done_(std::move(done)) {}

void RoutedCall::Start() {
  parts_.tenants.FindGroup(
      store_, [self = shared_from_this()](const absl::StatusOr<std::string>& group) {
        if (group.ok()) return self->StartIn(*group);
        self->Run([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { self->Finish(group.status()); });
      });
}

void RoutedCall::StartIn(const std::string& group) {
  {
    absl::MutexLock lock(&mutex_);
    group_ = group;
    give_up_ = SteadyNow() + std::min(kTryMax, request_.deadline - absl::Now());
  }
  RunInGroup([this](const Group& now) ABSL_NO_THREAD_SAFETY_ANALYSIS { Try(now); });
}

void RoutedCall::Cancel() {
  Run([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Finish(MakeError(reasons::kCancelled, "The caller is gone"));
  });
}

template <typename Step>
void RoutedCall::Run(Step step) {
  Done done;
  Ending ending;
  {
    absl::MutexLock lock(&mutex_);
    if (done_ == nullptr) return;
    step();
    if (!ending_.has_value()) return;
    done = std::exchange(done_, nullptr);
    ending = *std::exchange(ending_, std::nullopt);
    alarm_.reset();
    for (const std::shared_ptr<NodeCall>& call : running_) call->Cancel();
    running_.clear();
  }
  done(std::move(ending.status), ending.response);
}

template <typename Step>
void RoutedCall::RunInGroup(Step step) {
  Run([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const std::shared_ptr<const ClusterMap> map = parts_.watch.map();
    const Group* const group = map->Find(group_);
    // A group that is not there yet, or not any more, has no nodes.
    step(group == nullptr ? Group{.name = group_} : *group);
  });
}

void RoutedCall::Send(const std::shared_ptr<Node>& node, const grpc::ByteBuffer& bytes,
                      std::optional<absl::Duration> revision_wait) {
  running_.push_back(NodeCall::Start(
      parts_.calls, node, request_, bytes, revision_wait,
      [self = shared_from_this(), node](const grpc::Status& status, grpc::ByteBuffer& response) {
        self->OnDone(node, status, response);
      }));
}

void RoutedCall::OnDone(const std::shared_ptr<Node>& node, const grpc::Status& status,
                        grpc::ByteBuffer& response) {
  RunInGroup([&](const Group& group) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    std::erase_if(running_, [&](const auto& call) { return call->node() == node; });
    if (!status.ok()) return OnError(node, status, group);
    OnAnswer(response);
    Finish(absl::OkStatus(), response);
  });
}

void RoutedCall::LookAgain(absl::Status why) {
  if (SteadyNow() + kLookAgain >= give_up_) return Finish(std::move(why));
  parts_.watch.Wake();
  SetAlarm(alarm_.emplace(), absl::Now() + kLookAgain, [self = shared_from_this()](bool is_time) {
    if (!is_time) return;
    self->RunInGroup([&](const Group& group) ABSL_NO_THREAD_SAFETY_ANALYSIS { self->Try(group); });
  });
}

void RoutedCall::OnTime() {
  RunInGroup([this](const Group& group) ABSL_NO_THREAD_SAFETY_ANALYSIS { OnWaited(group); });
}

void RoutedCall::Finish(absl::Status status, const grpc::ByteBuffer& response) {
  if (!ending_.has_value()) ending_ = {std::move(status), response};
}

}  // namespace softlookup::server
