#ifndef SOFTLOOKUP_CLIENT_CLI_TERMINAL_WIDTH_H_
#define SOFTLOOKUP_CLIENT_CLI_TERMINAL_WIDTH_H_

#include <cstddef>
#include <optional>

namespace softlookup::cli {

// Returns the number of columns of the terminal that standard output goes to. Unset if standard
// output is no terminal, or if the terminal does not tell.
std::optional<std::size_t> TerminalWidth();

}  // namespace softlookup::cli

#endif  // SOFTLOOKUP_CLIENT_CLI_TERMINAL_WIDTH_H_
