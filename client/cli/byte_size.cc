#include "client/cli/byte_size.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace softlookup::cli {

std::optional<std::int64_t> ParseByteSize(absl::string_view text) {
  const auto digits_end = std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit);
  const std::size_t digit_count = static_cast<std::size_t>(digits_end - text.begin());
  std::int64_t count = 0;
  if (!absl::SimpleAtoi(text.substr(0, digit_count), &count)) return std::nullopt;
  const absl::string_view unit = absl::StripLeadingAsciiWhitespace(text.substr(digit_count));
  int shift = 0;
  for (const char* name : {"", "KiB", "MiB", "GiB", "TiB"}) {
    if (absl::EqualsIgnoreCase(unit, name)) {
      if (count > std::numeric_limits<std::int64_t>::max() >> shift) return std::nullopt;
      return count << shift;
    }
    shift += 10;
  }
  return std::nullopt;
}

CLI::Validator ByteSize(std::int64_t min, std::int64_t max) {
  // Returns an error message, or "", as CLI11 wants it.
  const auto to_number = [min, max](std::string& text) -> std::string {
    const std::optional<std::int64_t> bytes = ParseByteSize(text);
    if (!bytes) {
      return absl::StrCat("\"", text,
                          "\" is not a number of bytes, such as 4GiB, 512MiB or 1000000; the units "
                          "are KiB, MiB, GiB and TiB");
    }
    if (*bytes < min || *bytes > max) {
      return absl::StrCat(*bytes, " bytes are not between ", min, " and ", max);
    }
    text = absl::StrCat(*bytes);
    return "";
  };
  return CLI::Validator(to_number, "SIZE");
}

}  // namespace softlookup::cli
