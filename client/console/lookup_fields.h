#ifndef SOFTLOOKUP_CLIENT_CONSOLE_LOOKUP_FIELDS_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_LOOKUP_FIELDS_H_

#include <cstdint>
#include <vector>

#include "client/console/request_reader.h"
#include "softlookup/client.h"

namespace softlookup::console {

// The fields of a call that say how keys are scored and how scores become weights.
v1::AttentionOptions ReadAttention(RequestReader* reader);

// The fields of a call that say which rows take part.
v1::RowFilter ReadFilter(RequestReader* reader);

// Cuts the positions [begin, end) into at most `count` blocks of nearly equal size. Returns the
// edges, ascending: one more than there are blocks. `count` must be at least 1.
std::vector<std::uint64_t> BlockEdges(std::uint64_t begin, std::uint64_t end, std::uint64_t count);

// Returns what to add to the logits of a lookup whose filter ends at `block_end`, so that they are
// those of a lookup whose filter ends at `end`. A recency decay counts age from the end of the
// filter.
double RecencyShift(const v1::AttentionOptions& attention, std::uint64_t block_end,
                    std::uint64_t end);

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_LOOKUP_FIELDS_H_
