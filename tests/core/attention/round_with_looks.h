#ifndef SOFTLOOKUP_TESTS_CORE_ATTENTION_ROUND_WITH_LOOKS_H_
#define SOFTLOOKUP_TESTS_CORE_ATTENTION_ROUND_WITH_LOOKS_H_

#include <optional>

#include "core/attention/aligned_blocks.h"
#include "core/attention/head_query_order.h"
#include "core/attention/head_query_round.h"
#include "core/attention/look_choice.h"
#include "core/attention/round_looks.h"
#include "core/kernels/sum_values.h"
#include "tests/core/attention/pass_tasks.h"

namespace softlookup {

// A round of all head queries of some tasks, with the looks that it begins with.
struct RoundWithLooks {
  // `tasks` must outlive this object.
  explicit RoundWithLooks(PassTasks& tasks)
      : blocks(tasks.all()), order(tasks.all()), looks(blocks) {
    while (const std::optional<HeadQueryRef> next = order.Next()) round.refs.push_back(*next);
    round.sums_stride = kernels::PaddedValueDim(tasks[0].head_queries().head_value_dim());
    BeginRound(round);
    BeginLooks(round, order, looks);
  }

  const AlignedBlocks blocks;
  HeadQueryOrder order;
  HeadQueryRound round;
  RoundLooks looks;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_ATTENTION_ROUND_WITH_LOOKS_H_
