#ifndef SOFTLOOKUP_CLIENT_TOOL_LOOKUP_PRINTER_H_
#define SOFTLOOKUP_CLIENT_TOOL_LOOKUP_PRINTER_H_

#include <string>
#include <vector>

#include "client/tool/command.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// What the answers are printed with; empty where it was not given.
struct LookupLabels {
  std::string store;
  std::vector<std::string> queries;    // One a query.
  std::vector<std::string> positions;  // By position; may be shorter than the store.
};

// A table of weights for each query (and head), what is known of them, and the answer; or
// {"store", "revision", "row_count", "answers": [{"query", "word"?, "values": [...], "heads":
//  [{"counted_rows", "empty", "log_sum_exp", "max_logit", "entropy", "remaining_weight"?,
//    "weights"?: [{"position", "id"?, "name"?, "score", "weight"}]}]}]}
// where log_sum_exp and max_logit are null if they are infinite, and ids are there if rows have
// ids.
void PrintLookup(const LookupAnswer& answer, const LookupLabels& labels, const Session& session);

// The same of an answer that no store gave: without "store", "revision" and "row_count".
void PrintAttention(const LookupAnswer& answer, const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_LOOKUP_PRINTER_H_
