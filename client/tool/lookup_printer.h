#ifndef SOFTLOOKUP_CLIENT_TOOL_LOOKUP_PRINTER_H_
#define SOFTLOOKUP_CLIENT_TOOL_LOOKUP_PRINTER_H_

#include <string>
#include <vector>

#include "client/tool/command.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// Characters of a bar that stands for a weight of 1.
inline constexpr int kBarWidth = 30;

// Names to print beside the answers. A member is empty if the user gave none.
struct LookupLabels {
  std::string store;
  std::vector<std::string> queries;    // One per query.
  std::vector<std::string> positions;  // By position; may be shorter than the store.
};

// Prints for each query (and head) a table of weights, its statistics and the answer; or with
// -o json
// {"store", "revision", "row_count", "answers": [{"query", "word"?, "values": [...], "heads":
//  [{"counted_rows", "summed_rows", "empty", "log_sum_exp", "max_logit", "entropy", "error_bound",
//    "remaining_weight"?, "weights"?: [{"position", "id"?, "name"?, "score", "weight"}]}]}]}
// where log_sum_exp and max_logit are null if infinite. "id" is there if the rows have ids.
void PrintLookup(const LookupAnswer& answer, const LookupLabels& labels, const Session& session);

// As PrintLookup(), for an Attend, which has no store: omits "store", "revision" and "row_count".
void PrintAttention(const LookupAnswer& answer, const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_LOOKUP_PRINTER_H_
