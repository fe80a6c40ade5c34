#include "tests/faults/group_faults/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "tests/testing/child_process.h"
#include "tests/testing/closed_port.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {

Process::Process(std::string log) : log_(std::move(log)), program_(ServerBinary()) {}

std::string Process::log() const {
  std::ifstream file(log_);
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

void Process::Run(const std::vector<std::string>& command) {
  const int file = open(log_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  pid_ = StartChild(command, {.out = file, .err = file});
  close(file);
}

void Process::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

void Process::Stop(int signal) {
  if (pid_ <= 0) return;
  kill(pid_, signal);
  kill(pid_, SIGCONT);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::optional<int> Process::TakeEnd() {
  int status = 0;
  if (pid_ <= 0 || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string FreeAddress() { return ClosedPort().address(); }

}  // namespace softlookup::testing
