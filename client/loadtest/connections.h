#ifndef SOFTLOOKUP_CLIENT_LOADTEST_CONNECTIONS_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_CONNECTIONS_H_

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/bearer_token.h"
#include "softlookup/credentials.h"

namespace softlookup::loadtest {

// Connections to one server, for requests and answers as bytes: nothing is encoded or parsed on
// the way. Thread-safe.
class Connections {
 public:
  // Opens `count` of them, at least 1, to HOST:PORT. Unavailable if one is not there in time,
  // InvalidArgument for credentials that ValidateCredentials() refuses.
  static absl::StatusOr<Connections> Open(const std::string& address, int count,
                                          absl::Duration timeout,
                                          const Credentials& credentials = {});

  std::size_t size() const { return stubs_.size(); }
  grpc::GenericStub& stub(std::size_t i) const { return *stubs_[i]; }

  // Readies a call's context: the call carries the token, if there is one.
  void Authorize(grpc::ClientContext* context) const { token_.AddTo(context); }

 private:
  explicit Connections(client_internal::BearerToken token) : token_(std::move(token)) {}

  client_internal::BearerToken token_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_CONNECTIONS_H_
