#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_STORE_CONFIG_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_STORE_CONFIG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/storage_type.h"
#include "softlookup/attention.h"
#include "softlookup/memory.h"

namespace softlookup {

// Learned linear maps. An input x has the query `query` * x, the key `key` * x and the value
// `value` * x. The matrices are row-major.
struct Projection {
  std::int64_t input_dim = 0;
  std::vector<float> query;  // [key_dim, input_dim]
  std::vector<float> key;    // [key_dim, input_dim]
  std::vector<float> value;  // [value_dim, input_dim]
};

// The positions of a store from `begin` on, up to the next range of the store, and the nodes of the
// store's group that answer lookups for their rows.
struct StoreRange {
  std::uint64_t begin = 0;
  std::vector<std::string> nodes;

  bool operator==(const StoreRange&) const = default;
};

// What a store is created with.
struct StoreConfig {
  std::string name;
  std::int64_t key_dim = 0;    // Total over heads, in [1, 65536], divisible by num_heads.
  std::int64_t value_dim = 0;  // Total over heads, in [1, 65536], divisible by num_heads.
  std::int64_t num_heads = 1;  // At least 1.
  Score score = Score::kScaledDot;
  double temperature = 1;
  StorageType storage_type = StorageType::kFloat32;
  std::vector<MemorySpec> memories;              // Beside the built-in `average`.
  std::shared_ptr<const Projection> projection;  // Null: none.
  std::map<std::string, std::string> labels;     // Of the store itself, not of its rows.
  // By `begin`, ascending, as CheckStoreRanges() says. Empty: the store is whole, so that every
  // node of its group answers for all rows. Only a server in a group reads them.
  std::vector<StoreRange> ranges;
};

// The fields that an update changes. Unset fields keep their values.
struct StoreUpdate {
  std::optional<Score> score;  // Unspecified: SCALED_DOT.
  std::optional<double> temperature;
  std::optional<std::shared_ptr<const Projection>> projection;  // Null: removes the projection.
  std::optional<std::map<std::string, std::string>> labels;
};

// A new name for the store `name`.
struct StoreRename {
  std::string name;
  std::string new_name;  // Must not be `name`.
  // Whether a store that has the new name already is deleted.
  bool replace = false;
};

// A store as of one revision. Of a damaged store, only `config.name` and `damage` are sure to be
// set. Other members that could not be read have their defaults. A damaged store's `live_row_count`
// and `byte_size` are 0.
struct StoreInfo {
  StoreConfig config;
  std::uint64_t revision = 0;
  std::uint64_t row_count = 0;       // Every row ever appended.
  std::uint64_t live_row_count = 0;  // Rows that are not deleted.
  std::uint64_t byte_size = 0;       // Bytes that the store takes in RAM.
  absl::Time create_time;
  std::string damage;  // What is wrong with a damaged store, for people. Empty: the store is whole.
};

// A range of a store, and its rows.
struct RangeInfo {
  StoreRange range;
  std::uint64_t row_count = 0;       // Positions of the range that have had a row.
  std::uint64_t live_row_count = 0;  // Rows that are not deleted.
  std::uint64_t byte_size = 0;       // Bytes of the components of rows that no compaction dropped.
  std::uint64_t resident_count = 0;  // Of row_count, the positions whose rows this server keeps in
                                     // memory.
};

// The ranges of a store as of one revision.
struct RangesInfo {
  std::uint64_t revision = 0;
  std::uint64_t row_count = 0;    // Of the whole store, as in StoreInfo.
  std::vector<RangeInfo> ranges;  // Empty: the store is whole.
};

// What a rename has done.
struct StoreRenamed {
  StoreInfo store;                    // Under its new name.
  std::optional<StoreInfo> replaced;  // The store that was deleted, as it last was.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_STORE_CONFIG_H_
