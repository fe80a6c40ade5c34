#ifndef SOFTLOOKUP_CORE_BASE_LIMITS_H_
#define SOFTLOOKUP_CORE_BASE_LIMITS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace softlookup {

// Limits that the wire contract fixes. No flag changes them.
inline constexpr std::int64_t kDimMax = 65536;  // Components of a key or value, total over heads.
inline constexpr std::int64_t kNameLengthMax = 128;  // Bytes of a store's or memory's name.
inline constexpr double kTemperatureMin = 1e-6;
inline constexpr double kTemperatureMax = 1e6;
inline constexpr std::int64_t kTopWeightsDefault = 10;   // Weights listed per head query.
inline constexpr std::int64_t kRowLabelCountMax = 16;    // Labels of one row.
inline constexpr std::int64_t kRowLabelBytesMax = 64;    // Bytes of one label of a row.
inline constexpr std::int64_t kMemoryCountMax = 64;      // Memories of a store besides `average`.
inline constexpr std::int64_t kStoreLabelCountMax = 64;  // Labels of the store itself.
inline constexpr std::int64_t kStoreLabelKeyBytesMax = 128;
inline constexpr std::int64_t kStoreLabelValueBytesMax = 1024;
inline constexpr std::int64_t kWriterCountMax = 65536;      // Writers of a store.
inline constexpr std::int64_t kWriterBytesMax = 128;        // Bytes of a writer's name.
inline constexpr std::int64_t kFilterLabelCountMax = 4096;  // In each of any_labels and no_labels.
inline constexpr std::int64_t kFilterIdCountMax = 1 << 18;  // In each of ids and exclude_ids.
inline constexpr std::int64_t kMaskPathCountMax = 16;       // In an update_mask or a read_mask.
inline constexpr std::int64_t kRangeCountMax = 256;         // Ranges of a store.
inline constexpr std::int64_t kRangeNodeCountMax = 5;       // Nodes of a range.
inline constexpr std::int64_t kListPageSizeDefault = 100;
inline constexpr std::int64_t kListPageSizeMax = 1000;

// Limits of an engine. A call that exceeds one fails at once and changes nothing. The server has a
// flag for each but `waiting_append_bytes_max`.
struct Limits {
  // Queries in one lookup or Attend. A call with more gets INVALID_ARGUMENT.
  std::int64_t queries_per_lookup_max = 4096;
  // Rows in one append or Attend. A call with more gets INVALID_ARGUMENT.
  std::int64_t rows_per_append_max = 65536;
  // Largest `top_weights` of a lookup or Attend. A larger one gets INVALID_ARGUMENT.
  std::int64_t top_weights_max = 1024;
  // Bytes of one request or answer. A larger one gets RESOURCE_EXHAUSTED. A call gets
  // INVALID_ARGUMENT if its `inputs` would be projected to vectors of more bytes than this.
  std::int64_t message_bytes_max = std::int64_t{64} << 20;
  // Stores in the server. Creating one more gets RESOURCE_EXHAUSTED.
  std::int64_t store_count_max = 1'000'000;
  // Bytes of appends that wait to be written. The same number bounds, in a separate account, the
  // bytes of appends whose inputs wait to be projected. An append beyond either bound gets
  // RESOURCE_EXHAUSTED. An append that finds nothing waiting is accepted at any size.
  std::int64_t waiting_append_bytes_max = std::int64_t{256} << 20;
  // Bytes that all lookups and Attends in progress may take for the rows of their `top_k`. A call
  // that needs more than the calls in progress leave gets RESOURCE_EXHAUSTED. A call that needs
  // more than the limit by itself gets INVALID_ARGUMENT.
  std::int64_t ranking_bytes_max = std::int64_t{256} << 20;
  // Jobs that wait in the scheduler's queue, such as lookups, Attends and long projections. Further
  // jobs get RESOURCE_EXHAUSTED with a retry delay. Small jobs run without waiting and are not
  // refused. A lookup that has waited for a revision is not refused either.
  std::int64_t waiting_jobs_max = 1024;
  // Longest expected time to the answer of a lookup or Attend that finds other work waiting. A call
  // whose expected time is longer gets RESOURCE_EXHAUSTED with a retry delay. But a call is
  // accepted if its expected time is at most a few times what it would take alone.
  absl::Duration lookup_wait_max = absl::Milliseconds(100);
  // Budget in bytes of all stores, of waiting appends, and of the `top_k` rows of running lookups
  // and Attends. Beyond it, appends of rows, and other writes that make a store grow, get
  // RESOURCE_EXHAUSTED. Deletions of rows are never refused. 0: no limit.
  std::int64_t ram_bytes_max = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_LIMITS_H_
