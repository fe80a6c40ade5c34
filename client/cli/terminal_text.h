#ifndef SOFTLOOKUP_CLIENT_CLI_TERMINAL_TEXT_H_
#define SOFTLOOKUP_CLIENT_CLI_TERMINAL_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace softlookup::cli {

// Escapes `text`, so that a terminal shows it on one line, in its order, and obeys no control
// character in it. A line feed becomes \n, and a tab \t. Every byte of another control character
// (see StartsWithControl()), and every byte that is not UTF-8, becomes \xNN. All text that is
// printed for people must pass through this function, unless it is a fixed text of the program.
std::string TerminalText(std::string_view text);

// Most bytes of a text that Excerpt() returns as it is.
inline constexpr std::size_t kExcerptBytesMax = 60;

// Returns `text`, or if it has more than kExcerptBytesMax bytes, its first characters of at most as
// many bytes, with "..." appended. For messages that quote what others wrote.
std::string Excerpt(std::string_view text);

// Whether `text` begins with a character that a terminal obeys instead of showing it. These are the
// C0 controls, DEL, the C1 controls, and the controls of the direction of text, such as U+202E.
bool StartsWithControl(std::string_view text);

}  // namespace softlookup::cli

#endif  // SOFTLOOKUP_CLIENT_CLI_TERMINAL_TEXT_H_
