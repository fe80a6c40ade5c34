#include "server/flag_errors.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/nearest_name.h"
#include "client/cli/terminal_text.h"
#include "server/flag_environment.h"

namespace softlookup::server {
namespace {

// Returns "; did you mean ...?" with the flag that is nearest to `name`, or "" if no flag is near.
// `name` has no dashes in front. `dashes` are put in front of the flag.
std::string Suggestion(const CLI::App& app, absl::string_view name, absl::string_view dashes) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    flags.insert(flags.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  const std::string nearest = cli::NearestName(name, flags, /*edits_max=*/3);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", dashes, nearest, "?");
}

// Returns true if a flag --name, or --name=value, is among the arguments.
bool IsAmong(const std::vector<std::string>& arguments, absl::string_view name) {
  return std::any_of(arguments.begin(), arguments.end(), [name](absl::string_view argument) {
    return absl::ConsumePrefix(&argument, "--") && absl::ConsumePrefix(&argument, name) &&
           (argument.empty() || argument.front() == '=');
  });
}

// A line of the configuration file.
struct ConfigLine {
  std::size_t number = 0;
  // The setting's name, without quotes and without dashes in front. For a "[section]", the whole
  // line.
  std::string name;
  std::string text;  // The whole line, without white space around it.
};

std::string ConfigPath(const CLI::App& app) {
  const CLI::Option* config = app.get_config_ptr();
  return config == nullptr || config->empty() ? "" : config->as<std::string>();
}

// Reads the lines of the configuration file that are neither blank nor comments.
std::vector<ConfigLine> ReadConfig(const std::string& path) {
  std::vector<ConfigLine> lines;
  std::ifstream file(path);
  std::string text;
  for (std::size_t number = 1; std::getline(file, text); ++number) {
    const absl::string_view line = absl::StripAsciiWhitespace(text);
    if (line.empty() || absl::StrContains("#;", line.front())) continue;
    absl::string_view name = line;
    if (line.front() != '[') {
      name = absl::StripAsciiWhitespace(line.substr(0, line.find('=')));
      for (const absl::string_view mark : {"\"", "'", "--"}) absl::ConsumePrefix(&name, mark);
      for (const absl::string_view mark : {"\"", "'"}) absl::ConsumeSuffix(&name, mark);
    }
    lines.push_back({.number = number, .name = std::string(name), .text = std::string(line)});
  }
  return lines;
}

// Whether the line's value begins with a quote that no other one closes. CLI11 would take that
// quote for a part of the value.
bool HasOpenQuote(const ConfigLine& line) {
  const std::size_t equals = line.text.find('=');
  if (equals == std::string::npos) return false;
  const absl::string_view value =
      absl::StripAsciiWhitespace(absl::string_view(line.text).substr(equals + 1));
  if (value.empty() || !absl::StrContains("\"'", value.front())) return false;
  return value.find(value.front(), 1) == absl::string_view::npos;
}

std::string At(const std::string& path, const ConfigLine& line) {
  return absl::StrCat(path, ", line ", line.number, ": ");
}

// Returns "FILE, line N: " for the first line that sets `name`, and "" if no line does. If several
// lines set it, ConfigMistake() reports these instead.
std::string PlaceOf(const std::string& path, absl::string_view name) {
  for (const ConfigLine& line : ReadConfig(path)) {
    if (line.name == name) return At(path, line);
  }
  return "";
}

// Returns the error about `setting`, which CLI11 could not parse in the --config file. `setting` is
// a whole line, or the name of an unknown setting.
std::string UnknownSetting(const CLI::App& app, absl::string_view setting) {
  const std::string path = ConfigPath(app);
  const std::vector<ConfigLine> lines = ReadConfig(path);
  for (const ConfigLine& line : lines) {
    if (line.text == setting && !absl::StrContains(setting, '=')) {
      return absl::StrCat(At(path, line), "\"", setting, "\" is not of the form name=\"value\"");
    }
    if (line.text.front() == '[') {
      return absl::StrCat(At(path, line), line.name, ": settings stand in no section");
    }
  }
  for (const ConfigLine& line : lines) {
    if (line.name != setting) continue;
    return absl::StrCat(At(path, line), "unknown setting ", setting, Suggestion(app, setting, ""));
  }
  return absl::StrCat(path, ": unknown setting ", setting, Suggestion(app, setting, ""));
}

// Returns the error about the configuration file, which CLI11 could not read.
std::string UnreadableConfig(const CLI::App& app) {
  const std::string path = ConfigPath(app);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::StrCat("--config: ", path, " is a directory");
  }
  errno = 0;
  const std::ifstream file(path);
  return absl::StrCat("--config: cannot read ", path, ": ", std::strerror(errno));
}

// Returns the error about one of the arguments in `unknown`. `unknown` has the arguments that CLI11
// did not know, at least one.
std::string UnknownArgument(const CLI::App& app, std::vector<std::string> unknown) {
  // "--" only ends the flags, so another argument is at fault.
  if (unknown.size() > 1) std::erase(unknown, "--");
  const auto flag = std::find_if(unknown.begin(), unknown.end(), [](absl::string_view text) {
    return absl::StartsWith(text, "-") && text != "--";
  });
  if (flag == unknown.end()) {
    return absl::StrCat("unexpected argument ", unknown.front(),
                        ": it follows no flag that takes a value");
  }
  absl::string_view name = absl::string_view(*flag).substr(0, flag->find('='));
  const std::string shown(name);
  while (absl::ConsumePrefix(&name, "-")) {
  }
  return absl::StrCat("unknown flag ", shown, Suggestion(app, name, "--"));
}

// Does what WithPlace() does, but does not escape the line.
std::string Placed(const CLI::App& app, const std::vector<std::string>& arguments,
                   absl::string_view message) {
  const std::string path = ConfigPath(app);
  if (path.empty()) return std::string(message);
  // The first flag that the message names is at fault. If the message names that flag without
  // dashes, the file has set it.
  for (absl::string_view word : absl::StrSplit(message, absl::ByAnyChar(" :"))) {
    const bool has_dashes = absl::ConsumePrefix(&word, "--");
    if (app.get_option_no_throw("--" + std::string(word)) == nullptr) continue;
    if (has_dashes && IsAmong(arguments, word)) break;
    return absl::StrCat(PlaceOf(path, word), message);
  }
  return std::string(message);
}

// Does what FlagErrorLine() does, but does not escape the line.
std::string Described(const CLI::App& app, const CLI::ParseError& error,
                      const std::vector<std::string>& arguments) {
  // CLI11's error about a setting in the file says "INI was not able to parse NAME".
  absl::string_view setting = error.what();
  if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr &&
      absl::ConsumePrefix(&setting, "INI was not able to parse ")) {
    return UnknownSetting(app, setting);
  }
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr) return UnreadableConfig(app);
  if (const std::vector<std::string> unknown = app.remaining(); !unknown.empty()) {
    return UnknownArgument(app, unknown);
  }
  return Placed(app, arguments, error.what());
}

}  // namespace

