// A group of three replicas on three members of etcd, all of them processes, while something goes
// wrong every few seconds: what was acknowledged is there once, and the replicas stay equal.
//
// SOFTLOOKUP_GROUP_FAULT_SECONDS in the environment sets how long faults go on.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/testing/child_process.h"
#include "tests/testing/cutting_proxy.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/random.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

constexpr int kNodes = 3;
constexpr int kWriters = 3;
constexpr std::int64_t kBankRows = 20;
constexpr char kLog[] = "log";    // Rows are only appended.
constexpr char kBank[] = "bank";  // Each row replaces another one.

// How long faults go on.
absl::Duration FaultTime() {
  const char* const seconds = std::getenv("SOFTLOOKUP_GROUP_FAULT_SECONDS");
  return absl::Seconds(seconds == nullptr ? 40 : std::atoi(seconds));
}

// Lets time pass: between two faults, and between two attempts of a client. No verdict depends on
// it.
void LetPass(absl::Duration time) {
  const absl::Notification never;
  never.WaitForNotificationWithTimeout(time);
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

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

// A node, whose process comes and goes. The other nodes reach it through a proxy that cuts
// connections.
class Node {
 public:
  Node(std::string name, const std::string& parent, const EtcdMembers& etcd, std::uint64_t seed)
      : name_(std::move(name)),
        directory_(absl::StrCat(parent, "/", name_)),
        log_(absl::StrCat(directory_, ".txt")),
        address_(absl::StrCat("127.0.0.1:", FreePort())),
        peer_address_(absl::StrCat("127.0.0.1:", FreePort())),
        proxy_(peer_address_, {.seed = seed,
                               .cuts = 1'000'000,
                               .bytes_to_server_max = 4 << 20,
                               .bytes_to_client_max = 4 << 20}) {
    std::string members;
    for (const std::string& endpoint : etcd.endpoints()) {
      absl::StrAppend(&members, members.empty() ? "" : ",", endpoint);
    }
    command_ = {ServerBinary(),
                "--data-dir",
                directory_,
                "--listen",
                address_,
                "--http-listen",
                "127.0.0.1:0",
                "--cluster-etcd",
                members,
                "--cluster",
                "c",
                "--group",
                "g",
                "--node",
                name_,
                "--cluster-listen",
                peer_address_,
                "--advertise",
                proxy_.address(),
                "--threads",
                "1",
                "--shutdown-grace",
                "2"};
  }
  ~Node() { Stop(SIGKILL); }

  const std::string& name() const { return name_; }
  const std::string& address() const { return address_; }
  std::string log() const { return ContentsOf(log_); }
  bool is_running() const { return pid_ > 0; }

  void Start() {
    const int file = open(log_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    pid_ = StartChild(command_, {.out = file, .err = file});
    close(file);
  }
  void Signal(int signal) const {
    if (pid_ > 0) kill(pid_, signal);
  }
  void Stop(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    kill(pid_, SIGCONT);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Starts the process again if it has ended by itself. A replica that lacks what etcd says that it
  // has, or that is too far behind, ends, and begins without a directory.
  void StartIfEnded() {
    if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      ++ends_;
      Wipe();
    }
    if (pid_ <= 0) Start();
  }
  void Wipe() { std::filesystem::remove_all(directory_); }
  int ends() const { return ends_; }

  std::unique_ptr<v1::SoftLookup::Stub> NewStub() const {
    return v1::SoftLookup::NewStub(
        grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  }

 private:
  const std::string name_, directory_, log_, address_, peer_address_;
  CuttingProxy proxy_;
  std::vector<std::string> command_;
  pid_t pid_ = -1;
  int ends_ = 0;
};

// A client that tries node after node.
class Client {
 public:
  explicit Client(const std::vector<std::unique_ptr<Node>>& nodes) {
    for (const auto& node : nodes) stubs_.push_back(node->NewStub());
  }

  // Calls `call` at one node after another until one answers OK, or `stop` is set.
  bool Try(const std::atomic<bool>& stop,
           const std::function<grpc::Status(v1::SoftLookup::Stub&, grpc::ClientContext&)>& call) {
    while (!stop) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
      const grpc::Status status = call(*stubs_[next_], context);
      if (status.ok()) return true;
      last_error_ = status.error_message();
      next_ = (next_ + 1) % stubs_.size();
      if (next_ == 0) LetPass(absl::Milliseconds(50));
    }
    return false;
  }
  const std::string& last_error() const { return last_error_; }

 private:
  std::vector<std::unique_ptr<v1::SoftLookup::Stub>> stubs_;
  std::size_t next_ = 0;
  std::string last_error_;
};

void SetRow(float key, float value, v1::AppendRequest& request) {
  const auto set = [](float component, v1::Matrix& matrix) {
    matrix.set_rows(1);
    matrix.set_cols(1);
    matrix.mutable_values()->Clear();
    matrix.add_values(component);
  };
  set(key, *request.mutable_keys());
  set(value, *request.mutable_values());
}

float FloatOf(const v1::Matrix& matrix) {
  float component = 0;
  EXPECT_EQ(matrix.data().size(), sizeof component);
  std::memcpy(&component, matrix.data().data(), sizeof component);
  return component;
}

class GroupFaultsTest : public ::testing::Test {
 protected:
  GroupFaultsTest() : draw_(7) {
    for (int i = 0; i < kNodes; ++i) {
      nodes_.push_back(std::make_unique<Node>(std::string(1, static_cast<char>('a' + i)),
                                              parent_.path(), etcd_, 100 + i));
    }
  }

  // Has the tool change the group, at one node after another, until one has done so.
  void Ask(const std::string& command, const std::string& argument) {
    while (true) {
      for (const auto& node : nodes_) {
        if (RunCommand({ToolBinary(), "cluster", command, argument, "--server", node->address()})
                .exit_code == 0) {
          return;
        }
      }
    }
  }

  void StartGroup() {
    nodes_[0]->Start();
    Ask("add", "b");
    nodes_[1]->Start();
    Ask("add", "c");
    nodes_[2]->Start();
    Client client(nodes_);
    const std::atomic<bool> never = false;
    for (const char* store : {kLog, kBank}) {
      client.Try(never, [&](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
        v1::CreateStoreRequest request;
        request.mutable_store()->set_name(store);
        request.mutable_store()->set_key_dim(1);
        request.mutable_store()->set_value_dim(1);
        v1::Store response;
        const grpc::Status status = stub.CreateStore(&context, request, &response);
        return status.error_code() == grpc::StatusCode::ALREADY_EXISTS ? grpc::Status::OK : status;
      });
    }
    for (std::int64_t id = 0; id < kBankRows; ++id) {
      Append(client, kBank, "bank", static_cast<std::uint64_t>(id) + 1, 0,
             static_cast<std::uint64_t>(id), never);
    }
  }

  // Appends a row as the next of a writer, again and again until it is acknowledged.
  static bool Append(Client& client, const std::string& store, const std::string& writer,
                     std::uint64_t sequence, float value, std::optional<std::uint64_t> id,
                     const std::atomic<bool>& stop) {
    v1::AppendRequest request;
    request.set_store(store);
    request.set_writer(writer);
    request.set_sequence(sequence);
    if (id) {
      request.add_ids(*id);
      request.set_on_conflict(v1::ON_CONFLICT_REPLACE);
    }
    SetRow(static_cast<float>(sequence), value, request);
    return client.Try(stop, [&](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
      v1::AppendResponse response;
      return stub.Append(&context, request, &response);
    });
  }

  // Appends rows to both stores until `stop_` is set.
  void Write(int index) {
    Client client(nodes_);
    Draw draw(static_cast<std::uint64_t>(index) + 1);
    const std::string writer = absl::StrCat("w", index);
    for (std::uint64_t sequence = 1; !stop_; ++sequence) {
      while (pause_ && !stop_) LetPass(absl::Milliseconds(10));
      sent_[index] = sequence;
      if (!Append(client, kLog, writer, sequence, static_cast<float>(index), std::nullopt, stop_)) {
        return;
      }
      acknowledged_[index] = sequence;
      const auto id = static_cast<std::uint64_t>(draw.Int(0, kBankRows - 1));
      Append(client, kBank, writer, sequence, static_cast<float>(index), id, stop_);
    }
  }

  // Asks a node what it shows, until `stop_` is set: no revision has another number of live rows.
  void Read(int index) {
    const std::unique_ptr<v1::SoftLookup::Stub> stub = nodes_[index]->NewStub();
    while (!stop_) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
      v1::GetStoreRequest request;
      request.set_name(kBank);
      v1::Store store;
      if (!stub->GetStore(&context, request, &store).ok()) {
        LetPass(absl::Milliseconds(20));
        continue;
      }
      ++reads_[index];
      if (store.live_row_count() != static_cast<std::uint64_t>(kBankRows) &&
          store.revision() > static_cast<std::uint64_t>(kBankRows)) {
        absl::MutexLock lock(&mutex_);
        violations_.push_back(absl::StrCat(nodes_[index]->name(), " shows ", store.live_row_count(),
                                           " rows at revision ", store.revision()));
      }
    }
  }

  void Fault() {
    Node& node = *nodes_[draw_.Int(0, kNodes - 1)];
    const int member = static_cast<int>(draw_.Int(0, 3 - 1));
    const absl::Duration pause = absl::Seconds(1 + draw_.Int(0, 7 - 1));
    switch (draw_.Int(0, 8 - 1)) {
      case 0:
        ++faults_["node killed"];
        node.Stop(SIGKILL);
        break;
      case 1:
        ++faults_["node stopped"];
        node.Stop(SIGTERM);
        break;
      case 2:
        ++faults_["node suspended"];
        node.Signal(SIGSTOP);
        LetPass(pause);
        node.Signal(SIGCONT);
        break;
      case 3:
        // Two disks that are lost at once can take what was acknowledged.
        if (!AreEqual(AwaitShown(absl::Seconds(10)))) break;
        ++faults_["node's directory lost"];
        node.Stop(SIGKILL);
        node.Wipe();
        break;
      case 4:
        ++faults_["member suspended"];
        etcd_.Freeze(member);
        LetPass(pause);
        etcd_.Thaw(member);
        break;
      case 5:
        ++faults_["member killed"];
        etcd_.Kill(member);
        LetPass(absl::Seconds(1));
        etcd_.Start(member);
        break;
      case 6:
        ++faults_["primary moved"];
        RunCommand({ToolBinary(), "cluster", "move-leader", "--server", node.address()});
        break;
      case 7:
        ++faults_["two nodes killed"];
        node.Stop(SIGKILL);
        nodes_[draw_.Int(0, kNodes - 1)]->Stop(SIGKILL);
        break;
    }
  }

  static bool AreEqual(const std::vector<std::string>& shown) {
    return !shown[0].empty() && shown[0] == shown[1] && shown[1] == shown[2];
  }
  // Waits for up to `time` until all nodes show the same. Returns what they show.
  std::vector<std::string> AwaitShown(absl::Duration time) {
    const absl::Time deadline = absl::Now() + time;
    pause_ = true;
    while (true) {
      for (const auto& node : nodes_) node->StartIfEnded();
      std::vector<std::string> shown;
      for (const auto& node : nodes_) shown.push_back(Show(*node));
      if (AreEqual(shown) || absl::Now() >= deadline) {
        pause_ = false;
        return shown;
      }
      LetPass(absl::Milliseconds(100));
    }
  }

  // Returns the rows and the memories of both stores at a node, bit for bit; "" if it does not
  // answer.
  static std::string Show(const Node& node) {
    const std::unique_ptr<v1::SoftLookup::Stub> stub = node.NewStub();
    std::string shown;
    for (const char* store : {kLog, kBank}) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
      v1::ReadRowsRequest request;
      request.set_store(store);
      const auto reader = stub->ReadRows(&context, request);
      v1::ReadRowsResponse response;
      while (reader->Read(&response)) {
        for (const v1::Row& row : response.rows()) shown += row.SerializeAsString();
        absl::StrAppend(&shown, "@", response.revision());
      }
      if (!reader->Finish().ok()) return "";
      grpc::ClientContext memory_context;
      v1::GetMemoryRequest memory;
      memory.set_store(store);
      v1::Memory average;
      if (!stub->GetMemory(&memory_context, memory, &average).ok()) return "";
      shown += average.SerializeAsString();
    }
    return shown;
  }

  // Checks that the rows of the log are, writer by writer, those that were sent, without a gap and
  // once each, and that all acknowledged ones are there.
  void CheckLog() {
    const std::unique_ptr<v1::SoftLookup::Stub> stub = nodes_[0]->NewStub();
    grpc::ClientContext context;
    v1::ReadRowsRequest request;
    request.set_store(kLog);
    const auto reader = stub->ReadRows(&context, request);
    std::array<std::uint64_t, kWriters> last{};
    v1::ReadRowsResponse response;
    while (reader->Read(&response)) {
      for (const v1::Row& row : response.rows()) {
        const auto writer = static_cast<std::size_t>(FloatOf(row.value()));
        ASSERT_LT(writer, last.size());
        ASSERT_EQ(static_cast<std::uint64_t>(FloatOf(row.key())), ++last[writer])
            << "of writer " << writer;
      }
    }
    ASSERT_TRUE(reader->Finish().ok());
    for (int writer = 0; writer < kWriters; ++writer) {
      EXPECT_GE(last[writer], acknowledged_[writer]);
      EXPECT_LE(last[writer], sent_[writer]);
    }
  }

  Draw draw_;
  const TemporaryDirectory parent_;
  EtcdMembers etcd_{3};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> pause_ = false;  // Whether writers are to wait.
  std::array<std::atomic<std::uint64_t>, kWriters> sent_{}, acknowledged_{};
  std::array<std::atomic<std::uint64_t>, kNodes> reads_{};
  std::map<std::string, int> faults_;
  absl::Mutex mutex_;
  std::vector<std::string> violations_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(GroupFaultsTest, WhatWasAcknowledgedIsThereOnceAndReplicasAreEqual) {
  StartGroup();
  std::vector<std::thread> threads;
  for (int i = 0; i < kWriters; ++i) threads.emplace_back([this, i] { Write(i); });
  for (int i = 0; i < kNodes; ++i) threads.emplace_back([this, i] { Read(i); });
  const absl::Time end = absl::Now() + FaultTime();
  while (absl::Now() < end) {
    LetPass(absl::Seconds(3));
    for (const auto& node : nodes_) node->StartIfEnded();
    LetPass(absl::Seconds(2));
    Fault();
  }
  // Every writer goes on after the last fault.
  for (int i = 0; i < kWriters; ++i) {
    for (const std::uint64_t before = acknowledged_[i]; acknowledged_[i] <= before + 1;) {
      for (const auto& node : nodes_) node->StartIfEnded();
      LetPass(absl::Milliseconds(100));
    }
  }
  stop_ = true;
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> shown = AwaitShown(absl::InfiniteDuration());
  for (const auto& [fault, count] : faults_) std::cout << count << " times " << fault << "\n";
  for (int i = 0; i < kWriters; ++i) {
    std::cout << "writer " << i << ": " << acknowledged_[i] << " rows acknowledged\n";
  }
  for (int i = 0; i < kNodes; ++i) {
    std::cout << "node " << nodes_[i]->name() << ": " << reads_[i] << " reads, ended "
              << nodes_[i]->ends() << " times by itself\n";
    ASSERT_FALSE(shown[i].empty()) << nodes_[i]->log();
    EXPECT_EQ(shown[i], shown[0]);
  }
  CheckLog();
  absl::MutexLock lock(&mutex_);
  EXPECT_THAT(violations_, ::testing::IsEmpty());
}

}  // namespace
}  // namespace softlookup::testing
