// What a command line that is wrong is answered.
#include "client/tool/parse_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/tool/command.h"
#include "tests/client/tool/run_tool.h"

namespace softlookup::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Mistake {
  std::string title;
  std::vector<std::string> arguments;
  std::string message;
};

class ParseErrorTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(ParseErrorTest, SaysWhatIsWrongAndWhereHelpIs) {
  const Outcome outcome = RunTool("127.0.0.1:1", GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
  EXPECT_EQ(outcome.error, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    CommandLines, ParseErrorTest,
    ::testing::Values(
        Mistake{"MisspeltCommand",
                {"lokup", "people"},
                "unknown command lokup; did you mean lookup? (see softlookup --help)"},
        Mistake{
            "StrangeCommand", {"frobnicate"}, "unknown command frobnicate (see softlookup --help)"},
        Mistake{"MisspeltSubcommand",
                {"store", "creat", "people"},
                "unknown command creat; did you mean create? (see softlookup store --help)"},
        Mistake{"SubcommandWithoutItsCommand",
                {"list"},
                "unknown command list; did you mean store list? (see softlookup --help)"},
        Mistake{"SubcommandsAliasWithoutItsCommand",
                {"rm", "people"},
                "unknown command rm; did you mean store delete? (see softlookup --help)"},
        Mistake{"CommandAsASubcommand",
                {"store", "delete-rows", "people"},
                "unknown command delete-rows; did you mean softlookup delete-rows? (see softlookup "
                "store "
                "--help)"},
        Mistake{"HelpOfNoCommand",
                {"help", "store", "lst"},
                "unknown command lst; did you mean list? (see softlookup store --help)"},
        Mistake{"HelpOfSubcommandWithoutItsCommand",
                {"help", "list"},
                "unknown command list; did you mean store list? (see softlookup --help)"},
        Mistake{"HelpOfMisspeltCommand",
                {"help", "lokup"},
                "unknown command lokup; did you mean lookup? (see softlookup --help)"},
        Mistake{"HelpOfStrangeCommand",
                {"help", "frobnicate"},
                "unknown command frobnicate (see softlookup --help)"},
        Mistake{"StrangeCommandBeforeHelp",
                {"words", "--help"},
                "unknown command words (see softlookup --help)"},
        Mistake{"MisspeltCommandBehindHelp",
                {"-h", "lokup"},
                "unknown command lokup; did you mean lookup? (see softlookup --help)"},
        Mistake{"MisspeltSubcommandBeforeHelp",
                {"store", "creat", "-h"},
                "unknown command creat; did you mean create? (see softlookup store --help)"},
        Mistake{"MissingSubcommand",
                {"store"},
                "a command is missing: create, get, list, update, rename, compact, delete (see "
                "softlookup store --help)"},
        Mistake{
            "MissingSubcommandOfBackup",
            {"backup"},
            "a command is missing: create, list, verify, restore-store, restore (see softlookup "
            "backup --help)"},
        Mistake{"MissingSubcommandOfAuth",
                {"auth"},
                "a command is missing: add, list, remove (see softlookup auth --help)"},
        Mistake{"SubcommandOfAuthWithoutItsCommand",
                {"remove", "auth.json", "ingest"},
                "unknown command remove; did you mean auth remove? (see softlookup --help)"},
        Mistake{"RemoveOfNobody",
                {"auth", "remove", "auth.json"},
                "NAME is required (see softlookup auth remove --help)"},
        Mistake{"MissingDataDirectory",
                {"backup", "restore", "b"},
                "DATA_DIRECTORY is required (see softlookup backup restore --help)"},
        Mistake{"MisspeltOption",
                {"lookup", "people", "--query", "1", "--topk", "3"},
                "unknown option --topk; did you mean --top-k? (see softlookup lookup --help)"},
        Mistake{"MisspeltOptionWithItsValue",
                {"lookup", "people", "--temprature=1", "--query", "1"},
                "unknown option --temprature; did you mean --temperature? (see softlookup lookup "
                "--help)"},
        Mistake{"MisspeltOptionBeforeMissingArgument",
                {"lookup", "--qurey", "1"},
                "unknown option --qurey; did you mean --query? (see softlookup lookup --help)"},
        Mistake{
            "MisspeltSharedOption",
            {"store", "list", "--sever", "x:1"},
            "unknown option --sever; did you mean --server? (see softlookup store list --help)"},
        Mistake{"OptionOfOtherCommands",
                {"lookup", "people", "--keys", "k.csv"},
                "unknown option --keys; did you mean --queries? (see softlookup lookup --help)"},
        Mistake{"StrangeOption",
                {"health", "--loud"},
                "unknown option --loud (see softlookup health --help)"},
        Mistake{"SurplusArgument",
                {"append", "people", "people.csv"},
                "unexpected argument people.csv without an option before it (see softlookup append "
                "--help)"},
        Mistake{"MissingArgument", {"rows"}, "STORE is required (see softlookup rows --help)"},
        Mistake{"NegativeCount",
                {"lookup", "people", "--query", "1", "--top-k", "-1"},
                "--top-k takes a whole number, 0 or more, not -1 (see softlookup lookup --help)"},
        Mistake{"NegativePosition",
                {"rows", "people", "--begin", "-1"},
                "--begin takes a whole number, 0 or more, not -1 (see softlookup rows --help)"},
        Mistake{"NegativeIdInAList",
                {"rows", "people", "--id", "1,-2"},
                "--id takes a whole number, 0 or more, not -2 (see softlookup rows --help)"},
        Mistake{"CountOver32Bits",
                {"store", "create", "s", "--key-dim", "4294967296", "--value-dim", "1"},
                "--key-dim takes a whole number, at most 4294967295, not 4294967296 (see "
                "softlookup store create --help)"},
        Mistake{"CountOver64Bits",
                {"lookup", "people", "--query", "1", "--top-k", "99999999999999999999"},
                "--top-k takes a whole number, at most 4294967295, not 99999999999999999999 (see "
                "softlookup lookup --help)"},
        Mistake{"WordForANumber",
                {"lookup", "people", "--query", "1", "--temperature", "cold"},
                "--temperature takes a number, not cold (see softlookup lookup --help)"},
        Mistake{"WordForAnId",
                {"rows", "people", "--id", "1,x"},
                "--id takes a whole number, 0 or more, not 1,x (see softlookup rows --help)"},
        Mistake{"ZeroTimeout",
                {"--timeout", "0", "health"},
                "--timeout: must be a number over 0, not 0 (see softlookup health --help)"},
        Mistake{"TemperatureThatIsNoNumber",
                {"tune", "people", "--temperatures", "1,nan"},
                "--temperatures: must be a number from 1e-06 to 1e+06, not nan (see softlookup "
                "tune --help)"},
        Mistake{"TemperatureOutOfRange",
                {"recall", "--temperature", "2e6"},
                "--temperature: must be a number from 1e-06 to 1e+06, not 2e6 (see softlookup "
                "recall --help)"},
        Mistake{
            "NoiseThatIsNoNumber",
            {"recall", "--noise", "nan"},
            "--noise: must be a number from 0 to 1e+06, not nan (see softlookup recall --help)"},
        Mistake{"MaxErrorThatIsNoNumber",
                {"loadtest", "--max-error", "nan"},
                "--max-error: must be a number from 0 to 1, not nan (see softlookup loadtest "
                "--help)"},
        Mistake{"WrongOutputAndNoCommand",
                {"-o", "yaml"},
                "--output: yaml not in {table,json} (see softlookup --help)"},
        Mistake{"WrongEnding",
                {"export", "people", "--keys", "k", "--values", "v.npy"},
                "--keys: must end in .npy, unlike k (see softlookup export --help)"},
        Mistake{"EscapeSequenceInACommand",
                {"\x1b[2J"},
                "unknown command \\x1b[2J (see softlookup --help)"},
        Mistake{"EscapeSequenceInAnOption",
                {"health", "--\x1b]0;title\x07"},
                "unknown option --\\x1b]0;title\\x07 (see softlookup health --help)"},
        Mistake{"EscapeSequenceInAnArgument",
                {"append", "people", "a\nb\u202E"},
                "unexpected argument a\\nb\\xe2\\x80\\xae without an option before it (see "
                "softlookup append --help)"},
        Mistake{"EscapeSequenceInAValue",
                {"--timeout", "\x1b[2J", "health"},
                "--timeout: must be a number over 0, not \\x1b[2J (see softlookup health --help)"},
        Mistake{"MisspeltOptionOfConsole",
                {"console", "--listn", "127.0.0.1:0"},
                "unknown option --listn; did you mean --listen? (see softlookup console --help)"},
        Mistake{"MisspeltConsole",
                {"consol"},
                "unknown command consol; did you mean console? (see softlookup --help)"},
        Mistake{"LabelInLatin1",
                {"rows", "people", "--label", "caf\xe9"},
                "--label: must be UTF-8 (see softlookup rows --help)"}),
    [](const auto& info) { return info.param.title; });

TEST(HelpCommandTest, ShowsWhatACommandDoes) {
  EXPECT_THAT(RunTool("127.0.0.1:1", {"help", "store", "ls"}).out,
              StartsWith("List stores by name\nUsage: softlookup store list [OPTIONS]"));
  EXPECT_THAT(RunTool("127.0.0.1:1", {"help", "lookup"}).out,
              HasSubstr("Usage: softlookup lookup [OPTIONS] STORE\n"));
  EXPECT_THAT(RunTool("127.0.0.1:1", {"help"}).out,
              HasSubstr("Usage: softlookup [OPTIONS] SUBCOMMAND\n"));
}

// The words of a help in alphabetical order: CLI11 names the flags that exclude each other in the
// order of their addresses, which each run may choose anew.
std::vector<std::string> SortedWords(const std::string& help) {
  std::vector<std::string> words = absl::StrSplit(help, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  std::sort(words.begin(), words.end());
  return words;
}

// Expects of `command`, which is at `path`, and of all commands below it that each way to ask for
// help prints the same. Returns the number of commands.
int ExpectOneHelp(const CLI::App& command, const std::vector<std::string>& path) {
  std::vector<std::string> words = path;
  words.insert(words.begin(), "help");
  const std::string help = RunTool("127.0.0.1:1", words).out;
  EXPECT_THAT(help, HasSubstr(absl::StrCat("Usage: softlookup", path.empty() ? "" : " ",
                                           absl::StrJoin(path, " "), " ")));
  int commands = 1;
  words = path;
  words.emplace_back(path.size() % 2 == 0 ? "-h" : "--help");  // Two names of one option.
  EXPECT_EQ(SortedWords(RunTool("127.0.0.1:1", words).out), SortedWords(help));
  words.pop_back();
  for (const CLI::App* each : command.get_subcommands({})) {
    words.push_back(each->get_name());
    commands += ExpectOneHelp(*each, words);
    words.pop_back();
  }
  return commands;
}

TEST(HelpCommandTest, ShowsWhatHelpFlagsShow) {
  CLI::App app("", "softlookup");
  Session session;
  AddEverything(&app, &session);
  EXPECT_GT(ExpectOneHelp(app, {}), 20);
}

TEST(HelpCommandTest, HelpOfACommandNeedsNothingThatTheCommandNeeds) {
  EXPECT_THAT(RunTool("127.0.0.1:1", {"lookup", "people", "--topk", "3", "--help"}).out,
              HasSubstr("Usage: softlookup lookup [OPTIONS] STORE\n"));
}

}  // namespace
}  // namespace softlookup::tool
