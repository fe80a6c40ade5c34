#include "server/rpc/status.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace softlookup::server {
namespace {

// Maximum bytes of an error's message and of a metadata value. Both can quote long texts of a
// client, but trailers hold only a few kilobytes.
constexpr std::size_t kMessageBytesMax = 1024;
constexpr std::size_t kMetadataBytesMax = 256;

// The number of bytes of the UTF-8 character that `text` begins with, or 0 if it begins with none.
std::size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t bytes = lead < 0x80                   ? 1
                            : lead >= 0xc2 && lead < 0xe0 ? 2
                            : lead >= 0xe0 && lead < 0xf0 ? 3
                            : lead >= 0xf0 && lead < 0xf5 ? 4
                                                          : 0;
  if (text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if (byte(i) < 0x80 || byte(i) >= 0xc0) return 0;
  }
  // Not UTF-8: overlong encodings, UTF-16 surrogates, and code points beyond Unicode.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90)) {
    return 0;
  }
  return bytes;
}

// Returns `text`. If it is longer than `bytes_max` bytes, cuts it to at most as many, between two
// characters, and appends "...". A byte that is not UTF-8, such as one of a file's name, becomes
// "?": clients cannot parse a message that holds such a byte.
std::string Shortened(absl::string_view text, std::size_t bytes_max) {
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = CharacterBytes(text);
    if (result.size() + std::max<std::size_t>(bytes, 1) > bytes_max) {
      return absl::StrCat(result, "...");
    }
    absl::StrAppend(&result, bytes == 0 ? "?" : text.substr(0, bytes));
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status result;
  // The codes of absl::Status are those of gRPC.
  result.set_code(static_cast<int>(status.code()));
  result.set_message(WireText(status.message()));
  google::rpc::ErrorInfo info;
  const std::string reason = ReasonOf(status);
  info.set_reason(reason.empty() ? absl::StatusCodeToString(status.code()) : reason);
  info.set_domain("softlookup");
  for (const auto& [name, value] : MetadataOf(status)) {
    (*info.mutable_metadata())[name] = Shortened(value, kMetadataBytesMax);
  }
  result.add_details()->PackFrom(info);
  if (const auto delay = RetryAfterOf(status)) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(*delay));
    retry.mutable_retry_delay()->set_nanos(
        static_cast<std::int32_t>(absl::ToInt64Nanoseconds(*delay) % 1'000'000'000));
    result.add_details()->PackFrom(retry);
  }
  return result;
}

}  // namespace

std::string WireText(absl::string_view text) { return Shortened(text, kMessageBytesMax); }

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status rpc_status = ToRpcStatus(status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), rpc_status.message(),
                      rpc_status.SerializeAsString());
}

grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContextBase& context) {
  if (const auto delay = RetryAfterOf(status)) {
    const absl::Duration rounded = absl::Ceil(*delay, absl::Milliseconds(1));
    context.AddTrailingMetadata("grpc-retry-pushback-ms",
                                absl::StrCat(absl::ToInt64Milliseconds(rounded)));
  }
  return ToGrpcStatus(status);
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  google::rpc::RetryInfo retry;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : details.details()) {
      if (detail.Is<google::rpc::ErrorInfo>()) detail.UnpackTo(&info);
      if (detail.Is<google::rpc::RetryInfo>()) detail.UnpackTo(&retry);
    }
  }
  if (info.reason().empty()) return absl::Status(code, status.error_message());
  absl::Status result = MakeError({.code = code, .name = info.reason()}, status.error_message(),
                                  ErrorMetadata(info.metadata().begin(), info.metadata().end()));
  if (!retry.has_retry_delay()) return result;
  return WithRetryAfter(std::move(result), absl::Seconds(retry.retry_delay().seconds()) +
                                               absl::Nanoseconds(retry.retry_delay().nanos()));
}

v1::LookupError ToLookupError(const absl::Status& status) {
  google::rpc::Status rpc_status = ToRpcStatus(status);
  v1::LookupError error;
  error.set_code(rpc_status.code());
  error.set_message(rpc_status.message());
  *error.mutable_details() = std::move(*rpc_status.mutable_details());
  return error;
}

absl::Status ShuttingDown() {
  return WithRetryAfter(MakeError(reasons::kShuttingDown, "The server is stopping"),
                        absl::Milliseconds(500));
}

absl::Status MalformedMessage() {
  return MakeError(reasons::kMalformedMessage, "The message is not one that this method takes");
}

}  // namespace softlookup::server
