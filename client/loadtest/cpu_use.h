#ifndef SOFTLOOKUP_CLIENT_LOADTEST_CPU_USE_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_CPU_USE_H_

namespace softlookup::loadtest {

// Return the CPU time used so far, in seconds: by this process, and by the calling thread.
double ProcessCpuSeconds();
double ThreadCpuSeconds();

// Returns how many cores this process may use. This is the number of cores it is bound to, or the
// quota of its container (cgroup v2) if that is less. At least 0.01.
double AvailableCores();

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_CPU_USE_H_
