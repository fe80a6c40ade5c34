#include "server/rpc/routed_metadata.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace softlookup::server {
namespace {

// Returns the value of `key`; nullopt if it is absent, or there more than once.
std::optional<absl::string_view> ValueOf(const grpc::ServerContextBase& context, const char* key) {
  const auto [begin, end] = context.client_metadata().equal_range(key);
  if (begin == end || std::next(begin) != end) return std::nullopt;
  return absl::string_view(begin->second.data(), begin->second.size());
}

}  // namespace

Credentials RoutedCredentialsOf(const grpc::ServerContextBase& context) {
  const absl::string_view name = ValueOf(context, kRoutedIdentityKey).value_or("");
  return {.routed_identity = std::string(name)};
}

std::optional<std::string> RoutedClientOf(const grpc::ServerContextBase& context) {
  const absl::string_view client = ValueOf(context, kRoutedClientKey).value_or("");
  if (client.empty() || client.size() > kRoutedClientBytesMax) return std::nullopt;
  const auto is_shown = [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); };
  if (!std::all_of(client.begin(), client.end(), is_shown)) return std::nullopt;
  return std::string(client);
}

std::optional<absl::Duration> RoutedRevisionWaitOf(const grpc::ServerContextBase& context) {
  constexpr std::size_t kDigitsMax = 9;
  const absl::string_view text = ValueOf(context, kRoutedRevisionWaitKey).value_or("");
  const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  std::int64_t milliseconds = 0;
  if (text.size() > kDigitsMax || !std::all_of(text.begin(), text.end(), is_digit) ||
      !absl::SimpleAtoi(text, &milliseconds)) {
    return std::nullopt;
  }
  return absl::Milliseconds(milliseconds);
}

bool KnowsRanges(const grpc::ServerContextBase& context) {
  return ValueOf(context, kRoutedRangesKey).has_value();
}

}  // namespace softlookup::server
