#ifndef SOFTLOOKUP_TESTS_TESTING_CHILD_PROCESS_H_
#define SOFTLOOKUP_TESTS_TESTING_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace softlookup::testing {

// File descriptors that a child process gets as its standard streams. -1: the parent's own.
struct StandardStreams {
  int in = -1;
  int out = -1;
  int err = -1;
};

// Starts the program at the path `command[0]`. The child is killed when the calling thread ends, so
// that a test that aborts leaves no child behind. Aborts if there is no such program.
pid_t StartChild(const std::vector<std::string>& command, const StandardStreams& streams);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_CHILD_PROCESS_H_
