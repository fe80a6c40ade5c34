#ifndef SOFTLOOKUP_TESTS_SERVER_CLUSTER_PEERS_FIXTURE_H_
#define SOFTLOOKUP_TESTS_SERVER_CLUSTER_PEERS_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/cluster/grpc_peers.h"
#include "server/cluster/peer_server.h"
#include "server/cluster/task_thread.h"
#include "softlookup/peers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::server {

inline std::string DigestOfDigit(char digit) { return std::string(64, digit); }

inline Entry EntryOf(std::uint64_t sequence, std::string bytes) {
  Entry entry;
  entry.epoch = 7;
  entry.sequence = sequence;
  entry.previous = DigestOfDigit('a');
  entry.digest = DigestOfDigit('b');
  entry.bytes = std::move(bytes);
  return entry;
}

// `size` bytes, of which no two neighbouring chunks are equal.
inline std::string PatternOf(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1'664'525 + 1'013'904'223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

inline void WriteFile(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

inline std::string ContentsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Answers as a test says.
struct ScriptedRequests final : PeerRequests {
  using StageDone = absl::AnyInvocable<void(absl::Status)>;
  using FetchDone = absl::AnyInvocable<void(absl::StatusOr<std::string>)>;

  void OnStage(Entry entry, StageDone done) override {
    on_stage(std::move(entry), std::move(done));
  }
  void OnFetch(std::uint64_t sequence, EntryDigest digest, FetchDone done) override {
    on_fetch(sequence, std::move(digest), std::move(done));
  }
  absl::Status CopyRecordsTo(const std::string& directory) override { return on_copy(directory); }

  std::function<void(Entry, StageDone)> on_stage = [](Entry, StageDone done) {
    done(absl::OkStatus());
  };
  std::function<void(std::uint64_t, EntryDigest, FetchDone)> on_fetch =
      [](std::uint64_t, const EntryDigest&, FetchDone done) { done(""); };
  std::function<absl::Status(const std::string&)> on_copy = [](const std::string&) {
    return absl::UnimplementedError("");
  };
};

// A GrpcPeers with a thread of its own.
class PeersOnThread {
 public:
  explicit PeersOnThread(PeerOptions options) {
    thread_.emplace([] {}, absl::Seconds(1));
    Do([&] {
      peers_ = std::make_unique<GrpcPeers>(
          std::move(options),
          [this](absl::AnyInvocable<void()> task) { thread_->Post(std::move(task)); });
    });
  }
  ~PeersOnThread() {
    if (thread_.has_value()) End();
  }

  // Destroys the GrpcPeers, then has the thread run all tasks and end.
  void End() {
    Do([this] { peers_.reset(); });
    thread_.reset();
  }
  void SetAddress(const std::string& node, const std::string& address) {
    Do([&] { peers_->SetAddress(node, address); });
  }
  std::future<absl::Status> Stage(const std::string& node, const Entry& entry) {
    auto answer = std::make_shared<std::promise<absl::Status>>();
    Stage(node, entry, [answer](absl::Status status) { answer->set_value(std::move(status)); });
    return answer->get_future();
  }
  void Stage(const std::string& node, const Entry& entry,
             absl::AnyInvocable<void(absl::Status)> done) {
    Do([&] {
      // Not before the function has returned.
      const auto returned = std::make_shared<bool>(false);
      peers_->Stage(node, entry, [returned, done = std::move(done)](absl::Status status) mutable {
        EXPECT_TRUE(*returned);
        done(std::move(status));
      });
      *returned = true;
    });
  }
  std::future<absl::StatusOr<std::string>> Fetch(const std::string& node, std::uint64_t sequence) {
    auto answer = std::make_shared<std::promise<absl::StatusOr<std::string>>>();
    Do([&] {
      peers_->Fetch(
          node, sequence, DigestOfDigit('b'),
          [answer](absl::StatusOr<std::string> result) { answer->set_value(std::move(result)); });
    });
    return answer->get_future();
  }

 private:
  void Do(absl::AnyInvocable<void()> act) {
    absl::Notification done;
    thread_->Post([&] {
      act();
      done.Notify();
    });
    done.WaitForNotification();
  }

  std::unique_ptr<GrpcPeers> peers_;
  std::optional<TaskThread> thread_;  // Until End().
};

// Node "b" of group "g" of cluster "c", and how node "a" calls it.
class PeersTest : public ::testing::Test {
 protected:
  void StartServer(
      std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials()) {
    auto started =
        PeerServer::Start({.add_port =
                               [&](grpc::ServerBuilder& builder) {
                                 builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
                               },
                           .name = {.cluster = "c", .group = "g", .node = "b"},
                           .scratch_directory = scratch()},
                          requests_);
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }
  std::string scratch() const { return directory_.path() + "/scratch"; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  static PeerOptions Caller(
      const std::string& group = "g",
      std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials()) {
    return {.cluster = "c", .group = group, .node = "a", .credentials = std::move(credentials)};
  }

  const testing::TemporaryDirectory directory_;
  ScriptedRequests requests_;
  int port_ = 0;
  std::unique_ptr<PeerServer> server_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_TESTS_SERVER_CLUSTER_PEERS_FIXTURE_H_
