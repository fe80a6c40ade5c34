#include "tests/faults/group_faults/node.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/testing/child_process.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {
namespace {

// Each connection of a link is cut after some bytes.
CuttingProxy::Options Cuts(std::uint64_t seed) {
  return {.seed = seed,
          .cuts = 1'000'000,
          .bytes_to_server_max = 4 << 20,
          .bytes_to_client_max = 4 << 20};
}

// Returns a port of the loopback interface that nothing listens on.
int FreePort() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(descriptor);
  return ntohs(address.sin_port);
}

}  // namespace

Node::Node(const std::string& name, std::string parent, const std::vector<std::string>& etcd,
           std::uint64_t seed)
    : name_(name),
      parent_(std::move(parent)),
      log_(absl::StrCat(parent_, "/", name_, ".txt")),
      address_(absl::StrCat("127.0.0.1:", FreePort())),
      peer_address_(absl::StrCat("127.0.0.1:", FreePort())),
      peer_link_(peer_address_, Cuts(seed)) {
  for (const std::string& member : etcd) {
    etcd_links_.push_back(std::make_unique<CuttingProxy>(member, Cuts(++seed)));
  }
}

std::string Node::log() const {
  std::ifstream file(log_);
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

std::unique_ptr<v1::SoftLookup::Stub> Node::NewStub() const {
  return v1::SoftLookup::NewStub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
}

void Node::Start() {
  const auto address_of = [](std::string* out, const auto& link) { *out += link->address(); };
  const int file = open(log_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  pid_ = StartChild({ServerBinary(),
                     "--data-dir",
                     directory(),
                     "--listen",
                     address_,
                     "--http-listen",
                     "127.0.0.1:0",
                     "--cluster-etcd",
                     absl::StrJoin(etcd_links_, ",", address_of),
                     "--cluster",
                     "c",
                     "--group",
                     "g",
                     "--node",
                     name_,
                     "--cluster-listen",
                     peer_address_,
                     "--advertise",
                     peer_link_.address(),
                     "--threads",
                     "1",
                     "--shutdown-grace",
                     "2"},
                    {.out = file, .err = file});
  close(file);
}

void Node::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

void Node::Stop(int signal) {
  if (pid_ <= 0) return;
  kill(pid_, signal);
  kill(pid_, SIGCONT);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::optional<int> Node::TakeEnd() {
  int status = 0;
  if (pid_ <= 0 || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Node::Wipe() const { std::filesystem::remove_all(directory()); }

void Node::Rename(const std::string& name) { name_ = name; }

}  // namespace softlookup::testing
