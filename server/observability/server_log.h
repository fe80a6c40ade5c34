#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_SERVER_LOG_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_SERVER_LOG_H_

#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "server/observability/line_format.h"

namespace softlookup::server {

// The server log is for the operator: a line on standard error for each message.

// Makes spdlog's default logger write the server log, and sends gRPC's own messages there, too.
// `level` is spdlog's name of the lowest level that is written, or "off". Call this once.
void SetUpServerLog(LineFormat format, const std::string& level);

// Writes a line of `message` and `fields`, an object whose members are strings or numbers.
// Thread-safe.
void WriteServerLog(spdlog::level::level_enum level, absl::string_view message,
                    const nlohmann::ordered_json& fields);

// Returns a formatter of lines. A text line has the time, the level, the message, and name=value
// for each field. A JSON line is one object with time, level, message and the fields.
std::unique_ptr<spdlog::formatter> MakeLineFormatter(LineFormat format);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_SERVER_LOG_H_
