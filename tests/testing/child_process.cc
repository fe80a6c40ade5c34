#include "tests/testing/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace softlookup::testing {
namespace {

// Makes `stream` a copy of `fd` that the program keeps. -1: leaves it as it is.
void Become(int stream, int fd) {
  if (fd < 0) return;
  if (fd == stream) {
    fcntl(fd, F_SETFD, 0);  // dup2() would leave it to be closed with the start of the program.
  } else {
    dup2(fd, stream);
  }
}

}  // namespace

pid_t StartChild(const std::vector<std::string>& command, const StandardStreams& streams) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  if (access(arguments[0], X_OK) != 0) {
    std::perror(arguments[0]);
    std::abort();
  }
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
  Become(STDIN_FILENO, streams.in);
  Become(STDOUT_FILENO, streams.out);
  Become(STDERR_FILENO, streams.err);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace softlookup::testing
