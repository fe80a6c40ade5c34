#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_LOG_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_LOG_H_

#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace softlookup::server {

enum class LogFormat { kText, kJson };

// Has spdlog's default logger write to standard error, a line for each message, and gRPC's own
// complaints go there as well. `level` is spdlog's name of the lowest that is written, or "off".
void SetUpLog(LogFormat format, const std::string& level);

// Writes a message with fields, an object whose members are strings or numbers. Thread-safe.
void Log(spdlog::level::level_enum level, absl::string_view message,
         const nlohmann::ordered_json& fields);

// The fields as a line has them: name=value each, or one JSON object. Escaped as lines are.
std::string FormatFields(LogFormat format, const nlohmann::ordered_json& fields);

// Makes the lines. As text: time, level, message, name=value for each field. As JSON: one object,
// with time, level, message and the fields. What is not printable ASCII is escaped as in JSON,
// whoever sent it, and what is not UTF-8 is replaced: nobody makes a line look like two.
std::unique_ptr<spdlog::formatter> MakeLineFormatter(LogFormat format);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_LOG_H_
