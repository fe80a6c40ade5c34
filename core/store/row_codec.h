#ifndef SOFTLOOKUP_CORE_STORE_ROW_CODEC_H_
#define SOFTLOOKUP_CORE_STORE_ROW_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/kernels/panel.h"
#include "core/store/snapshot.h"

namespace softlookup {

// The components of rows [begin, end) of a snapshot, deleted ones included, as the storage format
// has them: whole panels as they lie, so that loading them is copying them, other rows one by one.
std::string EncodeComponents(const Snapshot& snapshot, std::uint64_t begin, std::uint64_t end);

// Puts rows [begin, end), which EncodeComponents made `components` of, back into panels. Positions
// are divided into panels from 0 on; panel_of(i) is where panel i is.
void DecodeComponents(absl::string_view components, const kernels::PanelShape& shape,
                      std::uint64_t begin, std::uint64_t end,
                      absl::FunctionRef<std::byte*(std::int64_t)> panel_of);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_ROW_CODEC_H_
