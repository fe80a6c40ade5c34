#include "softlookup/store_ranges.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/cluster_name.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/status_macros.h"
#include "core/store/block_shape.h"

namespace softlookup {
namespace {

// A lookup merges eight blocks at a time. So ranges keep the merges of one machine within them
// (docs/decisions/0029-partial-answers.md).
constexpr std::int64_t kBlocksPerStep = 8;

// Returns ranges that begin where those of `cut` do, and where the nodes of `old` change, with the
// nodes that `old` has there. Both must begin at 0.
std::vector<StoreRange> WithNodesOf(const std::vector<StoreRange>& old,
                                    const std::vector<StoreRange>& cut) {
  std::vector<StoreRange> ranges;
  auto next_old = old.begin(), next_cut = cut.begin();
  const std::vector<std::string>* nodes = nullptr;
  while (next_old != old.end() || next_cut != cut.end()) {
    const bool at_old =
        next_cut == cut.end() || (next_old != old.end() && next_old->begin <= next_cut->begin);
    const std::uint64_t begin = at_old ? next_old->begin : next_cut->begin;
    bool is_cut = next_cut != cut.end() && next_cut->begin == begin;
    if (is_cut) ++next_cut;
    if (at_old) {
      is_cut = is_cut || *nodes != next_old->nodes;
      nodes = &(next_old++)->nodes;
    }
    if (is_cut) ranges.push_back({.begin = begin, .nodes = *nodes});
  }
  return ranges;
}

}  // namespace

std::uint64_t RangeStep(const StoreConfig& config) {
  return static_cast<std::uint64_t>(kBlocksPerStep * BlockRows(PanelShapeOf(config)));
}

absl::Status CheckRangeNodes(absl::string_view field, const std::vector<std::string>& nodes) {
  if (nodes.empty() || static_cast<std::int64_t>(nodes.size()) > kRangeNodeCountMax) {
    return InvalidOption(
        field, absl::StrCat("must have 1 to ", kRangeNodeCountMax, " nodes, not ", nodes.size()));
  }
  std::set<absl::string_view> names;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string name_field = absl::StrCat(field, "[", i, "]");
    if (!IsClusterName(nodes[i])) {
      constexpr std::size_t kShownBytes = 64;
      return InvalidOption(name_field,
                           absl::StrCat("\"", absl::CHexEscape(nodes[i].substr(0, kShownBytes)),
                                        "\" is not ", kClusterNameForm));
    }
    if (!names.insert(nodes[i]).second) {
      return InvalidOption(name_field, absl::StrCat("node ", nodes[i], " stands twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStoreRanges(absl::string_view field, const std::vector<StoreRange>& ranges,
                              const StoreConfig& config) {
  if (static_cast<std::int64_t>(ranges.size()) > kRangeCountMax) {
    return InvalidOption(field,
                         absl::StrCat("at most ", kRangeCountMax, " ranges, not ", ranges.size()));
  }
  const std::uint64_t step = RangeStep(config);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::uint64_t begin = ranges[i].begin;
    const std::string range = absl::StrCat(field, "[", i, "]");
    const std::string begin_field = absl::StrCat(range, ".begin");
    if (i == 0 && begin != 0) {
      return InvalidOption(begin_field, absl::StrCat("must be 0, not ", begin));
    }
    if (begin % step != 0) {
      return InvalidOption(begin_field,
                           absl::StrCat("must be a multiple of ", step, ", not ", begin));
    }
    if (i > 0 && begin <= ranges[i - 1].begin) {
      return InvalidOption(begin_field,
                           absl::StrCat("must be above ", ranges[i - 1].begin,
                                        ", where the range before begins, not ", begin));
    }
    SOFTLOOKUP_RETURN_IF_ERROR(CheckRangeNodes(absl::StrCat(range, ".nodes"), ranges[i].nodes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StoreRange>> EqualRanges(const StoreInfo& store, std::uint64_t count,
                                                    const std::vector<std::string>& nodes) {
  if (count < 1 || count > static_cast<std::uint64_t>(kRangeCountMax)) {
    return InvalidOption("range_count",
                         absl::StrCat("must be in [1, ", kRangeCountMax, "], not ", count));
  }
  std::vector<StoreRange> ranges;
  if (count == 1) return ranges;
  const std::uint64_t step = RangeStep(store.config);
  const std::uint64_t steps = store.row_count / step + (store.row_count % step != 0 ? 1 : 0);
  if (count > steps) {
    return InvalidOption("range_count",
                         absl::StrCat("ranges are cut in steps of ", step, " rows, and the ",
                                      store.row_count, " rows of the store have ", steps,
                                      " of them, so that they do not make ", count, " ranges"));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    ranges.push_back({.begin = steps * i / count * step, .nodes = {nodes[i % nodes.size()]}});
  }
  return store.config.ranges.empty() ? ranges : WithNodesOf(store.config.ranges, ranges);
}

absl::StatusOr<std::vector<StoreRange>> WithNodes(const StoreInfo& store, std::uint64_t begin,
                                                  std::vector<std::string> nodes) {
  std::vector<StoreRange> ranges = store.config.ranges;
  const auto found = std::ranges::find(ranges, begin, &StoreRange::begin);
  if (found == ranges.end()) {
    return InvalidOption("begin", ranges.empty()
                                      ? std::string("the store has no ranges; split it first")
                                      : absl::StrCat("no range of the store begins at ", begin));
  }
  found->nodes = std::move(nodes);
  return ranges;
}

}  // namespace softlookup
