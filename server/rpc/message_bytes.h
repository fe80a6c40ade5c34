#ifndef SOFTLOOKUP_SERVER_RPC_MESSAGE_BYTES_H_
#define SOFTLOOKUP_SERVER_RPC_MESSAGE_BYTES_H_

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"

namespace softlookup::server {

// Each function returns an error if a message has more bytes than `bytes_max`.

// The error is `reason`. `what` begins the text of the error, such as "The message has". The number
// of bytes follows `what`.
absl::Status CheckBytes(std::size_t bytes, std::int64_t bytes_max, const ErrorReason& reason,
                        absl::string_view what);
// For a request. The error is MESSAGE_TOO_LARGE.
absl::Status CheckMessageBytes(std::int64_t bytes, std::int64_t bytes_max);
// The error is ANSWER_TOO_LARGE.
absl::Status CheckAnswerBytes(const google::protobuf::MessageLite& answer, std::int64_t bytes_max);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_MESSAGE_BYTES_H_
