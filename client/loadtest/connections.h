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

// Largest message that Connections send or receive. Equals the server's default of
// --max-message-bytes.
inline constexpr int kMessageBytesMax = 64 << 20;

// Connections to one server. They send and receive encoded messages as bytes, and do not parse
// them. Thread-safe.
class Connections {
 public:
  // Opens `count` connections, at least 1, to `address`, which is HOST:PORT. Unavailable if one of
  // the connections is not made within `timeout`. InvalidArgument if ValidateCredentials() refuses
  // `credentials`.
  static absl::StatusOr<Connections> Open(const std::string& address, int count,
                                          absl::Duration timeout,
                                          const Credentials& credentials = {});

  std::size_t size() const { return stubs_.size(); }
  grpc::GenericStub& stub(std::size_t i) const { return *stubs_[i]; }

  // Adds the token, if there is one, to a call's context.
  void Authorize(grpc::ClientContext* context) const { token_.AddTo(context); }

 private:
  explicit Connections(client_internal::BearerToken token) : token_(std::move(token)) {}

  client_internal::BearerToken token_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_CONNECTIONS_H_
