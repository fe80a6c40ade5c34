#ifndef SOFTLOOKUP_CLIENT_TOOL_LISTED_LABELS_H_
#define SOFTLOOKUP_CLIENT_TOOL_LISTED_LABELS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/tool/command.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// Labels of rows, by position.
using LabelsByPosition = std::map<std::uint64_t, std::vector<std::string>>;

// Reads the labels of the rows that `answer` lists, unless `labels` has them, and adds them. A row
// that has no labels, or was deleted after the lookup, gets an empty list. The answer must be of
// rows alone, not of memories. Returns the errors of Client::ReadRows().
absl::Status ReadListedLabels(const LookupAnswer& answer, const std::string& store,
                              const Session& session, Client* client, LabelsByPosition* labels);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_LISTED_LABELS_H_
