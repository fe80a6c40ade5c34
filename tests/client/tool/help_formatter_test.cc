#include "client/tool/help_formatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/tool/command.h"

namespace softlookup::tool {
namespace {

using ::testing::HasSubstr;

// Returns the help of the tool, or of the commands that `path` names one within the other.
std::string HelpOf(std::size_t width, const std::vector<std::string>& path = {}) {
  CLI::App app("Soft lookups", "softlookup");
  Session session;
  session.terminal_width = width;
  AddEverything(&app, &session);
  const CLI::App* command = &app;
  for (const std::string& name : path) command = command->get_subcommand(name);
  return command->help();
}

TEST(HelpFormatterTest, LinesFitTheTerminal) {
  for (const std::size_t width : {80, 120}) {
    for (const std::vector<std::string>& path :
         {std::vector<std::string>(), {"append"}, {"lookup"}, {"store", "create"}, {"backup"}}) {
      const std::string help = HelpOf(width, path);
      for (const absl::string_view line : absl::StrSplit(help, '\n')) {
        // The names of an option stand on one line, and a word is not broken.
        EXPECT_TRUE(line.size() <= width || line.find("  -") == 0) << width << ": " << line;
      }
    }
  }
}

TEST(HelpFormatterTest, TextBesideAnOptionBreaksBetweenWords) {
  EXPECT_THAT(HelpOf(60, {"lookup"}),
              HasSubstr("  --min-revision UINT         Wait, up to --timeout, until\n"
                        "                              the store has this revision or\n"
                        "                              a later one (default: no wait)\n"));
}

TEST(HelpFormatterTest, FootersAreFilledAndTheirListsStay) {
  CLI::App app("An app", "app");
  app.formatter(std::make_shared<HelpFormatter>(40));
  app.footer(
      "One two three four five six seven eight nine\nten.\n\nAs in:\n  1  short  line\n"
      "  22 one two three four five six seven eight\n  3  one two three four five six seven eight\n"
      "end");
  EXPECT_THAT(app.help(), HasSubstr("\nOne two three four five six seven eight\nnine ten.\n\n"
                                    "As in:\n  1  short  line\n"
                                    "  22 one two three four five six seven eight\n"
                                    "  3  one two three four five six seven\n     eight\n"
                                    "end\n"));
}

}  // namespace
}  // namespace softlookup::tool
