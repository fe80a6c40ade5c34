#ifndef SOFTLOOKUP_SERVER_RPC_MESSAGE_BYTES_H_
#define SOFTLOOKUP_SERVER_RPC_MESSAGE_BYTES_H_

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"

namespace softlookup::server {

// Each function returns RESOURCE_EXHAUSTED if a message has more bytes than `bytes_max`.

// `what` begins the error message, such as "The message has". The number of bytes follows it.
absl::Status CheckBytes(std::size_t bytes, std::int64_t bytes_max, const ErrorReason& reason,
                        absl::string_view what);
absl::Status CheckMessageBytes(std::int64_t bytes, std::int64_t bytes_max);
absl::Status CheckAnswerBytes(const google::protobuf::MessageLite& answer, std::int64_t bytes_max);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_MESSAGE_BYTES_H_
