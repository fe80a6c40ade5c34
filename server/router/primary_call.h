#ifndef SOFTLOOKUP_SERVER_ROUTER_PRIMARY_CALL_H_
#define SOFTLOOKUP_SERVER_ROUTER_PRIMARY_CALL_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "server/router/routed_call.h"

namespace softlookup::server {

// Whether a request may be made twice.
enum class Repeat : bool {
  // No: it is sent again only if nothing can have happened.
  kNever,
  // Yes: it changes nothing, or its writer and sequence let it happen once.
  kAllowed,
};

// A request that the primary of a group answers. Waits while there is none.
class PrimaryCall final : public RoutedCall {
 public:
  // `on_answer` is called with the bytes of an answer before it is passed on. May be null.
  using OnBytes = absl::AnyInvocable<void(grpc::ByteBuffer&)>;

  static std::shared_ptr<PrimaryCall> Make(const RouterParts& parts, RoutedRequest request,
                                           std::string store, Repeat repeat, OnBytes on_answer,
                                           Done done) {
    return std::shared_ptr<PrimaryCall>(new PrimaryCall(parts, std::move(request), std::move(store),
                                                        repeat, std::move(on_answer),
                                                        std::move(done)));
  }

 private:
  PrimaryCall(const RouterParts& parts, RoutedRequest request, std::string store, Repeat repeat,
              OnBytes on_answer, Done done)
      : RoutedCall(parts, std::move(request), std::move(store), std::move(done)),
        repeat_(repeat),
        on_answer_(std::move(on_answer)) {}

  void Try(const Group& group) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnError(const std::shared_ptr<Node>& node, const grpc::Status& status,
               const Group& group) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnAnswer(grpc::ByteBuffer& response) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (on_answer_ != nullptr) on_answer_(response);
  }
  // Sends the request to the node that another one has named as the primary. False if it cannot.
  bool FollowHint(const std::string& hint, const Node& from, const Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  static constexpr int kHintsMax = 3;

  const Repeat repeat_;
  OnBytes on_answer_;
  int hints_ ABSL_GUARDED_BY(mutex_) = 0;  // That were followed.
  bool has_moved_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_PRIMARY_CALL_H_
