#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_PINNED_THREADS_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_PINNED_THREADS_H_

#include "absl/functional/function_ref.h"

namespace softlookup::testing {

// Calls work(t) once for every t in [0, thread_count), each on a new thread that stays on one CPU.
// Returns the seconds from when all threads stand ready until the last one is done: starting them
// is not part of it.
double SecondsOnPinnedThreads(int thread_count, absl::FunctionRef<void(int)> work);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_PINNED_THREADS_H_
