#ifndef SOFTLOOKUP_TESTS_TESTING_TOOL_PROCESS_H_
#define SOFTLOOKUP_TESTS_TESTING_TOOL_PROCESS_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/testing/child_process.h"

namespace softlookup::testing {

// The tool in a process of its own, to be ended by a signal. Killed if the object goes before.
class ToolProcess {
 public:
  // Standard output is dropped. Standard error goes to the file `error`, if it has a name.
  explicit ToolProcess(const std::vector<std::string>& command, const std::string& error = "") {
    const int dropped = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int kept =
        error.empty() ? -1 : open(error.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pid_ = StartChild(command, {.out = dropped, .err = kept});
    close(dropped);
    if (kept >= 0) close(kept);
  }
  ~ToolProcess() {
    if (pid_ > 0) End(SIGKILL);
  }
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

  // Returns whether the process has ended by itself. End() must still be called.
  bool HasEnded() const {
    siginfo_t found = {};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &found, WEXITED | WNOHANG | WNOWAIT), 0);
    return found.si_pid == pid_;
  }
  // Sends `signal`. Returns what waitpid() says of the end.
  int End(int signal) {
    int status = 0;
    kill(pid_, signal);
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_TOOL_PROCESS_H_
