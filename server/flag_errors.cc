#include "server/flag_errors.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace softlookup::server {
namespace {

// Returns the fewest letters to insert, delete or replace to turn `a` into `b`. The tool has the
// same in client/tool/nearest_name.cc: neither side may include the other.
std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // row[j]: from a's first i letters to b's first j.
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// Returns "; did you mean ...?" with the flag that is nearest to `name`, which has no dashes in
// front, or "" if none is near. `dashes` are put in front of the flag.
std::string Suggestion(const CLI::App& app, absl::string_view name, absl::string_view dashes) {
  std::string nearest;
  std::size_t distance = std::min<std::size_t>(4, name.size() / 2 + 1);  // Only less is near.
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& flag : option->get_lnames()) {
      const std::size_t flag_distance = EditDistance(name, flag);
      if (flag_distance >= distance) continue;
      nearest = flag;
      distance = flag_distance;
    }
  }
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", dashes, nearest, "?");
}

// Returns true if a flag --name, or --name=value, is among the arguments.
bool IsAmong(const std::vector<std::string>& arguments, absl::string_view name) {
  return std::any_of(arguments.begin(), arguments.end(), [name](absl::string_view argument) {
    return absl::ConsumePrefix(&argument, "--") && absl::ConsumePrefix(&argument, name) &&
           (argument.empty() || argument.front() == '=');
  });
}

// Returns "FILE, line N: " for the last line of the configuration file that sets `name`, or "" if
// there is none.
std::string PlaceOf(const CLI::App& app, absl::string_view name) {
  const CLI::Option* config = app.get_config_ptr();
  if (config == nullptr || config->empty()) return "";
  const std::string path = config->as<std::string>();
  std::ifstream file(path);
  std::string line;
  std::string place;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    absl::string_view setting = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&setting, name)) continue;
    setting = absl::StripLeadingAsciiWhitespace(setting);
    if (setting.empty() || setting.front() == '=') {
      place = absl::StrCat(path, ", line ", number, ": ");
    }
  }
  return place;
}

}  // namespace

std::string FlagErrorLine(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments) {
  const absl::string_view message = error.what();
  // CLI11: "INI was not able to parse NAME".
  absl::string_view setting = message;
  if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr &&
      absl::ConsumePrefix(&setting, "INI was not able to parse ")) {
    const bool has_value = !absl::StrContains(setting, ' ');
    return absl::StrCat(
        PlaceOf(app, setting),
        has_value ? absl::StrCat("unknown setting ", setting, Suggestion(app, setting, ""))
                  : absl::StrCat("\"", setting, "\" is not of the form name=\"value\""));
  }
  const std::vector<std::string> unknown = app.remaining();
  if (!unknown.empty()) {
    // CLI11 has them in the order in which it was given the arguments: from the last to the first.
    const auto flag = std::find_if(unknown.begin(), unknown.end(), [](absl::string_view text) {
      return absl::StartsWith(text, "-");
    });
    if (flag == unknown.end()) {
      return absl::StrCat("unexpected argument ", unknown.front(), " without a flag before it");
    }
    absl::string_view name = absl::string_view(*flag).substr(0, flag->find('='));
    const std::string shown(name);
    while (absl::ConsumePrefix(&name, "-")) {
    }
    return absl::StrCat("unknown flag ", shown, Suggestion(app, name, "--"));
  }
  // CLI11: "--NAME: what is wrong".
  absl::string_view name = message;
  if (absl::ConsumePrefix(&name, "--") && absl::StrContains(name, ": ")) {
    name = name.substr(0, name.find(": "));
    if (!IsAmong(arguments, name)) return absl::StrCat(PlaceOf(app, name), message);
  }
  return std::string(message);
}

}  // namespace softlookup::server
