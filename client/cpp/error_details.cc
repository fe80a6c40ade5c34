#include "softlookup/error_details.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"

namespace softlookup {
namespace {

template <typename Message>
std::optional<Message> Detail(const absl::Status& status) {
  const auto payload =
      status.GetPayload(absl::StrCat("type.googleapis.com/", Message::descriptor()->full_name()));
  Message message;
  if (!payload.has_value() || !message.ParseFromString(std::string(*payload))) return std::nullopt;
  return message;
}

}  // namespace

std::string ErrorReason(const absl::Status& status) {
  const auto info = Detail<google::rpc::ErrorInfo>(status);
  return info.has_value() ? info->reason() : std::string();
}

std::map<std::string, std::string> ErrorMetadata(const absl::Status& status) {
  const auto info = Detail<google::rpc::ErrorInfo>(status);
  if (!info.has_value()) return {};
  return {info->metadata().begin(), info->metadata().end()};
}

std::optional<absl::Duration> RetryDelay(const absl::Status& status) {
  const auto info = Detail<google::rpc::RetryInfo>(status);
  if (!info.has_value()) return std::nullopt;
  return absl::Seconds(info->retry_delay().seconds()) +
         absl::Nanoseconds(info->retry_delay().nanos());
}

}  // namespace softlookup
