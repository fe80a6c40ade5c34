#include "core/attention/head_query_round.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/base/part_count.h"

namespace softlookup {
namespace {

// Head queries that a thread measures at a time, which takes some microseconds.
constexpr std::int64_t kMeasuredQueries = 32;

template <typename Item>
void SortItems(absl::Span<const std::int64_t> order, std::vector<Item>& items) {
  std::vector<Item> sorted;
  sorted.reserve(items.size());
  for (const std::int64_t q : order) sorted.push_back(items[static_cast<std::size_t>(q)]);
  items = std::move(sorted);
}

}  // namespace

void HeadQueryRound::Measure(const PassThreads& threads) {
  queries.resize(refs.size());
  threads.ForEach(PartCount(size(), kMeasuredQueries), [this](std::int64_t part) {
    const std::int64_t begin = part * kMeasuredQueries;
    for (std::int64_t q = begin; q < std::min(begin + kMeasuredQueries, size()); ++q) {
      const HeadQueryRef& ref = RefOf(q);
      queries[static_cast<std::size_t>(q)] = ref.task->head_queries().Measure(ref.number);
    }
  });
}

void HeadQueryRound::Begin() {
  SOFTLOOKUP_CHECK(queries.size() == refs.size()) << "the round is not measured";
  collectors.clear();
  states.clear();
  states.reserve(refs.size());
  sums.assign(static_cast<std::size_t>(size() * sums_stride), 0.0);
  candidates.assign(refs.size(), nullptr);
  for (std::int64_t q = 0; q < size(); ++q) {
    const HeadQueryRef& ref = RefOf(q);
    HeadQuery& query = queries[static_cast<std::size_t>(q)];
    states.push_back(ref.task->head_queries().Begin(ref.number, query, collectors, SumsOf(q)));
    query = states.back().query;
  }
}

void HeadQueryRound::Sort(absl::Span<const std::int64_t> order) {
  SortItems(order, refs);
  SortItems(order, states);
  SortItems(order, queries);
  SortItems(order, candidates);
  std::vector<double> sorted_sums;
  sorted_sums.reserve(sums.size());
  for (const std::int64_t q : order) {
    const double* const begin = SumsOf(q);
    sorted_sums.insert(sorted_sums.end(), begin, begin + sums_stride);
  }
  sums = std::move(sorted_sums);
}

void HeadQueryRound::SortByErrors() {
  const auto share_head = [](const HeadQueryRef& a, const HeadQueryRef& b) {
    const HeadQueries& of_task = a.task->head_queries();
    return a.task == b.task && of_task.HeadOf(a.number) == of_task.HeadOf(b.number);
  };
  std::vector<std::int64_t> order(refs.size());
  std::iota(order.begin(), order.end(), 0);
  for (auto begin = order.begin(); begin != order.end();) {
    const HeadQueryRef& first = RefOf(*begin);
    const auto end = std::find_if_not(begin, order.end(),
                                      [&](std::int64_t q) { return share_head(first, RefOf(q)); });
    if (!first.task->attention_task().options.causal) {
      std::ranges::stable_sort(begin, end, {}, [this](std::int64_t q) {
        return queries[static_cast<std::size_t>(q)].float32_errors.front();
      });
    }
    begin = end;
  }
  if (std::ranges::is_sorted(order)) return;
  SortItems(order, refs);
  SortItems(order, queries);
}

}  // namespace softlookup
