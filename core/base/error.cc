#include "core/base/error.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace softlookup {
namespace {

// absl::Status keys payloads by URL. The reason, the retry delay and each metadata entry have one
// payload each.
constexpr absl::string_view kReasonUrl = "softlookup/reason";
constexpr absl::string_view kRetryUrl = "softlookup/retry_after_us";
constexpr absl::string_view kUnknownOutcomeUrl = "softlookup/unknown_outcome";
constexpr absl::string_view kMetadataUrl = "softlookup/metadata/";

}  // namespace

absl::Status MakeError(const ErrorReason& reason, absl::string_view message,
                       ErrorMetadata metadata) {
  absl::Status status(reason.code, message);
  status.SetPayload(kReasonUrl, absl::Cord(reason.name));
  for (auto& [key, value] : metadata) {
    status.SetPayload(absl::StrCat(kMetadataUrl, key), absl::Cord(std::move(value)));
  }
  return status;
}

absl::Status InvalidOption(absl::string_view field, absl::string_view message) {
  return MakeError(reasons::kInvalidOption, absl::StrCat(field, ": ", message),
                   {{"field", std::string(field)}});
}

absl::Status WithRetryAfter(absl::Status status, absl::Duration delay) {
  status.SetPayload(kRetryUrl, absl::Cord(absl::StrCat(absl::ToInt64Microseconds(delay))));
  return status;
}

absl::Status WriteNotMade(absl::string_view why, ErrorMetadata metadata) {
  metadata.emplace_back("written", "no");
  return WithRetryAfter(
      MakeError(reasons::kStorageFailed, absl::StrCat("The write was not made: ", why),
                std::move(metadata)),
      absl::Seconds(1));
}

absl::Status WriteMayBeMade(absl::string_view why) {
  return WithUnknownOutcome(
      MakeError(reasons::kStorageFailed,
                absl::StrCat("The write may have been made, or may be made later: ", why),
                {{"written", "unknown"}}));
}

absl::Status WithUnknownOutcome(absl::Status status) {
  status.SetPayload(kUnknownOutcomeUrl, absl::Cord());
  return status;
}

bool HasUnknownOutcome(const absl::Status& status) {
  return status.GetPayload(kUnknownOutcomeUrl).has_value();
}

std::string ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonUrl);
  return payload ? std::string(*payload) : "";
}

ErrorMetadata MetadataOf(const absl::Status& status) {
  ErrorMetadata metadata;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    if (absl::ConsumePrefix(&url, kMetadataUrl)) {
      metadata.emplace_back(std::string(url), std::string(payload));
    }
  });
  std::sort(metadata.begin(), metadata.end());
  return metadata;
}

std::optional<absl::Duration> RetryAfterOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryUrl);
  std::int64_t microseconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &microseconds)) return std::nullopt;
  return absl::Microseconds(microseconds);
}

}  // namespace softlookup
