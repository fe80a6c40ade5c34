#include "core/engine/ranking_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/attention/shared_pass.h"
#include "core/attention/top_rows.h"
#include "core/base/error.h"

namespace softlookup {
namespace {

// How long a caller should wait before it tries again. Lookups in progress end meanwhile.
constexpr absl::Duration kRankingRetryDelay = absl::Milliseconds(50);

// Returns an upper bound on the bytes of one head query's best rows.
std::int64_t HeadQueryBytes(const AttentionTask& task) {
  const std::uint64_t rows = std::min<std::uint64_t>(task.options.top_k, task.row_count());
  return TopRows::BytesMax(static_cast<std::int64_t>(rows));
}

}  // namespace

absl::StatusOr<RankingBudget::Taken> RankingBudget::Take(const AttentionTask& task,
                                                         std::int64_t query_count) {
  if (task.options.top_k == 0) return Taken();
  const std::int64_t head_query_bytes = HeadQueryBytes(task);
  // A pass keeps the best rows of one round of head queries at a time (shared_pass.h). A round
  // takes no more head queries once their best rows can take kCollectorBytesMax.
  const std::int64_t head_queries_at_once = kCollectorBytesMax / head_query_bytes + 1;
  const std::int64_t bytes =
      head_query_bytes *
      std::min(head_queries_at_once, query_count * static_cast<std::int64_t>(task.num_heads));
  if (bytes > limit_) {
    return MakeError(reasons::kLimitExceeded,
                     absl::StrCat("options.top_k: keeping ", task.options.top_k, " rows takes ",
                                  bytes, " bytes; the limit is ", limit_),
                     {{"field", "options.top_k"}, {"limit", absl::StrCat(limit_)}});
  }
  if (used_.fetch_add(bytes) + bytes <= limit_) return Taken(*this, bytes);
  used_ -= bytes;
  return WithRetryAfter(
      MakeError(
          reasons::kQueueFull,
          absl::StrCat("Lookups in progress keep too many rows for their top_k; the limit is ",
                       limit_, " bytes")),
      kRankingRetryDelay);
}

}  // namespace softlookup
