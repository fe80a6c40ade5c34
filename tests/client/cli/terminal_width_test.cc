#include "client/cli/terminal_width.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace softlookup::cli {
namespace {

// TerminalWidth() while `file` is standard output.
std::optional<std::size_t> WidthOn(int file) {
  std::fflush(stdout);
  const int saved = dup(STDOUT_FILENO);
  dup2(file, STDOUT_FILENO);
  const auto width = TerminalWidth();
  dup2(saved, STDOUT_FILENO);
  close(saved);
  return width;
}

TEST(TerminalWidthTest, IsWhatTheTerminalSays) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(master, 0);
  ASSERT_EQ(grantpt(master), 0);
  ASSERT_EQ(unlockpt(master), 0);
  const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  winsize size{};
  ASSERT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(WidthOn(terminal), std::nullopt);
  size.ws_col = 97;
  ASSERT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(WidthOn(terminal), 97u);
  close(terminal);
  close(master);
}

TEST(TerminalWidthTest, AFileHasNone) {
  const int file = open("/dev/null", O_WRONLY);
  EXPECT_EQ(WidthOn(file), std::nullopt);
  close(file);
}

}  // namespace
}  // namespace softlookup::cli
