#include "client/tool/range_moves.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/status_macros.h"

namespace softlookup::tool {
namespace {

using admin::v1::StoreRange;
using admin::v1::StoreRanges;

// How often the tool asks whether a node has loaded a range, and how often it says so.
constexpr absl::Duration kAskInterval = absl::Milliseconds(200);
constexpr absl::Duration kNoteInterval = absl::Seconds(5);
// As many nodes as a range may have.
constexpr std::size_t kNodesMax = 5;

bool Has(const std::vector<std::string>& nodes, const std::string& node) {
  return std::ranges::find(nodes, node) != nodes.end();
}

// The range that begins at `begin`, or null.
const StoreRange* FindRange(const StoreRanges& ranges, std::uint64_t begin) {
  const auto found = std::ranges::find(ranges.ranges(), begin, &StoreRange::begin);
  return found == ranges.ranges().end() ? nullptr : &*found;
}

// Bytes of a store's rows at each node, while moves are planned.
class Loads {
 public:
  Loads(const StoreRanges& ranges, const std::vector<std::string>& nodes) : wanted_(nodes) {
    for (const std::string& node : nodes) bytes_[node] = 0;
    for (const StoreRange& range : ranges.ranges()) {
      std::vector<std::string>& names = nodes_[range.begin()];
      names.assign(range.nodes().begin(), range.nodes().end());
      sizes_[range.begin()] = static_cast<std::int64_t>(range.byte_size());
      for (const std::string& node : names) bytes_[node] += sizes_[range.begin()];
    }
  }

  const std::map<std::uint64_t, std::vector<std::string>>& nodes() const { return nodes_; }

  // Makes the next move: false if there is none that makes the loads more equal.
  bool MoveOne() {
    std::optional<Candidate> best;
    for (const auto& [begin, names] : nodes_) {
      for (const std::string& from : names) {
        for (const std::string& to : wanted_) {
          if (!Has(names, to)) Consider({.begin = begin, .from = from, .to = to}, best);
        }
      }
    }
    if (!best.has_value()) return RemoveOne();
    std::ranges::replace(nodes_[best->begin], best->from, best->to);
    bytes_[best->from] -= sizes_[best->begin];
    bytes_[best->to] += sizes_[best->begin];
    return true;
  }

 private:
  struct Candidate {
    std::uint64_t begin = 0;
    std::string from, to;
    bool leaves = false;    // `from` is to have no range.
    std::int64_t gain = 0;  // By how much the larger of the two loads falls.
  };

  void Consider(Candidate candidate, std::optional<Candidate>& best) {
    const std::int64_t size = sizes_[candidate.begin];
    const std::int64_t from = bytes_[candidate.from], to = bytes_[candidate.to];
    candidate.leaves = !Has(wanted_, candidate.from);
    candidate.gain = candidate.leaves ? std::numeric_limits<std::int64_t>::max() - (to + size)
                                      : std::max(from, to) - std::max(from - size, to + size);
    if (candidate.gain <= 0) return;
    if (best.has_value() &&
        std::pair(best->leaves, best->gain) >= std::pair(candidate.leaves, candidate.gain)) {
      return;
    }
    best = std::move(candidate);
  }

  // Takes a range from a node that is to have none, if all others have it already.
  bool RemoveOne() {
    for (auto& [begin, names] : nodes_) {
      const auto unwanted =
          std::ranges::find_if(names, [this](const auto& name) { return !Has(wanted_, name); });
      if (unwanted == names.end() || names.size() == 1) continue;
      bytes_[*unwanted] -= sizes_[begin];
      names.erase(unwanted);
      return true;
    }
    return false;
  }

