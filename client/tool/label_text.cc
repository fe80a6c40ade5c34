#include "client/tool/label_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/output/json.h"
#include "client/tool/byte_source.h"

namespace softlookup::tool {
namespace {

using output::Json;

// Removes a quoted label from the front of `line`, which must start with the quote. False if the
// label is not a JSON string.
bool ConsumeQuoted(absl::string_view* line, std::string* label) {
  std::size_t end = 1;
  while (end < line->size() && (*line)[end] != '"') end += (*line)[end] == '\\' ? 2 : 1;
  if (end >= line->size()) return false;
  const std::string quoted(line->substr(0, end + 1));
  const Json json = Json::parse(quoted, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_string()) return false;
  *label = json.get<std::string>();
  line->remove_prefix(quoted.size());
  return true;
}

// Removes the next label and the comma after it from `line`. `label` is empty between two commas.
// False if the label is malformed.
bool ConsumeLabel(absl::string_view* line, std::string* label) {
  *line = absl::StripLeadingAsciiWhitespace(*line);
  if (!absl::StartsWith(*line, "\"")) {
    const std::size_t end = std::min(line->find(','), line->size());
    *label = std::string(absl::StripTrailingAsciiWhitespace(line->substr(0, end)));
    line->remove_prefix(end);
  } else if (!ConsumeQuoted(line, label)) {
    return false;
  }
  *line = absl::StripLeadingAsciiWhitespace(*line);
  return line->empty() || absl::ConsumePrefix(line, ",");
}

// Writes `label` so that ConsumeLabel() reads it back: in quotes if necessary.
std::string LabelText(const std::string& label) {
  const auto special = [](char c) {
    return c == ',' || c == '"' || absl::ascii_iscntrl(static_cast<unsigned char>(c));
  };
  const bool plain = !label.empty() && std::none_of(label.begin(), label.end(), special) &&
                     absl::StripAsciiWhitespace(label) == label &&
                     !absl::StartsWith(label, kByteOrderMark);
  return plain ? label : Json(label).dump();
}

}  // namespace

const char kQuotedLabelRule[] =
    "a label that starts with a quote must be a JSON string, such as \"10,000\" or \"\\\"so\\\" "
    "named\"";

std::optional<std::vector<std::string>> SplitLabels(absl::string_view text) {
  std::vector<std::string> labels;
  while (!text.empty()) {
    if (!ConsumeLabel(&text, &labels.emplace_back())) return std::nullopt;
  }
  return labels;
}

std::string LabelsText(const std::vector<std::string>& labels) {
  std::string text;
  const char* separator = "";
  for (const std::string& label : labels) {
    absl::StrAppend(&text, std::exchange(separator, ","), LabelText(label));
  }
  return text;
}

}  // namespace softlookup::tool
