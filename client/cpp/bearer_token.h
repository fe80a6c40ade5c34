#ifndef SOFTLOOKUP_CLIENT_CPP_BEARER_TOKEN_H_
#define SOFTLOOKUP_CLIENT_CPP_BEARER_TOKEN_H_

#include <grpcpp/client_context.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace softlookup::client_internal {

// The token that tells the server who makes a call. It must be added to every ClientContext.
class BearerToken {
 public:
  // If `token` is empty, calls carry none.
  explicit BearerToken(const std::string& token)
      : authorization_(token.empty() ? "" : absl::StrCat("Bearer ", token)) {}

  // `context` must belong to a call that has not begun. Call this once per context.
  void AddTo(grpc::ClientContext* context) const {
    if (!authorization_.empty()) context->AddMetadata("authorization", authorization_);
  }

 private:
  std::string authorization_;
};

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_BEARER_TOKEN_H_
