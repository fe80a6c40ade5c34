#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_PROCESS_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace softlookup::testing {

// A process that comes and goes.
class Process {
 public:
  // What its processes say goes to the end of the file `log`.
  explicit Process(std::string log);
  ~Process() { Stop(SIGKILL); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // What the processes have said so far.
  std::string log() const;
  void Signal(int signal) const;
  // Sends `signal` and waits for the end. Does nothing if there is no process.
  void Stop(int signal);
  bool is_running() const { return pid_ > 0; }
  // Of the process, if there is one.
  pid_t pid() const { return pid_; }
  // The program of the processes that are started from now on. At first the server under test.
  void SetProgram(const std::string& path) { program_ = path; }
  // Returns the exit code of a process that has ended by itself, or 128 + the signal that ended it.
  // nullopt: it runs, or there is none.
  std::optional<int> TakeEnd();

 protected:
  const std::string& program() const { return program_; }
  // Starts the program at the path `command[0]`.
  void Run(const std::vector<std::string>& command);

 private:
  const std::string log_;
  std::string program_;
  pid_t pid_ = -1;
};

// Returns HOST:PORT of a port of the loopback interface that nothing listens on.
std::string FreeAddress();

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_PROCESS_H_
