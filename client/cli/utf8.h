#ifndef SOFTLOOKUP_CLIENT_CLI_UTF8_H_
#define SOFTLOOKUP_CLIENT_CLI_UTF8_H_

#include <cstddef>
#include <string_view>

namespace softlookup::cli {

// Returns the number of bytes of the character that `text` begins with. 0 if `text` is empty or
// does not begin with valid UTF-8.
std::size_t Utf8Length(std::string_view text);

// Returns the code point of the character that `text` begins with. Utf8Length(text) must be over 0.
char32_t FirstCodePoint(std::string_view text);

}  // namespace softlookup::cli

#endif  // SOFTLOOKUP_CLIENT_CLI_UTF8_H_
