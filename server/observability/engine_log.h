#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_ENGINE_LOG_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_ENGINE_LOG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/observability/line_limiter.h"
#include "softlookup/engine_observer.h"

namespace softlookup::server {

// What has happened to a store.
enum class StoreEvent : std::uint8_t {
  kCreated,
  kDeleted,
  kRenamed,
  kCompactionBegun,
  kCompactionEnded,
  kRestored,
  kNotRestored,
  kRowsNotLoaded,
};
inline constexpr std::size_t kStoreEventCount = 8;

// Returns the fields of a line about the end of a compaction. If `status` is an error, the fields
// say which.
nlohmann::ordered_json CompactionFields(absl::string_view store, const absl::Status& status,
                                        std::uint64_t dropped_rows);

// Writes the server log's lines about what happens to stores, and about when writes are refused and
// when they are taken again. Writes at most ten lines a second about each StoreEvent, because
// clients can cause them. Thread-safe.
class EngineLog final : public EngineObserver {
 public:
  EngineLog() = default;
  // Logs how many of the lines left out no line has told of yet.
  ~EngineLog() override;
  EngineLog(const EngineLog&) = delete;
  EngineLog& operator=(const EngineLog&) = delete;

  // Writes a line of `event` and `fields`, an object whose members are strings or numbers. The line
  // also says how many lines of `event` were left out since the last one that was written.
  void Write(StoreEvent event, nlohmann::ordered_json fields);

  void OnWritesRefused(const absl::Status& error) override;
  void OnWritesTaken() override;
  void OnAutoCompactionBegin(absl::string_view store) override;
  void OnAutoCompactionEnd(absl::string_view store, const absl::Status& status,
                           std::uint64_t dropped_rows) override;
  void OnRowsNotLoaded(absl::string_view store, const absl::Status& status) override;

 private:
  static constexpr std::int64_t kLinesPerSecondMax = 10;  // Of each event.

  // A LineLimiter that can be an element of an array.
  struct EventLimiter : LineLimiter {
    EventLimiter() : LineLimiter(kLinesPerSecondMax) {}
  };

  std::array<EventLimiter, kStoreEventCount> lines_;  // By StoreEvent.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_ENGINE_LOG_H_
