#include "core/engine/byte_budget.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/error.h"

namespace softlookup {
namespace {

// How long a caller should wait before it tries again. Other writes end meanwhile.
constexpr absl::Duration kRoomRetryDelay = absl::Milliseconds(50);

}  // namespace

absl::Status ByteBudget::Check(std::int64_t growth, std::int64_t own_reserved_bytes) const {
  if (!has_limit()) return absl::OkStatus();
  const std::int64_t grown = store_bytes_ + growth;
  const std::int64_t needed = grown + reserved_bytes_.load();
  if (needed <= limit_) return absl::OkStatus();
  absl::Status status =
      MakeError(reasons::kMemoryLimit,
                absl::StrCat("The stores, and what waits to be written to them, would take ",
                             needed, " bytes of memory; the limit is ", limit_),
                {{"limit", absl::StrCat(limit_)}, {"bytes", absl::StrCat(needed)}});
  return grown + own_reserved_bytes <= limit_ ? WithRetryAfter(std::move(status), kRoomRetryDelay)
                                              : status;
}

}  // namespace softlookup
