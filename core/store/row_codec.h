#ifndef SOFTLOOKUP_CORE_STORE_ROW_CODEC_H_
#define SOFTLOOKUP_CORE_STORE_ROW_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/kernels/panel.h"
#include "core/store/panel_buffer.h"
#include "core/store/row_mask.h"
#include "core/store/sealed_block.h"
#include "core/store/stored_blocks.h"

namespace softlookup {

// Encodes the components of the rows at positions [begin, end), deleted ones included, in the
// format of docs/storage_format.md. Panels that lie wholly in the range are copied as they are, so
// that loading copies them back. Other rows are encoded one by one.
std::string EncodeComponents(const StoredBlocks& blocks, std::uint64_t begin, std::uint64_t end);

// Encodes the components of the live rows of block `index`, which must be compacted, one row after
// the other.
std::string EncodeKeptComponents(const StoredBlocks& blocks, std::int64_t index);

// Decodes `components`, which EncodeComponents made of rows [begin, end), into panels. Panel i
// holds positions [16 * i, 16 * i + 16), and panel_of(i) returns it.
void DecodeComponents(absl::string_view components, const kernels::PanelShape& shape,
                      std::uint64_t begin, std::uint64_t end,
                      absl::FunctionRef<std::byte*(std::int64_t)> panel_of);

// Decodes into `panels` those of the rows [begin, end) that lie in block `block`, whose panels
// these are. EncodeComponents made `components` of the rows [begin, end), of which some must lie in
// the block.
void DecodeRowsOfBlock(absl::string_view components, const kernels::PanelShape& shape,
                       std::uint64_t begin, std::uint64_t end, std::int64_t block_rows,
                       std::int64_t block, PanelBuffer& panels);

// Decodes the rows in `kept` of a compacted block of `block_rows` rows. EncodeKeptComponents made
// `components` of them. If it is empty, the rows are not resident.
std::shared_ptr<const PackedRows> DecodeKeptRows(absl::string_view components,
                                                 const kernels::PanelShape& shape,
                                                 std::int64_t block_rows, const RowMask& kept);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_ROW_CODEC_H_
