#include "core/attention/head_query_round.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

namespace softlookup {

void HeadQueryRound::Begin() {
  collectors.clear();
  states.clear();
  queries.clear();
  sums.assign(static_cast<std::size_t>(size() * sums_stride), 0.0);
  candidates.assign(refs.size(), nullptr);
  for (std::int64_t q = 0; q < size(); ++q) {
    const HeadQueryRef& ref = RefOf(q);
    states.push_back(ref.task->head_queries().Begin(ref.number, collectors, SumsOf(q)));
    queries.push_back(states.back().query);
  }
}

void HeadQueryRound::Sort(absl::Span<const std::int64_t> order) {
  const auto sort = [order](auto& items) {
    auto sorted = std::remove_reference_t<decltype(items)>();
    sorted.reserve(items.size());
    for (const std::int64_t q : order) sorted.push_back(items[static_cast<std::size_t>(q)]);
    items = std::move(sorted);
  };
  sort(refs);
  sort(states);
  sort(queries);
  sort(candidates);
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
  if (!std::ranges::is_sorted(order)) Sort(order);
}

}  // namespace softlookup
