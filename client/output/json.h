#ifndef SOFTLOOKUP_CLIENT_OUTPUT_JSON_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_JSON_H_

#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace softlookup::output {

// JSON whose members keep the order in which they are set. A number that JSON cannot hold, such as
// an infinity, prints as null.
using Json = nlohmann::ordered_json;

// Returns the double nearest to the shortest decimal number that reads back as `value`: 0.1 for
// 0.1f. So the result prints with no more digits than a float needs.
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

// Whether `text` is UTF-8, as all text in the wire contract must be.
bool IsUtf8(std::string_view text);

// Prints `json` on a line of its own. Replaces bytes that are not UTF-8 by U+FFFD. Escapes all
// control characters, even DEL and C1. JSON allows DEL and C1 unescaped, but a terminal may obey
// them.
void PrintJson(const Json& json, std::ostream* out);

}  // namespace softlookup::output

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_JSON_H_
