#include "client/cli/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace softlookup::cli {
namespace {

// Fewest bytes to insert, delete or replace to turn `a` into `b`.
std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // row[j]: from a's first i bytes to b's first j.
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(absl::string_view word, const std::vector<std::string>& known,
                        std::size_t edits_max) {
  std::string nearest;
  // A candidate must have a smaller distance than this. At first this is the bound of the header's
  // rule plus 1, then the smallest distance so far.
  std::size_t distance = std::min(edits_max, word.size() / 2) + 1;
  for (const std::string& candidate : known) {
    // The distance is at least the difference of the lengths. This test skips the slow
    // EditDistance() for most names of a long list.
    const std::size_t longer = std::max(candidate.size(), word.size());
    if (longer - std::min(candidate.size(), word.size()) >= distance) continue;
    const std::size_t candidate_distance = EditDistance(word, candidate);
    if (candidate_distance >= distance) continue;
    nearest = candidate;
    distance = candidate_distance;
  }
  return nearest;
}

std::string Suggestion(absl::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = NearestName(word, known);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

}  // namespace softlookup::cli
