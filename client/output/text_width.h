#ifndef SOFTLOOKUP_CLIENT_OUTPUT_TEXT_WIDTH_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_TEXT_WIDTH_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace softlookup::output {

// Returns how many columns a terminal takes to show `text`, which must not have control characters.
// The result does not depend on the locale. It is the sum of:
//   2  for a character of East Asian text, and for most emoji.
//   0  for a mark that combines with the character before it, in Latin, Greek, Cyrillic, Hebrew,
//      Arabic and East Asian text.
//   1  for any other character, and for a byte that is not UTF-8.
std::size_t TextWidth(std::string_view text);

// Returns `text` if it takes at most `columns` columns. Else cuts it and ends it with "...", so
// that the result takes at most `columns` columns. `columns` must be at least 3.
std::string ShortenedText(std::string_view text, std::size_t columns);

}  // namespace softlookup::output

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_TEXT_WIDTH_H_
