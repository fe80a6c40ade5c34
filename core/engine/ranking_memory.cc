#include "core/engine/ranking_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/attention/top_rows.h"
#include "core/base/error.h"

namespace softlookup {
namespace {

constexpr absl::Duration kRankingRetryDelay = absl::Milliseconds(50);

// Up to twice as many rows as are wanted are kept before the rest are thrown away.
constexpr double kBytesPerRow = 2.0 * sizeof(CountedRow);

// In floating point, since the product may be beyond an integer.
double BytesOf(const AttentionTask& task, std::int64_t query_count) {
  const std::uint64_t rows = std::min<std::uint64_t>(task.options.top_k, task.row_count());
  return kBytesPerRow * static_cast<double>(rows) * static_cast<double>(query_count) *
         static_cast<double>(task.num_heads);
}

}  // namespace

absl::StatusOr<RankingMemory::Taken> RankingMemory::Take(const AttentionTask& task,
                                                         std::int64_t query_count) {
  if (task.options.top_k == 0) return Taken();
  const double wanted = BytesOf(task, query_count);
  const auto limit = static_cast<double>(limit_);
  if (wanted > limit) {
    return MakeError(
        reasons::kLimitExceeded,
        absl::StrCat("options.top_k: ", query_count, " queries that keep ", task.options.top_k,
                     " rows each take ", wanted, " bytes; the limit is ", limit_),
        {{"field", "options.top_k"}, {"limit", absl::StrCat(limit_)}});
  }
  const auto bytes = static_cast<std::int64_t>(wanted);
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
