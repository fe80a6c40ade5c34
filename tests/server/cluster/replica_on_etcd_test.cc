// The protocol of replicas on a real etcd, whose members are killed and stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "core/replication/replica.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster/task_thread.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/passing_time.h"

namespace softlookup::server {
namespace {

using ::testing::Contains;
using testing::EtcdMembers;

// Keeps entries in RAM. All functions are called on the thread of its node.
class RamStore final : public EntryStore {
 public:
  absl::Status Stage(const Entry& entry) override {
    staged_[{entry.sequence, entry.epoch}] = entry;
    return absl::OkStatus();
  }
  std::optional<Entry> Staged(std::uint64_t sequence, std::uint64_t epoch) const override {
    const auto found = staged_.find({sequence, epoch});
    return found == staged_.end() ? std::nullopt : std::optional(found->second);
  }
  absl::StatusOr<Entry> Find(std::uint64_t sequence, const EntryDigest& digest) const override {
    for (const auto& [key, entry] : staged_) {
      if (key.first == sequence && entry.digest == digest) return entry;
    }
    return absl::NotFoundError("no such entry");
  }
  absl::Status Apply(const Entry& entry) override {
    EXPECT_EQ(entry.sequence, bytes.size() + 1);
    bytes.push_back(entry.bytes);
    applied_ = {.sequence = entry.sequence, .digest = entry.digest};
    return absl::OkStatus();
  }
  absl::Status Sync() override { return absl::OkStatus(); }
  void Trim(std::uint64_t sequence) override {
    staged_.erase(staged_.begin(), staged_.lower_bound({sequence, 0}));
  }
  AppliedEntry applied() const override { return applied_; }

  std::vector<std::string> bytes;  // Of the entries that were applied, in order.

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, Entry> staged_;  // By sequence and epoch.
  AppliedEntry applied_;
};

class Node;
using Nodes = std::array<std::unique_ptr<Node>, 3>;

// A replica on a thread of its own. Other nodes call it by its thread.
class Node {
 public:
  Node(std::string name, const EtcdMembers& members, Nodes& nodes)
      : name_(std::move(name)), nodes_(nodes) {
    Do([&] {
      etcd_ = std::make_unique<EtcdClient>(
          EtcdOptions{.endpoints = members.endpoints(),
                      .credentials = grpc::InsecureChannelCredentials()},
          [this](absl::AnyInvocable<void()> task) { thread_.Post(std::move(task)); });
      replica_ = std::make_unique<Replica>(
          ReplicaOptions{.node = name_, .keys = GroupKeys("c", "g")}, *etcd_, peers_, store_,
          Clock::Steady(), [this] { return absl::StrCat(name_, ++nonces_); });
      etcd_->Watch(GroupKeys("c", "g").watched_begin(), GroupKeys("c", "g").watched_end(),
                   [this](std::int64_t revision) { replica_->Wake(revision); });
    });
  }
  // Makes no calls from now on. All nodes must end before one of them is destroyed.
  void End() {
    Do([this] {
      etcd_.reset();
      replica_.reset();
    });
  }

  // Runs `act` on the node's thread, and waits for it.
  void Do(absl::FunctionRef<void()> act) {
    absl::Notification done;
    thread_.Post([&] {
      act();
      done.Notify();
    });
    done.WaitForNotification();
  }
  void Post(absl::AnyInvocable<void(Replica&)> act) {
    thread_.Post([this, act = std::move(act)]() mutable {
      if (replica_ != nullptr) act(*replica_);
    });
  }
  // Proposes an entry, and returns what became of it.
  absl::Status Propose(const std::string& bytes) {
    absl::Status outcome;
    absl::Notification done;
    Post([&](Replica& replica) {
      replica.Propose(bytes, [&](absl::Status status) {
        outcome = std::move(status);
        done.Notify();
      });
    });
    done.WaitForNotification();
    return outcome;
  }
  std::vector<std::string> Entries() {
    std::vector<std::string> entries;
    Do([&] { entries = store_.bytes; });
    return entries;
  }
  bool IsPrimary() {
    bool is_primary = false;
    Do([&] { is_primary = replica_->is_primary(); });
    return is_primary;
  }

 private:
  // Reaches the other nodes by their threads.
  class OtherNodes final : public Peers {
   public:
    explicit OtherNodes(Node& self) : self_(self) {}

