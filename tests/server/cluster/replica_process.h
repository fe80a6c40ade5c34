#ifndef SOFTLOOKUP_TESTS_SERVER_CLUSTER_REPLICA_PROCESS_H_
#define SOFTLOOKUP_TESTS_SERVER_CLUSTER_REPLICA_PROCESS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/cluster/peer_credentials.h"
#include "server/cluster/peer_server.h"
#include "server/cluster/replica_node.h"
#include "server/cluster/seeding.h"
#include "softlookup/replicated_engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {

// What a process of a server is to the other nodes of its group: an engine that is a replica, on a
// real etcd, which other replicas reach by a real socket.
class ReplicaProcess {
 public:
  // Does not wait for anything but a seed.
  ReplicaProcess(const testing::EtcdMembers& members, const std::string& directory,
                 const std::string& node = "n", const std::string& group = "g")
      : name_{.cluster = "c", .group = group, .node = node},
        node_({.endpoints = members.endpoints(), .credentials = grpc::InsecureChannelCredentials()},
              peers_, [](const std::string&) {}) {
    EXPECT_THAT(
        SeedIfNew(directory, name_, peers_, /*may_found=*/true, node_, [] { return false; }),
        testing::IsOk());
    absl::StatusOr<ReplicatedEngine> opened =
        OpenReplicated({.thread_count = 1}, directory,
                       {.name = name_,
                        .on_failure = [this](const absl::Status&) { failed_.Notify(); },
                        .slots = 64},
                       node_);
    EXPECT_THAT(opened.status(), testing::IsOk());
    replica_ = *std::move(opened);
    int port = 0;
    auto server = PeerServer::Start({.add_port =
                                         [&port](grpc::ServerBuilder& builder) {
                                           builder.AddListeningPort(
                                               "127.0.0.1:0", PeerServerCredentials({}), &port);
                                         },
                                     .name = name_,
                                     .scratch_directory = directory + "/seed-outgoing"},
                                    *replica_.replication);
    EXPECT_THAT(server.status(), testing::IsOk());
    server_ = *std::move(server);
    replica_.replication->Advertise(absl::StrCat("127.0.0.1:", port));
  }

  // Waits until this replica is ready, or can never be.
  absl::Status AwaitReady() {
    while (true) {
      const absl::Status status = replica_.replication->AwaitReady(absl::Seconds(1));
      if (!absl::IsDeadlineExceeded(status)) return status;
    }
  }
  void Load() {
    EXPECT_THAT(AwaitReady(), testing::IsOk());
    NoObserver observer;
    EXPECT_THAT(replica_.engine->Load(observer), testing::IsOk());
  }
  void AwaitFailure() { failed_.WaitForNotification(); }

  Engine& engine() { return *replica_.engine; }
  Replication& replication() { return *replica_.replication; }

  // Appends a row of the writer "w", whose value is `sequence`.
  absl::StatusOr<AppendResult> Append(std::uint64_t sequence) {
    const float value = static_cast<float>(sequence);
    const MatrixView view{&value, 1, 1};
    return testing::AppendAndWait(
        engine(),
        {.store = "s", .keys = view, .values = view, .writer = "w", .sequence = sequence});
  }
  // Appends it again and again until it is acknowledged, as clients of writers do.
  void AppendPatiently(std::uint64_t sequence) {
    while (!Append(sequence).ok()) ASSERT_THAT(AwaitReady(), testing::IsOk());
  }
  std::vector<float> Values() {
    absl::StatusOr<std::unique_ptr<RowReader>> reader = engine().ReadRows("s", {});
    EXPECT_THAT(reader.status(), testing::IsOk());
    std::vector<float> values;
    for (const Row& row : (*reader)->Next(/*count_max=*/10'000)) values.push_back(row.value[0]);
    return values;
  }
  // Waits until this replica shows the store "s" at `revision` or a later one.
  void AwaitRevision(std::uint64_t revision) {
    EXPECT_TRUE(testing::AwaitThat([&] {
      const absl::StatusOr<StoreInfo> info = engine().GetStore("s");
      return info.ok() && info->revision >= revision;
    }));
  }

 private:
  class NoObserver final : public LoadObserver {
   public:
    void OnDamage(const absl::Status& damage) override { ADD_FAILURE() << damage; }
    void OnDiskKept(const absl::Status& why) override { ADD_FAILURE() << why; }
  };

  const ReplicaName name_;
  const PeerOptions peers_{.cluster = name_.cluster,
                           .group = name_.group,
                           .node = name_.node,
                           .credentials = PeerChannelCredentials({})};
  absl::Notification failed_;
  ReplicaNode node_;
  ReplicatedEngine replica_;
  std::unique_ptr<PeerServer> server_;
};

// Values() once the writes 1 to `last` are there.
inline std::vector<float> UpTo(std::uint64_t last) {
  std::vector<float> values;
  for (std::uint64_t i = 1; i <= last; ++i) values.push_back(static_cast<float>(i));
  return values;
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_TESTS_SERVER_CLUSTER_REPLICA_PROCESS_H_
