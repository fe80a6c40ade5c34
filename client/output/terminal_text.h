#ifndef SOFTLOOKUP_CLIENT_OUTPUT_TERMINAL_TEXT_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_TERMINAL_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace softlookup::output {

// Returns `text` so that a terminal shows it on one line and obeys nothing in it. A line feed and a
// tab become \n and \t. Every byte of another control character (C0, DEL, C1), and every byte that
// is not UTF-8, becomes \xNN. All text that the tool prints for people must pass through here,
// unless the tool wrote it itself.
std::string TerminalText(std::string_view text);

// Returns the bytes of the character that `text` begins with; 0 if it is not UTF-8 or `text` is
// empty.
std::size_t Utf8Length(std::string_view text);

// Whether the character that `text` begins with is a C0 control, DEL or a C1 control.
bool StartsWithControl(std::string_view text);

}  // namespace softlookup::output

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_TERMINAL_TEXT_H_