  const std::vector<std::string> wanted_;
  std::map<std::string, std::int64_t> bytes_;
  std::map<std::uint64_t, std::int64_t> sizes_;              // By the begin of the range.
  std::map<std::uint64_t, std::vector<std::string>> nodes_;  // By the begin of the range.
};

// Waits until one of `nodes` has the rows of the range in RAM that begins at `begin`. Assumes that
// all servers have `ranges`, or will have them. An error if none of the nodes answers.
absl::Status AwaitRows(Client& client, const StoreRanges& ranges, std::uint64_t begin,
                       const std::vector<std::string>& nodes, const Session& session) {
  absl::Time next_note = absl::Now() + kNoteInterval;
  for (;;) {
    absl::Status error;
    bool is_answered = false;
    const bool is_noted = absl::Now() >= next_note;
    for (const std::string& node : nodes) {
      const absl::StatusOr<StoreRanges> answer = client.GetRanges(ranges.store(), node);
      if (!answer.ok()) {
        error = answer.status();
        continue;
      }
      is_answered = true;
      const StoreRange* const range = FindRange(*answer, begin);
      if (range == nullptr && answer->revision() >= ranges.revision()) {
        return absl::AbortedError(absl::StrCat("The store was cut in another way meanwhile: no ",
                                               "range of it begins at ", begin));
      }
      // The node may not have made the change yet that gives it the range.
      const bool is_named =
          range != nullptr && std::ranges::find(range->nodes(), node) != range->nodes().end();
      if (is_named && range->resident_count() >= range->row_count()) return absl::OkStatus();
      if (is_noted) {
        *session.err << "waiting for node " << node << ", which has "
                     << (range == nullptr ? 0 : range->resident_count()) << " of "
                     << (range == nullptr ? 0 : range->row_count())
                     << " rows in RAM; if it does not get more, its log may say why\n";
      }
    }
    if (!is_answered) return error;
    if (is_noted) next_note += kNoteInterval;
    absl::SleepFor(kAskInterval);
  }
}

}  // namespace

std::vector<RangeMove> MovesToBalance(const StoreRanges& ranges,
                                      const std::vector<std::string>& nodes) {
  Loads loads(ranges, nodes);
  while (loads.MoveOne()) {
  }
  std::vector<RangeMove> moves;
  for (const StoreRange& range : ranges.ranges()) {
    RangeMove move{.begin = range.begin(), .nodes = loads.nodes().at(range.begin())};
    if (!std::ranges::equal(move.nodes, range.nodes())) moves.push_back(std::move(move));
  }
  return moves;
}

absl::StatusOr<StoreRanges> MakeMove(Client& client, const std::string& store,
                                     const RangeMove& move, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(StoreRanges ranges, client.GetRanges(store));
  const StoreRange* const range = FindRange(ranges, move.begin);
  if (range == nullptr) return client.MoveRange(store, move.begin, move.nodes);  // The error.
  std::vector<std::string> all(range->nodes().begin(), range->nodes().end());
  std::vector<std::string> added;
  for (const std::string& node : move.nodes) {
    if (!Has(all, node)) added.push_back(node);
  }
  all.insert(all.end(), added.begin(), added.end());
  if (all.size() > kNodesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The range at ", move.begin, " would have ", all.size(), " nodes until the new ones have ",
        "its rows, and may have ", kNodesMax, "; take it from some nodes first"));
  }
  if (!added.empty()) {
    CLIENT_RETURN_IF_ERROR(client.MoveRange(store, move.begin, all, /*dry_run=*/true).status());
    // The server may be one that cannot ask the nodes whether they have loaded the range.
    for (const std::string& node : added) {
      CLIENT_RETURN_IF_ERROR(client.GetRanges(store, node).status());
    }
    CLIENT_ASSIGN_OR_RETURN(ranges, client.MoveRange(store, move.begin, all));
    for (const std::string& node : added) {
      CLIENT_RETURN_IF_ERROR(AwaitRows(client, ranges, move.begin, {node}, session));
    }
  }
  if (all.size() == move.nodes.size()) return ranges;  // No node loses the range.
  if (added.empty()) {
    // A move that was cut short may have given it to nodes that are still loading it.
    CLIENT_RETURN_IF_ERROR(AwaitRows(client, ranges, move.begin, move.nodes, session));
  }
  return client.MoveRange(store, move.begin, move.nodes);
}

}  // namespace softlookup::tool
