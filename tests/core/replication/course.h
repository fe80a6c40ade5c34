#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_COURSE_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_COURSE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "tests/core/replication/event_loop.h"

namespace softlookup::testing {

// How long a history is told, and how often something goes wrong in it. Most defects show soon
// after something went wrong, so short histories find nearly all mutants (simulation_mutants.py) in
// less CPU time than long ones. One in 16 is long, for what needs many entries or comes late.
struct Course {
  absl::Duration faulty;    // While things go wrong.
  absl::Duration healed;    // Then nothing does, but a process may still stand still for a while.
  double pace = 1;          // How often something goes wrong, relative to a long history.
  double slow_calls = 0;    // How likely a call of etcd is slow.
  bool is_watched = true;   // Whether etcd tells replicas of changes.
  bool is_long = false;     // Goes on for a while once all replicas have all entries.
  std::uint64_t slots = 8;  // Few, so that they are overwritten in a short history.
};

inline Course DrawCourse(EventLoop& loop) {
  if (loop.Below(16) == 0) {
    return {.faulty = absl::Seconds(90), .healed = absl::Seconds(60), .is_long = true};
  }
  return {.faulty = loop.Between(absl::Seconds(10), absl::Seconds(30)),
          .healed = loop.Between(absl::Seconds(5), absl::Seconds(15)),
          .pace = 3,
          .slow_calls = loop.Happens(0.5) ? 0.5 : 0,
          .is_watched = loop.Happens(0.5),
          .slots = loop.Happens(0.5) ? 4U : 8U};
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_COURSE_H_
