#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_CONTENTS_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_CONTENTS_H_

#include "absl/time/time.h"
#include "tests/faults/group_faults/group.h"
#include "tests/faults/group_faults/traffic.h"

namespace softlookup::testing {

// Waits until all nodes show the same rows and memories of all stores, bit for bit. Starts those
// that have no process. Writers pause meanwhile. Returns false if it takes longer than `time`.
bool AwaitEqual(Group& group, Traffic& traffic, absl::Duration time);

// Returns whether a node or the router answers a lookup now.
bool Answers(v1::SoftLookup::Stub& stub);
// Returns whether all nodes and the router do.
bool AllAnswer(const Group& group);

// These check the rows at the first node once the traffic has ended.
//
// The rows of the log are, writer by writer, those that were sent, without a gap and once each, and
// all acknowledged ones are there.
void CheckLog(const Group& group, const Traffic& traffic);
// Batches that were acknowledged are there once and whole, those that were refused are not there,
// and those of which nobody knows are there whole or not at all.
void CheckBatches(const Group& group, const Traffic& traffic);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_CONTENTS_H_
