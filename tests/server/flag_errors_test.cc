#include "server/flag_errors.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "tests/client/tool/temporary_file.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::TemporaryFile;

// The error about `arguments` of a program with the flags --threads, a number, and --config, a
// file.
std::string ErrorOf(const std::vector<std::string>& arguments) {
  CLI::App app;
  int threads = 0;
  app.add_option("--threads", threads)->check(CLI::Range(0, 1024));
  app.set_config("--config");
  app.allow_config_extras(CLI::config_extras_mode::error);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return FlagErrorLine(app, error, arguments);
  }
  return "";
}

TEST(FlagErrorLineTest, HasNoCharacterOfAnArgumentThatATerminalObeys) {
  EXPECT_EQ(ErrorOf({"--threads", "2"}), "");
  EXPECT_EQ(ErrorOf({"--\x1b[2J"}), "unknown flag --\\x1b[2J");
  EXPECT_EQ(ErrorOf({"\x1b[2J"}),
            "unexpected argument \\x1b[2J: it follows no flag that takes a value");
  EXPECT_EQ(ErrorOf({"--threads", "\x1b[2J"}), "--threads: Value \\x1b[2J not in range 0 to 1024");
  EXPECT_EQ(ErrorOf({"--threads", "2\u202E"}),
            "--threads: Value 2\\xe2\\x80\\xae not in range 0 to 1024");
}

TEST(FlagErrorLineTest, HasNoCharacterOfTheFileThatATerminalObeys) {
  const TemporaryFile setting("server.conf", "\x1b[2J=1\n");
  EXPECT_EQ(ErrorOf({"--config", setting.path()}),
            setting.path() + ", line 1: unknown setting \\x1b[2J");
  const TemporaryFile value("\x1b[2J.conf", "threads=\x1b[2J\n");
  const std::string folder = value.path().substr(0, value.path().rfind('/'));
  EXPECT_EQ(ErrorOf({"--config", value.path()}),
            folder + "/\\x1b[2J.conf, line 1: --threads: Value \\x1b[2J not in range 0 to 1024");
}

TEST(ConfigMistakeTest, IsTheFirstFlagThatASecondLineSets) {
  const TemporaryFile file("server.conf", "threads=1\nother=1\nother=2\nthreads=2\nthreads=3\n");
  CLI::App app;
  int threads = 0;
  app.add_option("--threads", threads);
  EXPECT_EQ(ConfigMistake(app), std::nullopt);
  app.set_config("--config");
  std::vector<std::string> arguments = {file.path(), "--config"};
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError&) {
    // The unknown setting.
  }
  EXPECT_EQ(
      ConfigMistake(app),
      file.path() + ", line 4: threads is set in line 1 already; remove one of the two lines");
}

TEST(ConfigMistakeTest, IsAValueWhoseQuoteIsNotClosed) {
  const TemporaryFile file("server.conf", "data-dir=\"a\" # b\naudit-log = \"c\n");
  CLI::App app;
  std::string data_dir, audit_log;
  app.add_option("--data-dir", data_dir);
  app.add_option("--audit-log", audit_log);
  app.set_config("--config");
  std::vector<std::string> arguments = {file.path(), "--config"};
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError&) {
    // It is what a mistake makes of the file that counts.
  }
  EXPECT_EQ(ConfigMistake(app),
            file.path() + ", line 2: the value of audit-log has a quote that is not closed");
}

TEST(WithPlaceTest, HasNoCharacterThatATerminalObeys) {
  const CLI::App app;
  EXPECT_EQ(WithPlace(app, {}, "--threads: \x1b[2J"), "--threads: \\x1b[2J");
}

TEST(OverriddenSettingsTest, AreTheLinesWhoseFlagsTheEnvironmentSets) {
  const TemporaryFile file("server.conf", "threads=2\n# a comment\nmax-queries=8\n");
  CLI::App app;
  int threads = 0, queries = 0;
  app.add_option("--threads", threads);
  app.add_option("--max-queries", queries);
  EXPECT_EQ(OverriddenSettings(app), std::vector<std::string>());
  app.set_config("--config");
  app.parse(std::vector<std::string>{file.path(), "--config"});
  EXPECT_EQ(OverriddenSettings(app), std::vector<std::string>());
  ::setenv("SOFTLOOKUP_MAX_QUERIES", "9", 1);
  EXPECT_EQ(OverriddenSettings(app),
            std::vector<std::string>{file.path() + ", line 3: max-queries has no effect: the "
                                                   "environment sets SOFTLOOKUP_MAX_QUERIES"});
  ::unsetenv("SOFTLOOKUP_MAX_QUERIES");
}

}  // namespace
}  // namespace softlookup::server
