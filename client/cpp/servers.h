#ifndef SOFTLOOKUP_CLIENT_CPP_SERVERS_H_
#define SOFTLOOKUP_CLIENT_CPP_SERVERS_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "softlookup/admin/v1/admin.grpc.pb.h"
#include "softlookup/client.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::client_internal {

// A server that a client can call.
struct Server {
  std::shared_ptr<grpc::ChannelInterface> channel;
  std::unique_ptr<v1::SoftLookup::Stub> stub;
  std::unique_ptr<admin::v1::Admin::Stub> admin_stub;
};

// The servers that a client names, in their order. Calls go to one of them at a time, the current
// one, which is the first at the beginning. Thread-safe.
//
// With one server, no function looks at its connection, except AwaitConnection() and
// CannotConnect().
class Servers {
 public:
  // There must be at least one channel. They need not be connected.
  explicit Servers(std::vector<std::shared_ptr<grpc::ChannelInterface>> channels);

  std::size_t size() const { return servers_.size(); }

  // Returns the server for the next call: the current one if it is connected. Otherwise connects to
  // one server after the other, beginning with the current one, and makes the first that can be
  // reached the current one. The next one is tried when a server cannot be reached, or does not
  // answer for a second. Ends when all have failed to connect, or at half of the time until
  // `deadline`. Then returns a server at which calls fail at once, so that they tell why. If there
  // is none, returns the current one.
  const Server& Connect(absl::Time deadline);

  // Waits until a server is connected. False at `deadline`.
  bool AwaitConnection(absl::Time deadline) const;

  // Whether the last attempt to connect has failed at each server.
  bool CannotConnect() const;

  // Takes the failure of a call at `server`. If it is away, or has refused a write because another
  // node is the primary, lets the following calls go to the server after it, unless they go
  // elsewhere already.
  void NoteFailure(const Server& server, const absl::Status& status);

 private:
  std::vector<Server> servers_;
  std::atomic<std::size_t> current_ = 0;  // Index in servers_.
};

// Returns the channels of a client, with the options of `options`. `addresses` names one or more
// servers, and must pass CheckServers().
std::vector<std::shared_ptr<grpc::ChannelInterface>> OpenChannels(std::string_view addresses,
                                                                  const ClientOptions& options);

// Whether the server has refused a write, which it has not made, because another node of its group
// is the primary.
bool IsRefusedByFollower(const absl::Status& status);

// Whether the server has refused the call because it still reads its stores. It has not looked at
// the call.
bool IsLoading(const absl::Status& status);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_SERVERS_H_
