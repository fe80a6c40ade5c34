#include "tests/testing/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <string_view>

#include "tests/testing/child_process.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  }
  std::array<int, 2> ends;
  int read_end() const { return ends[0]; }
  int write_end() const { return ends[1]; }
};

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) std::abort();
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Names the directory of binaries that a sanitizer watches, to be tested in place of this build's.
constexpr char kSanitizedBin[] = "SOFTLOOKUP_SANITIZED_BIN";

// The binary under test that stands for `path`, this build's own.
std::string BinaryOf(const std::string& path) {
  const char* const directory = std::getenv(kSanitizedBin);
  return directory == nullptr ? path : directory + path.substr(path.rfind('/'));
}

std::string ReadLine(int fd) {
  std::string line;
  char c = 0;
  while (read(fd, &c, 1) == 1 && c != '\n') line.push_back(c);
  return line;
}

}  // namespace

// The node behind a router, and its etcd.
struct ServerProcess::Behind {
  Behind(std::vector<std::string> flags, const std::string& data_dir, const std::string& log)
      : etcd(EtcdOf(data_dir)) {
    if (data_dir.empty()) flags.insert(flags.end(), {"--data-dir", directory.path() + "/data"});
    flags.insert(flags.end(), {"--cluster-etcd", etcd->endpoints()[0], "--cluster", "c", "--group",
                               "g", "--node", "n", "--cluster-listen", "127.0.0.1:0"});
    node = std::make_unique<ServerProcess>(flags, log);
  }

  // The etcd that knows the node whose directory this is.
  static std::shared_ptr<EtcdMembers> EtcdOf(const std::string& data_dir) {
    if (data_dir.empty()) return std::make_shared<EtcdMembers>(1);
    static auto* const known = new std::map<std::string, std::shared_ptr<EtcdMembers>>;
    std::shared_ptr<EtcdMembers>& etcd = (*known)[data_dir];
    if (etcd == nullptr) etcd = std::make_shared<EtcdMembers>(1);
    return etcd;
  }

  const TemporaryDirectory directory;
  const std::shared_ptr<EtcdMembers> etcd;
  std::unique_ptr<ServerProcess> node;
};

ServerProcess::ServerProcess(const std::vector<std::string>& flags, const std::string& log) {
  const bool is_of_cluster = std::ranges::any_of(flags, [](const std::string& flag) {
    return flag.rfind("--cluster", 0) == 0 || flag.rfind("--router", 0) == 0;
  });
  if (std::getenv("SOFTLOOKUP_TEST_THROUGH_ROUTER") == nullptr || is_of_cluster) {
    Start(flags, log);
    return;
  }
  std::vector<std::string> shared, disk;
  std::string data_dir;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const std::string name = flags[i].substr(0, flags[i].find('='));
    const bool is_of_disk = name == "--data-dir" || name == "--backup-dir" || name == "--ephemeral";
    if (name != "--ephemeral") (is_of_disk ? disk : shared).push_back(flags[i]);
    if (!is_of_disk || name == "--ephemeral") continue;
    std::string value = flags[i].substr(std::min(flags[i].size(), name.size() + 1));
    if (value.empty()) disk.push_back(value = flags.at(++i));
    if (name == "--data-dir") data_dir = value;
  }
  std::vector<std::string> node = shared;
  node.insert(node.end(), disk.begin(), disk.end());
  behind_ = std::make_unique<Behind>(node, data_dir, log);
  shared.insert(shared.end(),
                {"--router", "--cluster-etcd", behind_->etcd->endpoints()[0], "--cluster", "c"});
  Start(shared, log);
}

void ServerProcess::Start(std::vector<std::string> flags, const std::string& log) {
  std::vector<std::string> command = {ServerBinary(), "--listen",    "127.0.0.1:0", "--http-listen",
                                      "127.0.0.1:0",  "--log-level", "error"};
  const auto given = [&flags](std::string_view name) {
    return std::any_of(flags.begin(), flags.end(),
                       [name](const std::string& flag) { return flag.rfind(name, 0) == 0; });
  };
  if (!given("--data-dir") && !given("--router")) command.push_back("--ephemeral");
  if (!given("--max-waiting-work")) command.insert(command.end(), {"--max-waiting-work", "60000"});
  if (!given("--shutdown-grace")) command.insert(command.end(), {"--shutdown-grace", "3600"});
  command.insert(command.end(), flags.begin(), flags.end());
  const Pipe out;
  const int err =
      log.empty() ? -1 : open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  pid_ = StartChild(command, {.out = out.write_end(), .err = err});
  close(out.write_end());
  if (err >= 0) close(err);
  const std::string line = ReadLine(out.read_end());
  close(out.read_end());
  std::smatch match;
  if (!std::regex_match(line, match,
                        std::regex("softlookup-server ready grpc=(\\S+:\\d+) http=(\\S+:\\d+)"))) {
    std::fprintf(stderr, "the server said \"%s\" instead of its ready line\n", line.c_str());
    std::abort();
  }
  grpc_address_ = match[1];
  http_address_ = match[2];
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) Stop(SIGKILL);
}

int ServerProcess::Stop(int signal) {
  if (signal != 0) kill(pid_, signal);
  const int exit_code = WaitFor(pid_);
  pid_ = -1;
  if (behind_ == nullptr) return exit_code;
  const int node_exit_code = behind_->node->Stop(signal);
  behind_.reset();
  return exit_code != 0 ? exit_code : node_exit_code;
}

CommandResult RunCommand(const std::vector<std::string>& command, const std::string& input) {
  const Pipe in, out, err;
  const pid_t pid =
      StartChild(command, {.in = in.read_end(), .out = out.write_end(), .err = err.write_end()});
  close(in.read_end());
  close(out.write_end());
  close(err.write_end());
  // All three at once: a program that fills one pipe must not wait for another to be emptied.
  fcntl(in.write_end(), F_SETFL, O_NONBLOCK);
  CommandResult result;
  std::size_t written = 0;
  std::array<pollfd, 3> fds = {
      {{in.write_end(), POLLOUT, 0}, {out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}}};
  const auto finish = [](pollfd& fd) {
    close(fd.fd);
    fd.fd = -1;
  };
  signal(SIGPIPE, SIG_IGN);
  while (fds[0].fd >= 0 || fds[1].fd >= 0 || fds[2].fd >= 0) {
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].fd >= 0 && fds[0].revents != 0) {
      const ssize_t count = write(fds[0].fd, input.data() + written, input.size() - written);
      if (count > 0) written += static_cast<std::size_t>(count);
      if (written == input.size() || (count < 0 && errno != EAGAIN)) finish(fds[0]);
    }
    for (int i = 1; i <= 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      std::array<char, 65536> buffer;
      const ssize_t count = read(fds[i].fd, buffer.data(), buffer.size());
      if (count > 0) {
        (i == 1 ? result.out : result.err).append(buffer.data(), static_cast<std::size_t>(count));
      } else {
        finish(fds[i]);
      }
    }
  }
  result.exit_code = WaitFor(pid);
  return result;
}

bool BinariesAreSanitized() { return std::getenv(kSanitizedBin) != nullptr; }

std::string ServerBinary() { return BinaryOf(SOFTLOOKUP_SERVER_BINARY); }
std::string ToolBinary() { return BinaryOf(SOFTLOOKUP_TOOL_BINARY); }

}  // namespace softlookup::testing
