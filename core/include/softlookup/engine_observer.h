#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_OBSERVER_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_OBSERVER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace softlookup {

// Receives events that no single call reports. The engine calls it on any of its threads, several
// at a time, and on those of callers. Other work waits for its methods, so they must be quick. They
// must not call the engine.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;

  // The log has refused a write. `error` is what its caller gets. Called once until
  // OnWritesTaken().
  virtual void OnWritesRefused(const absl::Status& error) {}
  // The log has taken a write again, and takes all writes. Called only after OnWritesRefused().
  virtual void OnWritesTaken() {}

  // The engine compacts a store by itself (EngineOptions::compact_above). `dropped_rows` are gone,
  // also if `status` is an error.
  virtual void OnAutoCompactionBegin(absl::string_view store) {}
  virtual void OnAutoCompactionEnd(absl::string_view store, const absl::Status& status,
                                   std::uint64_t dropped_rows) {}
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_OBSERVER_H_
