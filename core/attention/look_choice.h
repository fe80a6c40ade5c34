#ifndef SOFTLOOKUP_CORE_ATTENTION_LOOK_CHOICE_H_
#define SOFTLOOKUP_CORE_ATTENTION_LOOK_CHOICE_H_

#include "core/attention/head_queries.h"
#include "core/attention/head_query_order.h"
#include "core/attention/head_query_round.h"
#include "core/attention/round_looks.h"

namespace softlookup {

// Returns true if head queries of the task may gain from a first look.
bool MayHaveLooks(const HeadQueries& queries);

// Removes all of `looks`. Then begins a look for each of the round's head queries that may gain
// from one, in the round's order. Cuts the looks into tiles of head queries that share a scan.
// `round` must not change as long as the looks go on.
void BeginLooks(const HeadQueryRound& round, const HeadQueryOrder& order, RoundLooks& looks);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_LOOK_CHOICE_H_
