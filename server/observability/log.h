#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_LOG_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_LOG_H_

#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace softlookup::server {

enum class LogFormat { kText, kJson };

// Makes spdlog's default logger and gRPC's own log write to standard error, one line per message.
// `level` is spdlog's name of the lowest level that is written, or "off". Call this once.
void SetUpLog(LogFormat format, const std::string& level);

// Logs `message` with `fields`, an object whose members are strings or numbers. Thread-safe.
void Log(spdlog::level::level_enum level, absl::string_view message,
         const nlohmann::ordered_json& fields);

// Returns `fields` in the form that they have in a line: name=value each, or one JSON object.
// Escapes them as MakeLineFormatter() does.
std::string FormatFields(LogFormat format, const nlohmann::ordered_json& fields);

// Returns a formatter of lines. As text, a line has time, level, message, and name=value for each
// field. As JSON, it is one object with time, level, message and the fields. Characters that are
// not printable ASCII are escaped as in JSON, and bytes that are not UTF-8 are replaced. So no text
// that a client sends can make one line look like two.
std::unique_ptr<spdlog::formatter> MakeLineFormatter(LogFormat format);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_LOG_H_
