#include "server/observability/engine_log.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/error.h"
#include "server/observability/server_log.h"

namespace softlookup::server {
namespace {

struct EventLine {
  StoreEvent event;
  spdlog::level::level_enum level;
  const char* message;
};

// Indexed by StoreEvent.
constexpr std::array<EventLine, kStoreEventCount> kEventLines = {{
    {StoreEvent::kCreated, spdlog::level::info, "store created"},
    {StoreEvent::kDeleted, spdlog::level::info, "store deleted"},
    {StoreEvent::kRenamed, spdlog::level::info, "store renamed"},
    {StoreEvent::kCompactionBegun, spdlog::level::info, "compaction begun"},
    {StoreEvent::kCompactionEnded, spdlog::level::info, "compaction ended"},
    {StoreEvent::kRestored, spdlog::level::info, "store restored"},
    {StoreEvent::kNotRestored, spdlog::level::warn, "store not restored"},
    {StoreEvent::kRowsNotLoaded, spdlog::level::warn, "rows not loaded"},
}};

constexpr bool AreEventsInOrder() {
  for (std::size_t i = 0; i < kEventLines.size(); ++i) {
    if (static_cast<std::size_t>(kEventLines[i].event) != i) return false;
  }
  return true;
}
static_assert(AreEventsInOrder());

}  // namespace

nlohmann::ordered_json CompactionFields(absl::string_view store, const absl::Status& status,
                                        std::uint64_t dropped_rows) {
  nlohmann::ordered_json fields = {{"store", std::string(store)},
                                   {"dropped_rows", dropped_rows},
                                   {"code", absl::StatusCodeToString(status.code())}};
  if (!status.ok()) fields["error"] = std::string(status.message());
  return fields;
}

EngineLog::~EngineLog() {
  std::int64_t left_out = 0;
  for (EventLimiter& lines : lines_) left_out += lines.TakeLeftOut();
  if (left_out == 0) return;
  WriteServerLog(spdlog::level::info, "events of stores were left out of the log",
                 {{"left_out", left_out}});
}

void EngineLog::Write(StoreEvent event, nlohmann::ordered_json fields) {
  const auto index = static_cast<std::size_t>(event);
  const std::optional<std::int64_t> left_out = lines_[index].Allow(absl::Now());
  if (!left_out) return;
  if (*left_out > 0) fields["left_out"] = *left_out;
  WriteServerLog(kEventLines[index].level, kEventLines[index].message, fields);
}

void EngineLog::OnWritesRefused(const absl::Status& error) {
  WriteServerLog(
      spdlog::level::warn, "writes are refused",
      {{"reason", std::string(ReasonOf(error))}, {"error", std::string(error.message())}});
}

void EngineLog::OnWritesTaken() {
  WriteServerLog(spdlog::level::info, "writes are taken again", nlohmann::ordered_json::object());
}

void EngineLog::OnAutoCompactionBegin(absl::string_view store) {
  Write(StoreEvent::kCompactionBegun, {{"store", std::string(store)}});
}

void EngineLog::OnAutoCompactionEnd(absl::string_view store, const absl::Status& status,
                                    std::uint64_t dropped_rows) {
  Write(StoreEvent::kCompactionEnded, CompactionFields(store, status, dropped_rows));
}

void EngineLog::OnRowsNotLoaded(absl::string_view store, const absl::Status& status) {
  Write(StoreEvent::kRowsNotLoaded,
        {{"store", std::string(store)}, {"error", std::string(status.message())}});
}

}  // namespace softlookup::server
