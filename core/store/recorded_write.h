#ifndef SOFTLOOKUP_CORE_STORE_RECORDED_WRITE_H_
#define SOFTLOOKUP_CORE_STORE_RECORDED_WRITE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/store/row_mask.h"
#include "core/store/writer_table.h"
#include "softlookup/store_config.h"

namespace softlookup {

// What the records of one write to a store say (docs/storage_format.md), for a replica that did not
// make the write itself.
struct RecordedWrite {
  // The rows of an append.
  struct Rows {
    std::uint64_t first_position = 0;
    std::uint64_t row_count = 0;
    absl::string_view components;  // As EncodeComponents() made them.
    // These two are empty, or have one element per row.
    std::vector<std::optional<std::uint64_t>> ids;
    std::vector<std::vector<std::string>> row_labels;
  };
  // The masks of a block in which rows were deleted, or which was compacted.
  struct Masks {
    RowMask live;
    std::optional<RowMask> kept;  // Set if the block is compacted.
  };

  // As they are after the write.
  std::uint64_t revision = 0;
  std::uint64_t row_count = 0;

  std::optional<StoreConfig> config;                      // Set if it was changed.
  std::vector<Rows> rows;                                 // In the order of positions.
  std::map<std::uint64_t, std::vector<double>> memories;  // Before the first row of new blocks.
  std::map<std::uint64_t, Masks> masks;                   // By block.
  std::map<std::string, WriterState> writers;             // Those that were changed.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_RECORDED_WRITE_H_
