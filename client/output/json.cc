#include "client/output/json.h"

#include "absl/strings/str_format.h"
#include "client/cli/terminal_text.h"
#include "client/cli/utf8.h"

namespace softlookup::output {

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = cli::Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void PrintJson(const Json& json, std::ostream* out) {
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string escaped;
  for (std::string_view rest = line; !rest.empty();) {
    const std::size_t length = cli::Utf8Length(rest);  // At least 1: the line is UTF-8.
    if (cli::StartsWithControl(rest)) {                // All of these have four hexadecimal digits.
      absl::StrAppendFormat(&escaped, "\\u%04x", static_cast<unsigned>(cli::FirstCodePoint(rest)));
    } else {
      escaped.append(rest.substr(0, length));
    }
    rest.remove_prefix(length);
  }
  *out << escaped << "\n";
}

}  // namespace softlookup::output