std::optional<std::string> ConfigMistake(const CLI::App& app) {
  const std::string path = ConfigPath(app);
  if (path.empty()) return std::nullopt;
  absl::flat_hash_map<std::string, std::size_t> lines_by_name;
  for (const ConfigLine& line : ReadConfig(path)) {
    // An unknown setting is an error of its own.
    if (app.get_option_no_throw("--" + line.name) == nullptr) continue;
    if (HasOpenQuote(line)) {
      return cli::TerminalText(absl::StrCat(At(path, line), "the value of ", line.name,
                                            " has a quote that is not closed"));
    }
    const auto [first, is_new] = lines_by_name.try_emplace(line.name, line.number);
    if (is_new) continue;
    return cli::TerminalText(absl::StrCat(At(path, line), line.name, " is set in line ",
                                          first->second, " already; remove one of the two lines"));
  }
  return std::nullopt;
}

std::vector<std::string> OverriddenSettings(const CLI::App& app) {
  const std::string path = ConfigPath(app);
  std::vector<std::string> warnings;
  if (path.empty()) return warnings;
  for (const ConfigLine& line : ReadConfig(path)) {
    const std::string variable = VariableOf(line.name);
    const char* const value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0') continue;
    warnings.push_back(cli::TerminalText(absl::StrCat(
        At(path, line), line.name, " has no effect: the environment sets ", variable)));
  }
  return warnings;
}

std::string WithPlace(const CLI::App& app, const std::vector<std::string>& arguments,
                      absl::string_view message) {
  return cli::TerminalText(Placed(app, arguments, message));
}

std::string FlagErrorLine(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments) {
  return cli::TerminalText(Described(app, error, arguments));
}

}  // namespace softlookup::server
