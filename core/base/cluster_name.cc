#include "core/base/cluster_name.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"

namespace softlookup {

bool IsClusterName(absl::string_view text) {
  constexpr std::size_t kBytesMax = 64;
  return !text.empty() && text.size() <= kBytesMax && std::ranges::all_of(text, [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace softlookup
