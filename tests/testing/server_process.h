#ifndef SOFTLOOKUP_TESTS_TESTING_SERVER_PROCESS_H_
#define SOFTLOOKUP_TESTS_TESTING_SERVER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace softlookup::testing {

// The real server binary on free ports of the loopback interface. Killed when the object goes.
//
// If the environment variable SOFTLOOKUP_TEST_THROUGH_ROUTER is set, a server that is no node
// becomes a router in front of one that is: the only node of a cluster with a real etcd. All flags
// are for both, except those of directories, which are the node's. Servers on one directory share
// the etcd. pid() is the router's.
class ServerProcess {
 public:
  // Starts the server with `flags` and free ports, and waits for its ready line. Aborts the test
  // program if that does not come. Adds --ephemeral if `flags` have neither --data-dir nor
  // --router. Adds a
  // --max-waiting-work of a minute, so that no slow machine refuses work, and a --shutdown-grace of
  // an hour, so that a test hangs if a stop waits for it, unless `flags` have them. Standard error
  // goes to the file `log`, if it has a name.
  explicit ServerProcess(const std::vector<std::string>& flags = {}, const std::string& log = "");
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }
  pid_t pid() const { return pid_; }

  // Sends `signal`, unless it is 0, and waits for the end: the exit code, or 128 + the signal that
  // ended it. SIGKILL is a crash.
  int Stop(int signal);

 private:
  struct Behind;

  // Starts the server with all of `flags`.
  void Start(std::vector<std::string> flags, const std::string& log);

  std::unique_ptr<Behind> behind_;  // What a router is in front of. Null: this is no such router.
  pid_t pid_ = -1;
  std::string grpc_address_;
  std::string http_address_;
};

struct CommandResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// Runs `command` with `input` on standard input and waits for it. command[0] is a path.
CommandResult RunCommand(const std::vector<std::string>& command, const std::string& input = "");

// Whether a sanitizer watches the binaries under test, so that bounds on memory say nothing.
bool BinariesAreSanitized();

// Paths of the binaries under test: this build's, or those in the directory that the environment
// variable SOFTLOOKUP_SANITIZED_BIN names.
std::string ServerBinary();
std::string ToolBinary();

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_SERVER_PROCESS_H_
