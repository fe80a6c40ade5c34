#ifndef SOFTLOOKUP_CLIENT_OUTPUT_JSON_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_JSON_H_

#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace softlookup::tool {

// Keeps the order in which members are set. A number that JSON cannot hold (an infinity) prints as
// null.
using Json = nlohmann::ordered_json;

// The double that prints with the fewest digits that read back as `value`: 0.1f is 0.1.
inline double Shortest(float value) {
  char text[32];
  const auto written = std::to_chars(std::begin(text), std::end(text), value);
  double result = value;
  std::from_chars(text, written.ptr, result);
  return result;
}

inline Json ToJson(absl::Span<const float> vector) {
  Json json = Json::array();
  for (const float value : vector) json.push_back(Shortest(value));
  return json;
}

// Whether the contract can carry `text`.
bool IsUtf8(std::string_view text);

// A command prints one object on one line. Text that is not UTF-8 is replaced, not refused. Control
// characters are escaped, DEL and C1 too, which JSON would allow and a terminal may obey.
void PrintJson(const Json& json, std::ostream* out);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_JSON_H_
