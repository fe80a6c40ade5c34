#include "server/observability/line_format.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace softlookup::server {
namespace {

using nlohmann::ordered_json;

// Returns `value` as JSON on one line, in ASCII only.
std::string Encoded(const ordered_json& value) {
  return value.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/true,
                    ordered_json::error_handler_t::replace);
}

// Returns `value` as text. Quotes a string unless it is one plain word.
std::string TextValue(const ordered_json& value) {
  if (!value.is_string()) return Encoded(value);
  const std::string& text = value.get_ref<const std::string&>();
  const bool is_word = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("._-/:[]%").find(c) != absl::string_view::npos;
  });
  return is_word ? text : Encoded(value);
}

}  // namespace

LineFormat LineFormatOf(absl::string_view name) {
  return name == "json" ? LineFormat::kJson : LineFormat::kText;
}

std::string LineTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

std::string FormatFields(LineFormat format, const ordered_json& fields) {
  if (format == LineFormat::kJson) return Encoded(fields);
  std::string text;
  for (const auto& [name, value] : fields.items()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=", TextValue(value));
  }
  return text;
}

std::string Printable(absl::string_view text) {
  const std::string quoted = Encoded(std::string(text));
  // Every quote inside is escaped, so the backslash before it is never half of another escape.
  return absl::StrReplaceAll(absl::string_view(quoted).substr(1, quoted.size() - 2),
                             {{"\\\"", "\""}});
}

}  // namespace softlookup::server
