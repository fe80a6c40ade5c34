#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_LINE_FORMAT_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_LINE_FORMAT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace softlookup::server {

// The form of lines in the server log and in the audit log. No text that a client sends can make
// one line look like two. Characters that are not printable ASCII are escaped as in JSON, and bytes
// that are not UTF-8 are replaced.

enum class LineFormat { kText, kJson };

// Returns the format that --log-format calls `name`: "text" or "json".
LineFormat LineFormatOf(absl::string_view name);

// Returns the time of a line: in UTC, with milliseconds, as in "2024-02-29T13:05:00.250Z".
std::string LineTime(absl::Time time);

// Returns `fields`, an object whose members are strings or numbers, as they stand in a line. In a
// text line, each is name=value; in a JSON line, they are one object.
std::string FormatFields(LineFormat format, const nlohmann::ordered_json& fields);

// Returns `text` as it stands in a text line outside of the fields: escaped, but not in quotes.
std::string Printable(absl::string_view text);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_LINE_FORMAT_H_
