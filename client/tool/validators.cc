#include "client/tool/validators.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/output/json.h"

namespace softlookup::tool {

CLI::Validator Positive() {
  return CLI::Validator(
      [](std::string& text) {
        double number;
        const bool positive = absl::SimpleAtod(text, &number) && number > 0;
        return positive ? std::string() : absl::StrCat("must be a number over 0, not ", text);
      },
      "POSITIVE");
}

CLI::Validator InRange(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double number;
        const bool within = absl::SimpleAtod(text, &number) && number >= least && number <= most;
        return within ? std::string()
                      : absl::StrCat("must be a number from ", least, " to ", most, ", not ", text);
      },
      absl::StrCat("FLOAT in [", least, " - ", most, "]"));
}

CLI::Validator Utf8() {
  return CLI::Validator(
      [](std::string& text) { return output::IsUtf8(text) ? std::string() : "must be UTF-8"; }, "");
}

CLI::Validator NameEndsIn(const std::string& ending) {
  return CLI::Validator(
      [ending](std::string& path) {
        return absl::EndsWithIgnoreCase(path, ending)
                   ? std::string()
                   : absl::StrCat("must end in ", ending, ", unlike ", path);
      },
      "");
}

}  // namespace softlookup::tool
