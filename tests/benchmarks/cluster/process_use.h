#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_CLUSTER_PROCESS_USE_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_CLUSTER_PROCESS_USE_H_

#include <sys/types.h>

#include <vector>

namespace softlookup::testing {

// Seconds of CPU that the processes have used so far.
double CpuSeconds(const std::vector<pid_t>& processes);
// MiB of memory that a process has now.
double ResidentMib(pid_t process);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_CLUSTER_PROCESS_USE_H_
