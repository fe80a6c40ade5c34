#include "client/cli/utf8.h"

namespace softlookup::cli {
namespace {

unsigned char ByteAt(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// Returns the number of bytes of a character whose first byte is `lead`. 0 if no character begins
// with this byte.
std::size_t LengthFromLead(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;  // A continuation byte, or the start of an overlong form of ASCII.
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

// Whether `second` can follow `lead`. RFC 3629, section 4, excludes overlong forms, surrogates and
// code points above U+10FFFF.
bool IsSecond(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xe0:
      return second >= 0xa0 && second <= 0xbf;
    case 0xed:
      return second >= 0x80 && second <= 0x9f;
    case 0xf0:
      return second >= 0x90 && second <= 0xbf;
    case 0xf4:
      return second >= 0x80 && second <= 0x8f;
    default:
      return second >= 0x80 && second <= 0xbf;
  }
}

}  // namespace

std::size_t Utf8Length(std::string_view text) {
  if (text.empty()) return 0;
  const std::size_t length = LengthFromLead(ByteAt(text, 0));
  if (length > text.size()) return 0;
  if (length > 1 && !IsSecond(ByteAt(text, 0), ByteAt(text, 1))) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((ByteAt(text, i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

char32_t FirstCodePoint(std::string_view text) {
  const std::size_t length = Utf8Length(text);
  const unsigned char lead = ByteAt(text, 0);
  if (length == 1) return lead;
  // The first byte of a character of n bytes has n ones, a zero, and 7 - n bits of the code point.
  char32_t code_point = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) code_point = code_point << 6 | (ByteAt(text, i) & 0x3fu);
  return code_point;
}

}  // namespace softlookup::cli
