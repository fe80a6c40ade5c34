#include "server/rpc/time_slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace softlookup::server {
namespace {

// The shortest slice that Linux takes, in nanoseconds.
constexpr std::uint64_t kSliceNanoseconds = 100'000;

// The first version of the kernel's `struct sched_attr`, from linux/sched/types.h. Debian 12's C
// library does not declare it.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // The time slice, for SCHED_OTHER, in nanoseconds.
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

}  // namespace

void AskForShortTimeSlices() {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = kSliceNanoseconds;
  static_cast<void>(syscall(SYS_sched_setattr, 0, &attributes, 0));
}

}  // namespace softlookup::server
