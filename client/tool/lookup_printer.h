#ifndef SOFTLOOKUP_CLIENT_TOOL_LOOKUP_PRINTER_H_
#define SOFTLOOKUP_CLIENT_TOOL_LOOKUP_PRINTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/output/json.h"
#include "client/tool/command.h"
#include "client/tool/listed_labels.h"
#include "client/tool/word_list.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// Characters of the longest bar that shows a weight.
inline constexpr int kBarWidth = 30;

// Returns the weight with four decimals. If 0 < |weight| < 0.001, it has two significant digits
// instead, and if |weight| >= 1e6, four.
std::string WeightText(double weight);

// Names to print beside the answers. A member is empty if the user gave none.
struct LookupLabels {
  std::string store;
  std::vector<std::string> queries;  // One per query.
  PositionNames positions;           // May name fewer positions than the store has.
  // Set if labels are to be shown. Before an answer is added, must have those of its rows.
  std::optional<LabelsByPosition> rows;
};

// Prints for each query (and head) a table of weights, its statistics and the answer; or with
// -o json
// {"store", "revision", "row_count", "answers": [{"query", "word"?, "values": [...], "heads":
//  [{"counted_rows", "summed_rows", "empty", "log_sum_exp", "max_logit", "entropy", "error_bound",
//    "remaining_weight"?, "weights"?: [{"position", "id"?, "name"?, "labels"?, "score",
//    "weight"}]}]}]}
// where log_sum_exp and max_logit are null if infinite. entropy is null if log_sum_exp is: both are
// defined only for soft answers over at least one row. "word" and "name" are there if the labels
// have one, "labels", a list, if labels are to be shown, "id" if the row has an id,
// "remaining_weight" and "weights" if weights were asked for.
//
// The answers may come in parts, in the order of their queries. "revision" and "row_count" are
// those of the first part. If a later part has a later revision, Finish() says so on session.err.
class LookupPrinter {
 public:
  LookupPrinter(const LookupLabels& labels, const Session& session)
      : labels_(labels), session_(session) {}

  // Prints a part of the answers. With -o json, keeps them for Finish().
  void Add(const LookupAnswer& answer);
  // Call this once, after the last part. With -o json, prints all answers. Otherwise says on
  // session.err how many columns of the tables are hidden, if any is.
  void Finish();

 private:
  const LookupLabels& labels_;
  const Session& session_;
  std::uint32_t query_count_ = 0;   // Of the parts so far.
  std::uint64_t revision_ = 0;      // Of the first part.
  std::uint64_t revision_max_ = 0;  // Of all parts.
  std::uint64_t row_count_ = 0;
  std::size_t hidden_max_ = 0;  // Most columns that are hidden in one table.
  output::Json answers_ = output::Json::array();
};

// Prints the answers of an Attend as a LookupPrinter does, without "store", "revision" and
// "row_count", because an Attend has no store.
void PrintAttention(const LookupAnswer& answer, const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_LOOKUP_PRINTER_H_
