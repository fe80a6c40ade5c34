// Decoders of one line of text.
#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/byte_size.h"
#include "server/base/host_port.h"
#include "server/observability/trace_context.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/targets.h"

namespace softlookup::fuzz {
namespace {

bool IsHex(absl::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// The trace id of a header, as the standard's grammar has it.
absl::string_view ExpectedTraceId(absl::string_view header) {
  const std::vector<absl::string_view> parts = absl::StrSplit(header, '-');
  if (parts.size() < 4 || (parts[0] == "00" && parts.size() > 4)) return {};
  if (!IsHex(parts[0], 2) || !IsHex(parts[1], 32) || !IsHex(parts[2], 16) || !IsHex(parts[3], 2)) {
    return {};
  }
  const auto is_zero = [](absl::string_view id) { return id.find_first_not_of('0') == id.npos; };
  return parts[0] == "ff" || is_zero(parts[1]) || is_zero(parts[2]) ? absl::string_view()
                                                                    : parts[1];
}

}  // namespace

void FuzzTraceContext(const std::uint8_t* bytes, std::size_t size) {
  const absl::string_view header(reinterpret_cast<const char*>(bytes), size);
  const absl::string_view id = server::TraceIdIn(header);
  REQUIRE(id == ExpectedTraceId(header));
  REQUIRE(id.empty() || id.data() == header.data() + 3);
}

void FuzzFlagText(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(bytes, bytes + size);
  if (const std::optional<std::int64_t> count = cli::ParseByteSize(text)) {
    REQUIRE(*count >= 0);
    REQUIRE(cli::ParseByteSize(absl::StrCat(*count)) == count);
    REQUIRE(text.find_first_of("0123456789") == 0);
  }
  if (const std::optional<server::HostPort> address = server::SplitHostPort(text)) {
    REQUIRE(!address->host.empty() && address->port >= 0 && address->port <= 65535);
    const std::string again = absl::StrCat("[", address->host, "]:", address->port);
    const std::optional<server::HostPort> split = server::SplitHostPort(again);
    REQUIRE(split && split->host == address->host && split->port == address->port);
  }
}

}  // namespace softlookup::fuzz
