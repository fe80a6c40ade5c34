#ifndef SOFTLOOKUP_TESTS_TESTING_TOOL_PROCESS_H_
#define SOFTLOOKUP_TESTS_TESTING_TOOL_PROCESS_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace softlookup::testing {

// The tool in a process of its own, to be ended by a signal. Killed if the object goes before.
class ToolProcess {
 public:
  // Standard output is dropped. Standard error goes to the file `error`, if it has a name.
  explicit ToolProcess(std::vector<std::string> command, const std::string& error = "") {
    std::vector<char*> arguments;
    for (std::string& argument : command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!error.empty()) {
      posix_spawn_file_actions_addopen(&files, STDERR_FILENO, error.c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC, 0600);
    }
    EXPECT_EQ(posix_spawn(&pid_, arguments[0], &files, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&files);
  }
  ~ToolProcess() {
    if (pid_ > 0) End(SIGKILL);
  }
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

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
