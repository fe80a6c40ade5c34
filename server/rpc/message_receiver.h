#ifndef SOFTLOOKUP_SERVER_RPC_MESSAGE_RECEIVER_H_
#define SOFTLOOKUP_SERVER_RPC_MESSAGE_RECEIVER_H_

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/limits.h"
#include "server/limits/request_bytes.h"
#include "server/rpc/message_scans.h"

namespace softlookup::server {

// The bytes of one request, charged to the budget of all requests and to that of its caller. The
// destructor returns them.
struct MessageCharge {
  RequestCharge of_all;
  RequestCharge of_caller;
};

// The caller whose budget a request's bytes are charged to.
struct CallerBytes {
  absl::string_view identity;            // Name of the caller's identity; empty if there is none.
  std::shared_ptr<RequestBytes> budget;  // Null if the caller has no identity.
};

// Parses the requests of all calls, within limits and budgets of bytes. Thread-safe.
class MessageReceiver {
 public:
  // `request_bytes_max` is the limit of the budget of all requests. 0: no limit.
  MessageReceiver(const Limits& limits, std::int64_t request_bytes_max)
      : message_bytes_max_(limits.message_bytes_max),
        scans_(limits),
        budget_(std::make_shared<RequestBytes>(request_bytes_max)) {}

  // Checks `bytes`, a request of `caller`. Takes the size of `bytes`, and the bytes that the parsed
  // message needs, from the budgets into `charge`. Then parses `bytes` into `message`, and clears
  // `bytes`. `message` must be of a request type of this server. `charge` must live as long as
  // anything refers to `message`. Errors: MESSAGE_TOO_LARGE, LIMIT_EXCEEDED, REQUEST_BYTES,
  // IDENTITY_LIMIT or MALFORMED_MESSAGE.
  absl::Status Receive(grpc::ByteBuffer& bytes, const CallerBytes& caller,
                       google::protobuf::Message& message, MessageCharge& charge) const;

  // Takes the size of `bytes`, a request of `caller` that is not parsed, from the budgets into
  // `charge`, which must live as long as the bytes are held. Errors: MESSAGE_TOO_LARGE,
  // REQUEST_BYTES or IDENTITY_LIMIT.
  absl::Status Hold(const grpc::ByteBuffer& bytes, const CallerBytes& caller,
                    MessageCharge& charge) const;

 private:
  absl::Status Charge(std::int64_t bytes, const CallerBytes& caller, MessageCharge& charge) const;

  const std::int64_t message_bytes_max_;
  const MessageScans scans_;  // Measure requests before they are parsed.
  const std::shared_ptr<RequestBytes> budget_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_MESSAGE_RECEIVER_H_
