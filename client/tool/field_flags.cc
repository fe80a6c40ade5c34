#include "client/tool/field_flags.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "softlookup/error_details.h"

namespace softlookup::tool {
namespace {

struct FieldFlag {
  // Has a dot or an underscore, so no word of a message is equal to it.
  absl::string_view field;
  absl::string_view flag;
};

constexpr FieldFlag kFieldFlags[] = {
    {"end_memories", "--end-memories"},
    {"filter.any_labels", "--label"},
    {"filter.begin", "--begin"},
    {"filter.end", "--end"},
    {"filter.exclude_ids", "--exclude-id"},
    {"filter.ids", "--id"},
    {"filter.last", "--last"},
    {"filter.no_labels", "--no-label"},
    {"min_revision", "--min-revision"},
    {"options.causal_offset", "--causal-offset"},
    {"options.max_error", "--max-error"},
    {"options.min_score", "--min-score"},
    {"options.mode", "--mode"},
    {"options.recency_decay", "--recency-decay"},
    {"options.score", "--score"},
    {"options.temperature", "--temperature"},
    {"options.top_k", "--top-k"},
    {"options.top_weights", "--top"},
    {"options.weights", "--weights"},
    {"range_count", "--ranges"},
    {"store.labels", "--label"},
    {"store.num_heads", "--heads"},
    {"store.score", "--score"},
    {"store.storage_type", "--storage"},
    {"store.temperature", "--temperature"},
};

}  // namespace

std::string WithFlagsForFields(const absl::Status& error) {
  std::string message(error.message());
  const auto metadata = ErrorMetadata(error);
  const auto field = metadata.find("field");
  if (field == metadata.end()) return message;
  // These are words of messages, too. So only the field in front becomes a flag.
  for (const absl::string_view word : {"begin", "end"}) {
    if (field->second != word || !absl::StartsWith(message, absl::StrCat(word, ": "))) continue;
    return absl::StrCat("--", message);
  }
  const auto* const known =
      std::find_if(std::begin(kFieldFlags), std::end(kFieldFlags),
                   [&](const FieldFlag& each) { return each.field == field->second; });
  if (known == std::end(kFieldFlags)) return message;
  return absl::StrReplaceAll(message, {{known->field, known->flag}});
}

}  // namespace softlookup::tool
