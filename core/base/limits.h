#ifndef SOFTLOOKUP_CORE_BASE_LIMITS_H_
#define SOFTLOOKUP_CORE_BASE_LIMITS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace softlookup {

// Limits that the contract fixes.
inline constexpr std::int64_t kDimMax = 65536;       // Of keys and of values, all heads.
inline constexpr std::int64_t kNameLengthMax = 128;  // Bytes, of stores and memories.
inline constexpr double kTemperatureMin = 1e-6;
inline constexpr double kTemperatureMax = 1e6;
inline constexpr std::int64_t kTopWeightsDefault = 10;
inline constexpr std::int64_t kRowLabelCountMax = 16;  // On a row.
inline constexpr std::int64_t kRowLabelBytesMax = 64;
inline constexpr std::int64_t kMemoryCountMax = 64;  // In a store, beside `average`.
inline constexpr std::int64_t kStoreLabelCountMax = 64;
inline constexpr std::int64_t kStoreLabelKeyBytesMax = 128;
inline constexpr std::int64_t kStoreLabelValueBytesMax = 1024;
inline constexpr std::int64_t kWriterCountMax = 65536;      // Of a store.
inline constexpr std::int64_t kWriterBytesMax = 128;        // Of a writer's name.
inline constexpr std::int64_t kFilterLabelCountMax = 4096;  // In any_labels, and in no_labels.
inline constexpr std::int64_t kFilterIdCountMax = 1 << 18;  // In ids, and in exclude_ids.
inline constexpr std::int64_t kMaskPathCountMax = 16;       // In an update_mask or a read_mask.
inline constexpr std::int64_t kListPageSizeDefault = 100;
inline constexpr std::int64_t kListPageSizeMax = 1000;

// Limits that an operator may move. Beyond one, a call fails at once and changes nothing.
struct Limits {
  // Queries in one lookup. Beyond: INVALID_ARGUMENT.
  std::int64_t queries_per_lookup_max = 4096;
  // Rows in one append. Beyond: INVALID_ARGUMENT.
  std::int64_t rows_per_append_max = 65536;
  // `top_weights` of a lookup. Beyond: INVALID_ARGUMENT.
  std::int64_t top_weights_max = 1024;
  // Bytes of one request or answer. Beyond: RESOURCE_EXHAUSTED. Also of what `inputs` are projected
  // to. Beyond: INVALID_ARGUMENT.
  std::int64_t message_bytes_max = std::int64_t{64} << 20;
  // Stores in the server. Beyond: RESOURCE_EXHAUSTED.
  std::int64_t store_count_max = 1'000'000;
  // Bytes of appends that wait to be written, and of inputs that wait to be projected for one.
  // Beyond: RESOURCE_EXHAUSTED, likewise.
  std::int64_t waiting_append_bytes_max = std::int64_t{256} << 20;
  // Bytes that lookups in progress may take to keep the rows of their `top_k`. Beyond:
  // RESOURCE_EXHAUSTED, likewise; of one lookup alone: INVALID_ARGUMENT.
  std::int64_t ranking_bytes_max = std::int64_t{256} << 20;
  // Lookups and long projections that wait for a thread. Beyond: RESOURCE_EXHAUSTED, with a hint
  // when to come back. Those that waited for a revision before are not turned away.
  std::int64_t waiting_lookups_max = 1024;
  // A lookup that waits is refused, likewise, if what waits before it would keep its answer for
  // longer than this, and for longer than a few times what it takes alone.
  absl::Duration lookup_wait_max = absl::Milliseconds(100);
  // Bytes of memory that all stores may take, with the appends that wait. Beyond: what would make a
  // store grow is refused with RESOURCE_EXHAUSTED; what takes rows away is not. 0: no limit.
  std::int64_t memory_bytes_max = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_LIMITS_H_
