#ifndef SOFTLOOKUP_CLIENT_OUTPUT_TERMINAL_TEXT_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_TERMINAL_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace softlookup::output {

// Escapes `text`, so that a terminal shows it on one line and obeys no control character in it. A
// line feed becomes \n, and a tab \t. Every byte of another control character (C0, DEL, C1), and
// every byte that is not UTF-8, becomes \xNN. All text that the tool prints for people must pass
// through this function, unless it is a fixed text of the tool.
std::string TerminalText(std::string_view text);

// Returns the number of bytes of the character that `text` begins with. 0 if `text` is empty or
// does not begin with valid UTF-8.
std::size_t Utf8Length(std::string_view text);

// Whether the character that `text` begins with is a C0 control, DEL or a C1 control.
bool StartsWithControl(std::string_view text);

}  // namespace softlookup::output

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_TERMINAL_TEXT_H_