    void Stage(const std::string& node, const Entry& entry,
               absl::AnyInvocable<void(absl::Status)> done) override {
      self_.Call<absl::Status>(
          node, [entry](Replica& replica) { return replica.OnStage(entry); }, std::move(done));
    }
    void Fetch(const std::string& node, std::uint64_t sequence, const EntryDigest& digest,
               absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) override {
      self_.Call<absl::StatusOr<std::string>>(
          node, [sequence, digest](Replica& replica) { return replica.OnFetch(sequence, digest); },
          std::move(done));
    }

   private:
    Node& self_;
  };

  template <typename Result>
  void Call(const std::string& node, absl::AnyInvocable<Result(Replica&)> act,
            absl::AnyInvocable<void(Result)> done) {
    nodes_[node[0] - 'a']->Post(
        [this, act = std::move(act), done = std::move(done)](Replica& replica) mutable {
          Post([result = act(replica), done = std::move(done)](Replica&) mutable {
            done(std::move(result));
          });
        });
  }

  const std::string name_;
  Nodes& nodes_;
  OtherNodes peers_{*this};
  RamStore store_;
  int nonces_ = 0;
  std::unique_ptr<EtcdClient> etcd_;
  std::unique_ptr<Replica> replica_;
  TaskThread thread_{[this] {
                       if (replica_ == nullptr) return;
                       etcd_->Tick();
                       replica_->Tick();
                     },
                     absl::Milliseconds(50)};
};

TEST(ReplicaOnEtcdTest, NoEntryIsLostOrDoubledWhileMembersAreKilledAndStopped) {
  EtcdMembers members(3);
  Nodes nodes;
  for (int node = 0; node < 3; ++node) {
    nodes[node] =
        std::make_unique<Node>(std::string(1, static_cast<char>('a' + node)), members, nodes);
  }
  // The group is made.
  {
    TaskThread thread([] {}, absl::Hours(1));
    std::unique_ptr<EtcdClient> client;
    bool is_made = false;
    while (!is_made) {
      absl::Notification answered;
      thread.Post([&] {
        if (client == nullptr) {
          client = std::make_unique<EtcdClient>(
              EtcdOptions{.endpoints = members.endpoints(),
                          .credentials = grpc::InsecureChannelCredentials()},
              [&](absl::AnyInvocable<void()> task) { thread.Post(std::move(task)); });
        }
        client->Run({.compares = {},
                     .puts = {{GroupKeys("c", "g").config(),
                               EncodeGroupConfig(
                                   {.version = 1, .copies = 2, .replicas = {"a", "b", "c"}})}},
                     .reads = {}},
                    [&](const absl::StatusOr<EtcdTxnResult>& result) {
                      is_made = result.ok();
                      answered.Notify();
                    });
      });
      answered.WaitForNotification();
    }
    absl::Notification ended;
    thread.Post([&] {
      client.reset();
      ended.Notify();
    });
    ended.WaitForNotification();
  }

  std::vector<std::string> acknowledged;
  std::set<std::string> unknown;
  int proposals = 0;
  const auto commit = [&](int count) {
    while (count > 0) {
      for (const auto& node : nodes) {
        if (!node->IsPrimary()) continue;
        const std::string bytes = absl::StrCat("entry ", ++proposals);
        const absl::Status outcome = node->Propose(bytes);
        if (outcome.ok()) {
          acknowledged.push_back(bytes);
          --count;
        } else if (HasUnknownOutcome(outcome)) {
          unknown.insert(bytes);
        }
      }
    }
  };
  commit(20);
  for (int member = 0; member < 3; ++member) {
    members.Freeze(member);
    commit(10);
    members.Thaw(member);
    members.Kill(member);
    commit(10);
    members.Start(member);
    for (const auto& node : nodes) node->Post([](Replica& replica) { replica.Resign("told to"); });
    commit(10);
  }
  const std::vector<std::string> entries = [&] {
    while (true) {
      std::vector<std::vector<std::string>> of_all;
      for (const auto& node : nodes) of_all.push_back(node->Entries());
      if (of_all[0] == of_all[1] && of_all[1] == of_all[2] &&
          of_all[0].size() >= acknowledged.size()) {
        return of_all[0];
      }
      testing::LetPass(absl::Milliseconds(5));
    }
  }();
  const std::set<std::string> once(entries.begin(), entries.end());
  EXPECT_EQ(once.size(), entries.size());
  for (const std::string& bytes : acknowledged) EXPECT_THAT(once, Contains(bytes));
  EXPECT_LE(entries.size(), acknowledged.size() + unknown.size());
  for (const auto& node : nodes) node->End();
}

}  // namespace
}  // namespace softlookup::server
