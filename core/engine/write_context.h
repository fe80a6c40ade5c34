#ifndef SOFTLOOKUP_CORE_ENGINE_WRITE_CONTEXT_H_
#define SOFTLOOKUP_CORE_ENGINE_WRITE_CONTEXT_H_

#include <cstdint>

#include "core/engine/byte_budget.h"
#include "core/engine/store_table.h"
#include "core/engine/store_totals.h"

namespace softlookup {

// What all writes of an engine share. Thread-safe, except that only one write at a time may add to
// the budget (ByteBudget).
struct WriteContext {
  // `ram_bytes_max` is as in Limits.
  explicit WriteContext(std::int64_t ram_bytes_max) : budget(ram_bytes_max) {}

  StoreTable stores;
  ByteBudget budget;
  StoreTotals totals;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_WRITE_CONTEXT_H_
