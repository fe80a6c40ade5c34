#ifndef SOFTLOOKUP_CLIENT_CPP_CANCEL_SCOPE_H_
#define SOFTLOOKUP_CLIENT_CPP_CANCEL_SCOPE_H_

#include <grpcpp/client_context.h>

#include "softlookup/canceller.h"

namespace softlookup::client_internal {

// Has a Canceller cancel a call while this object lives.
class CancelScope {
 public:
  // `canceller` may be null. It and `context` must outlive this object.
  CancelScope(Canceller* canceller, grpc::ClientContext& context);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  Canceller* const canceller_;
  grpc::ClientContext& context_;
};

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_CANCEL_SCOPE_H_
