#include "server/rpc/message_bytes.h"

#include "absl/strings/str_cat.h"

namespace softlookup::server {

absl::Status CheckBytes(std::size_t bytes, std::int64_t bytes_max, const ErrorReason& reason,
                        absl::string_view what) {
  if (bytes <= static_cast<std::size_t>(bytes_max)) return absl::OkStatus();
  return MakeError(reason, absl::StrCat(what, " ", bytes, " bytes; the limit is ", bytes_max),
                   {{"bytes", absl::StrCat(bytes)}, {"limit", absl::StrCat(bytes_max)}});
}

absl::Status CheckMessageBytes(std::int64_t bytes, std::int64_t bytes_max) {
  return CheckBytes(static_cast<std::size_t>(bytes), bytes_max, reasons::kMessageTooLarge,
                    "The message has");
}

absl::Status CheckAnswerBytes(const google::protobuf::MessageLite& answer, std::int64_t bytes_max) {
  return CheckBytes(answer.ByteSizeLong(), bytes_max, reasons::kAnswerTooLarge,
                    "The answer would need");
}

}  // namespace softlookup::server
