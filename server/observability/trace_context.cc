#include "server/observability/trace_context.h"

#include <algorithm>

namespace softlookup::server {
namespace {

// The header is version "-" trace-id "-" parent-id "-" trace-flags.
constexpr std::size_t kVersionDigits = 2, kTraceIdDigits = 32, kParentIdDigits = 16,
                      kFlagDigits = 2;

// Takes `count` lowercase hexadecimal digits off the front of `text` and returns them. Returns an
// empty view and takes nothing if `text` does not begin with them.
absl::string_view TakeDigits(absl::string_view& text, std::size_t count) {
  const absl::string_view digits = text.substr(0, count);
  const bool are_digits = std::all_of(digits.begin(), digits.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (digits.size() < count || !are_digits) return {};
  text.remove_prefix(count);
  return digits;
}

bool TakeDash(absl::string_view& text) {
  if (text.empty() || text.front() != '-') return false;
  text.remove_prefix(1);
  return true;
}

// Whether `digits` has no digit but 0. Also true of the empty view that TakeDigits() returns if it
// finds no digits.
bool IsZero(absl::string_view digits) {
  return std::all_of(digits.begin(), digits.end(), [](char c) { return c == '0'; });
}

}  // namespace

absl::string_view TraceIdIn(absl::string_view header) {
  const absl::string_view version = TakeDigits(header, kVersionDigits);
  if (version.empty() || version == "ff" || !TakeDash(header)) return {};
  const absl::string_view trace_id = TakeDigits(header, kTraceIdDigits);
  if (IsZero(trace_id) || !TakeDash(header)) return {};
  const absl::string_view parent_id = TakeDigits(header, kParentIdDigits);
  if (IsZero(parent_id) || !TakeDash(header)) return {};
  if (TakeDigits(header, kFlagDigits).empty()) return {};
  // Versions above 00 may append further fields after a dash.
  const bool ends_well = version == "00" ? header.empty() : header.empty() || header[0] == '-';
  return ends_well ? trace_id : absl::string_view();
}

absl::string_view TraceIdOf(const grpc::ServerContextBase& context) {
  const auto [begin, end] = context.client_metadata().equal_range("traceparent");
  if (begin == end || std::next(begin) != end) return {};
  return TraceIdIn({begin->second.data(), begin->second.size()});
}

}  // namespace softlookup::server
