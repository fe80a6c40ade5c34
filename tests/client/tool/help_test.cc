// The help of every command, on terminals of two widths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/output/vocabulary.h"
#include "client/tool/command.h"
#include "softlookup/v1/memory.pb.h"

namespace softlookup::tool {
namespace {

using ::testing::HasSubstr;

// Counts the commands whose help it looks at: `command` and all below.
int ExpectToFit(const CLI::App& command, std::size_t width) {
  int commands = 1;
  for (const absl::string_view line : absl::StrSplit(command.help(), '\n')) {
    EXPECT_LE(line.size(), width) << command.get_name() << ": " << line;
  }
  for (const CLI::App* each : command.get_subcommands({})) commands += ExpectToFit(*each, width);
  return commands;
}

TEST(HelpTest, EveryLineFitsTheTerminal) {
  for (const std::size_t width : {80, 120}) {
    CLI::App app("Soft lookups", "softlookup");
    Session session;
    session.terminal_width = width;
    AddEverything(&app, &session);
    EXPECT_GT(ExpectToFit(app, width), 20);
  }
}

TEST(HelpTest, EveryCommandThatTakesAMemorySaysOfWhichKinds) {
  CLI::App app("Soft lookups", "softlookup");
  Session session;
  AddEverything(&app, &session);
  for (const CLI::App* command :
       {app.get_subcommand("import"), app.get_subcommand("store")->get_subcommand("create")}) {
    for (const std::string& kind : output::Words<v1::MemoryKind>()) {
      EXPECT_THAT(command->help(), HasSubstr("--memory NAME=" + kind)) << command->get_name();
    }
  }
}

TEST(HelpTest, SaysWhatAnOptionExcludes) {
  CLI::App app("Soft lookups", "softlookup");
  Session session;
  session.terminal_width = 80;
  AddEverything(&app, &session);
  EXPECT_THAT(app.get_subcommand("append")->help(), HasSubstr("Excludes: --writer\n"));
}

}  // namespace
}  // namespace softlookup::tool
