#ifndef SOFTLOOKUP_CLIENT_TOOL_LABEL_TEXT_H_
#define SOFTLOOKUP_CLIENT_TOOL_LABEL_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace softlookup::tool {

// A row's labels as text, in files and on the command line: commas separate them, and white space
// around a label is ignored. A quoted label is a JSON string, so it can also hold commas, line
// ends, and white space at its ends.

// What a message says of labels that SplitLabels() does not take.
extern const char kQuotedLabelRule[];

// Returns the labels in `text`, which must be UTF-8. A label between two commas may be empty; after
// the last comma none is. Nullopt if a label that starts with a quote is not a JSON string.
std::optional<std::vector<std::string>> SplitLabels(absl::string_view text);

// Returns `labels`, none of them empty, as text from which SplitLabels() reads the same.
std::string LabelsText(const std::vector<std::string>& labels);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_LABEL_TEXT_H_
