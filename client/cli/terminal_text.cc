#include "client/cli/terminal_text.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_format.h"
#include "client/cli/utf8.h"

namespace softlookup::cli {
namespace {

// Whether Unicode gives `code_point` the property Bidi_Control.
bool ControlsDirection(char32_t code_point) {
  return code_point == 0x061c || code_point == 0x200e || code_point == 0x200f ||
         (code_point >= 0x202a && code_point <= 0x202e) ||
         (code_point >= 0x2066 && code_point <= 0x2069);
}

}  // namespace

bool StartsWithControl(std::string_view text) {
  if (Utf8Length(text) == 0) return false;
  const char32_t first = FirstCodePoint(text);
  return first < 0x20 || (first >= 0x7f && first < 0xa0) || ControlsDirection(first);
}

std::string TerminalText(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    const std::size_t taken = std::max<std::size_t>(length, 1);
    if (text[0] == '\n') {
      shown += "\\n";
    } else if (text[0] == '\t') {
      shown += "\\t";
    } else if (length == 0 || StartsWithControl(text)) {
      for (const char byte : text.substr(0, taken)) {
        absl::StrAppendFormat(&shown, "\\x%02x", static_cast<unsigned char>(byte));
      }
    } else {
      shown.append(text.substr(0, taken));
    }
    text.remove_prefix(taken);
  }
  return shown;
}

std::string Excerpt(std::string_view text) {
  if (text.size() <= kExcerptBytesMax) return std::string(text);
  // Do not cut a character of UTF-8, of which all bytes but the first are continuation bytes.
  constexpr std::size_t kContinuationBytesMax = 3;
  std::size_t end = kExcerptBytesMax;
  while (end > kExcerptBytesMax - kContinuationBytesMax && (text[end] & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace softlookup::cli
