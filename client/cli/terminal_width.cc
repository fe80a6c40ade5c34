#include "client/cli/terminal_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace softlookup::cli {

std::optional<std::size_t> TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

}  // namespace softlookup::cli
