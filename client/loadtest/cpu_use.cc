#include "client/loadtest/cpu_use.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace softlookup::loadtest {
namespace {

double SecondsOf(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace

double ProcessCpuSeconds() { return SecondsOf(CLOCK_PROCESS_CPUTIME_ID); }
double ThreadCpuSeconds() { return SecondsOf(CLOCK_THREAD_CPUTIME_ID); }

double AvailableCores() {
  cpu_set_t set;
  double cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                              : std::thread::hardware_concurrency();
  // This file of cgroup v2 has "QUOTA PERIOD" in microseconds, or "max PERIOD" if there is no
  // quota.
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (quota_file >> quota >> period && quota > 0 && period > 0) {
    cores = std::min(cores, quota / period);
  }
  return std::max(cores, 0.01);
}

}  // namespace softlookup::loadtest
