#include "client/output/xml_text.h"

#include <algorithm>

#include "client/cli/terminal_text.h"
#include "client/cli/utf8.h"

namespace softlookup::output {

std::string XmlText(std::string_view text) {
  constexpr char kReplacement[] = "\xef\xbf\xbd";  // U+FFFD.
  std::string escaped;
  while (!text.empty()) {
    const std::size_t length = cli::Utf8Length(text);
    const std::size_t taken = std::max<std::size_t>(length, 1);
    if (length == 0) {
      escaped += kReplacement;
    } else if (cli::StartsWithControl(text)) {
      escaped += ' ';  // XML forbids many control characters, and none is visible.
    } else if (text[0] == '&') {
      escaped += "&amp;";
    } else if (text[0] == '<') {
      escaped += "&lt;";
    } else if (text[0] == '>') {
      escaped += "&gt;";
    } else if (text[0] == '"') {
      escaped += "&quot;";
    } else {
      escaped.append(text.substr(0, taken));
    }
    text.remove_prefix(taken);
  }
  return escaped;
}

}  // namespace softlookup::output
