#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_OBSERVER_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_OBSERVER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace softlookup {

// Receives events that no single call reports. The engine calls it on any of its own threads and of
// its callers' threads, also on several at the same time. Other work waits for its methods, so they
// must be quick. They must not call the engine.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;

  // The log has refused a write. `error` is what the write's caller gets. Later refusals are not
  // reported until OnWritesTaken() has been called.
  virtual void OnWritesRefused(const absl::Status& error) {}
  // The log has taken a write again, and takes all writes. Called only after OnWritesRefused().
  virtual void OnWritesTaken() {}

  // Called when the engine begins or ends to compact a store by itself
  // (EngineOptions::compact_above). `dropped_rows` is the number of rows that are gone, also if
  // `status` is an error.
  virtual void OnAutoCompactionBegin(absl::string_view store) {}
  virtual void OnAutoCompactionEnd(absl::string_view store, const absl::Status& status,
                                   std::uint64_t dropped_rows) {}

  // Rows of a range that the server answers for (EngineOptions::node) could not be loaded, so
  // lookups of them fail here. The engine tries again each second, and does not report it again
  // before it has loaded all rows of the store.
  virtual void OnRowsNotLoaded(absl::string_view store, const absl::Status& status) {}
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_OBSERVER_H_
