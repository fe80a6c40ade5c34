#include "client/tool/parse_error.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/nearest_name.h"
#include "client/cli/terminal_text.h"

namespace softlookup::tool {
namespace {

using cli::Suggestion;

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// Returns the first command with the subcommand `word`, and that subcommand: "store list" for
// "list". Returns "" if no command has such a subcommand.
std::string PathOfSubcommand(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : app.get_subcommands({})) {
    for (const CLI::App* subcommand : command->get_subcommands({})) {
      if (subcommand->check_name(word)) return command->get_name() + " " + subcommand->get_name();
    }
  }
  return "";
}

// Returns the path of the command `word` of a command above `parent`: "softlookup delete-rows", for
// the word "delete-rows" behind `store`. Returns "" if there is none.
std::string CommandAbove(const CLI::App& parent, const std::string& word) {
  for (const CLI::App* above = parent.get_parent(); above != nullptr; above = above->get_parent()) {
    for (const CLI::App* command : above->get_subcommands({})) {
      if (command->check_name(word)) return above->get_name() + " " + command->get_name();
    }
  }
  return "";
}

// Returns the option of `command` that other commands call `option`, or "".
std::string OptionHere(const CLI::App& command, const std::string& option) {
  return command.get_name() == "lookup" && option == "--keys" ? "--queries" : "";
}

void AddOptionNames(const CLI::App& app, std::vector<std::string>* names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names->push_back("--" + name);
  }
}

// Whether `value` is a whole number that 32 bits do not hold. CLI11 refuses such a number for an
// option of 32 bits. For an option of 64 bits, it takes even a number over 2^64 - 1, for 2^64 - 1.
bool IsOver32Bits(absl::string_view value) {
  std::uint32_t number;
  return !value.empty() && std::all_of(value.begin(), value.end(), absl::ascii_isdigit) &&
         !absl::SimpleAtoi(value, &number);
}

// Rewords CLI11's message "Could not convert: --top-k = -1"; returns any other message as it is.
std::string ConversionText(const CLI::App& command, absl::string_view message) {
  constexpr absl::string_view kEquals = " = ";
  absl::string_view rest = message;
  const bool known = absl::ConsumePrefix(&rest, "Could not convert: ");
  const std::size_t equals = rest.find(kEquals);
  if (!known || equals == absl::string_view::npos) return std::string(message);
  const std::string name(rest.substr(0, equals));
  const CLI::Option* option = command.get_option_no_throw(name);
  const absl::string_view value = rest.substr(equals + kEquals.size());
  std::string kind = "a whole number, 0 or more";
  if (option != nullptr && absl::StrContains(option->get_type_name(), "FLOAT")) {
    kind = "a number";
  } else if (IsOver32Bits(value)) {
    kind = absl::StrCat("a whole number, at most ", std::numeric_limits<std::uint32_t>::max());
  }
  return absl::StrCat(name, " takes ", kind, ", not ", value);
}

}  // namespace

std::string UnknownCommandText(const CLI::App& parent, const std::string& word) {
  std::string path = PathOfSubcommand(parent, word);
  if (path.empty()) path = CommandAbove(parent, word);
  return absl::StrCat(
      "unknown command ", word,
      path.empty() ? Suggestion(word, CommandNames(parent)) : "; did you mean " + path + "?");
}

bool IsMistake(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::Success*>(&error) == nullptr) return true;
  // What is left over is a command that does not exist only if a command was to follow.
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  return !CommandNames(*command).empty() && !unknown.empty() && !absl::StartsWith(unknown[0], "-");
}

std::string ParseErrorLine(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  std::vector<std::string> options;
  AddOptionNames(app, &options);
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    absl::StrAppend(&path, " ", command->get_name());
    AddOptionNames(*command, &options);
  }
  const std::vector<std::string> commands = CommandNames(*command);
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  std::string text;
  if (!unknown.empty() && absl::StartsWith(unknown[0], "-")) {
    const std::string option = unknown[0].substr(0, unknown[0].find('='));
    const std::string here = OptionHere(*command, option);
    text =
        absl::StrCat("unknown option ", option,
                     here.empty() ? Suggestion(option, options) : "; did you mean " + here + "?");
  } else if (!unknown.empty() && !commands.empty()) {
    text = UnknownCommandText(*command, unknown[0]);
  } else if (!unknown.empty()) {
    text = absl::StrCat("unexpected argument ", unknown[0], " without an option before it");
  } else if (!commands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    text = absl::StrCat("a command is missing: ", absl::StrJoin(commands, ", "));
  } else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    text = ConversionText(*command, error.what());
  } else {
    text = error.what();
  }
  return cli::TerminalText(absl::StrCat(text, " (see ", path, " --help)"));
}

}  // namespace softlookup::tool
