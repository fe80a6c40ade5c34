#ifndef SOFTLOOKUP_CLIENT_LOADTEST_CPU_USE_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_CPU_USE_H_

namespace softlookup::loadtest {

// CPU time that has been used so far, in seconds: by this process, and by the calling thread.
double ProcessCpuSeconds();
double ThreadCpuSeconds();

// Cores that this process may use: those it is bound to, or its container's quota, if less.
double AvailableCores();

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_CPU_USE_H_
