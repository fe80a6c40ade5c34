#include "tests/testing/child_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace softlookup::testing {

pid_t StartChild(const std::vector<std::string>& command, const StandardStreams& streams) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    std::perror("fork");
    std::abort();
  }
  if (pid > 0) return pid;
  // Another thread may have held a lock at the fork. So the child makes only calls that take none.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // The parent ended before the call above.
  if (streams.in >= 0) dup2(streams.in, STDIN_FILENO);
  if (streams.out >= 0) dup2(streams.out, STDOUT_FILENO);
  if (streams.err >= 0) dup2(streams.err, STDERR_FILENO);
  execv(arguments[0], arguments.data());
  std::perror(arguments[0]);
  _exit(127);
}

}  // namespace softlookup::testing
