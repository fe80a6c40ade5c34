#include "core/replication/replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "tests/core/replication/event_loop.h"
#include "tests/core/replication/node_name.h"
#include "tests/core/replication/simulated_etcd.h"
#include "tests/core/replication/simulated_network.h"
#include "tests/core/replication/simulated_process.h"
#include "tests/core/replication/simulated_store.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using testing::NodeName;
using testing::StatusIs;

// Keeps the answers of elections, until the test lets them through, and notes what polls read.
class WatchedEtcd final : public Etcd {
 public:
  WatchedEtcd(Etcd& etcd, std::string primary_key)
      : etcd_(etcd), primary_key_(std::move(primary_key)) {}

  void Run(EtcdTxn txn, Callback<EtcdTxnResult> done) override {
    if (txn.puts.empty()) return Poll(std::move(txn), std::move(done));
    if (!holds || txn.puts[0].key != primary_key_) {
      return etcd_.Run(std::move(txn), std::move(done));
    }
    lease = txn.puts[0].lease;
    etcd_.Run(std::move(txn),
              [this, done = std::move(done)](absl::StatusOr<EtcdTxnResult> result) mutable {
                held.push_back([done = std::move(done), result = std::move(result)]() mutable {
                  done(std::move(result));
                });
              });
  }
  void List(std::string begin, std::string end, Callback<std::vector<EtcdKeyValue>> done) override {
    etcd_.List(std::move(begin), std::move(end), std::move(done));
  }
  void GrantLease(absl::Duration ttl, Callback<std::int64_t> done) override {
    etcd_.GrantLease(ttl, std::move(done));
  }
  void KeepAlive(std::int64_t kept, Callback<bool> done) override {
    etcd_.KeepAlive(kept, std::move(done));
  }
  void RevokeLease(std::int64_t revoked) override { etcd_.RevokeLease(revoked); }

  bool holds = false;
  std::int64_t lease = 0;  // Of the last election that was held.
  std::vector<absl::AnyInvocable<void()>> held;
  std::vector<std::string> polls;  // What each has read.
  // Whether one member says what the last poll has found. The majority knows better.
  bool member_is_old = false;

 private:
  void Poll(EtcdTxn txn, Callback<EtcdTxnResult> done) {
    polls.push_back(txn.from_one_member ? "member" : "majority");
    const bool is_old = txn.from_one_member && member_is_old;
    etcd_.Run(std::move(txn),
              [this, is_old, done = std::move(done)](absl::StatusOr<EtcdTxnResult> result) mutable {
                if (!is_old && result.ok()) found_ = *result;
                done(is_old ? found_ : std::move(result));
              });
  }

  Etcd& etcd_;
  const std::string primary_key_;
  EtcdTxnResult found_;  // By the last poll.
};

// Three nodes, each of which commits alone.
class ReplicaTest : public ::testing::Test {
 protected:
  struct Node {
    Node(ReplicaTest& test, int number)
        : process(test.loop_),
          client(test.etcd_, process),
          etcd(client, test.keys_.primary()),
          peers(test.network_, process, number),
          store(test.loop_, [](const Entry&) {}),
          replica({.node = NodeName(number), .keys = test.keys_, .address = NodeName(number)}, etcd,
                  peers, store, process, [&test] { return absl::StrCat(++test.nonces_); }) {}

    testing::SimulatedProcess process;
    testing::SimulatedEtcdClient client;
    WatchedEtcd etcd;
    testing::SimulatedPeers peers;
    testing::SimulatedStore store;
    Replica replica;
  };

  ReplicaTest() {
    network_.is_disturbed = false;
    SetReplicas({"a", "b", "c"});
    for (int number = 0; number < 3; ++number) {
      nodes_.push_back(std::make_unique<Node>(*this, number));
    }
  }

  void SetReplicas(std::vector<std::string> replicas) {
    etcd_.Put(keys_.config(),
              EncodeGroupConfig(
                  {.version = ++config_version_, .copies = 1, .replicas = std::move(replicas)}));
  }
  // Has a node read etcd, which has changed at `revision`, and do nothing else.
  void Poll(Node& node, std::int64_t revision = 0) {
    node.replica.Wake(revision);
    loop_.RunUntil(loop_.Now() + absl::Milliseconds(200));
  }

  // Lets the given nodes go on until `condition` holds; fails if that takes a minute.
  template <typename Condition>
  void Await(const std::vector<int>& numbers, Condition condition) {
    const absl::Time end = loop_.Now() + absl::Minutes(1);
    while (!condition()) {
      ASSERT_LT(loop_.Now(), end);
      for (const int number : numbers) nodes_[number]->replica.Tick();
      loop_.RunUntil(loop_.Now() + absl::Milliseconds(100));
    }
  }

  testing::EventLoop loop_{1};
  const GroupKeys keys_{"c", "g", 8};
  testing::SimulatedEtcd etcd_{loop_, [] {}};
  testing::SimulatedNetwork network_{loop_,
                                     [this](int node, auto work) { work(nodes_[node]->replica); }};
  int nonces_ = 0;
  std::uint64_t config_version_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
};

// The lease of a candidate has ended in etcd, which it does not know. Another node has led since,
// and the candidate has applied what that one named.
TEST_F(ReplicaTest, AnElectionThatIsAnsweredAfterAnotherOneIsGivenUp) {
  Node &a = *nodes_[0], &b = *nodes_[1];
  a.etcd.holds = true;
  Await({0}, [&] { return !a.etcd.held.empty(); });
  b.client.RevokeLease(a.etcd.lease);
  Await({1}, [&] { return b.replica.is_primary(); });
  b.replica.Propose("x", [](const absl::Status&) {});
  Await({1}, [&] { return b.store.applied().sequence == 1; });
  Poll(a);
  ASSERT_EQ(a.store.applied().sequence, 1u);
  a.etcd.held[0]();
  EXPECT_FALSE(a.replica.is_primary());
  a.etcd.holds = false;
  // The group goes on.
  b.replica.Propose("y", [](const absl::Status&) {});
  Await({0, 1}, [&] { return a.store.applied().sequence == 2 && b.store.applied().sequence == 2; });
}

// The replicas have told that they have applied an entry, so each of them may trim it. A node that
// has left the group has applied it, too, but a power cut would take that from it. etcd names the
// node as one that has the entry.
TEST_F(ReplicaTest, ANodeThatHasLeftKeepsWhatItHasNotSynced) {
  Node &a = *nodes_[0], &c = *nodes_[2];
  Await({0}, [&] { return a.replica.is_primary(); });
  a.replica.Propose("x", [](const absl::Status&) {});
  Await({0}, [&] { return c.store.Staged(1, a.replica.epoch()).has_value(); });
  SetReplicas({"a", "b"});
  Poll(c);
  const AppliedEntry applied = c.store.applied();
  ASSERT_EQ(applied.sequence, 1u);
  ASSERT_FALSE(c.store.HasSynced(1));
  Await({0, 1}, [&] {
    return etcd_.Value(keys_.applied("a")).has_value() &&
           etcd_.Value(keys_.applied("b")).has_value();
  });
  Poll(c);
  EXPECT_TRUE(c.store.Keeps(1, applied.digest));
}

// Each entry wakes all replicas, and what the majority of etcd has to agree on takes it long.
TEST_F(ReplicaTest, AReplicaThatIsWokenAsksOneMemberOfEtcdUnlessThatIsBehind) {
  Node& b = *nodes_[1];
  Poll(b);
  EXPECT_THAT(b.etcd.polls, ElementsAre("majority"));
  SetReplicas({"b", "c", "a"});
  Poll(b, etcd_.revision());
  EXPECT_THAT(b.etcd.polls, ElementsAre("majority", "member"));
  EXPECT_EQ(b.replica.view().config->version, 2u);
  b.etcd.member_is_old = true;
  SetReplicas({"c", "a", "b"});
  // It is not known what has woken it.
  Poll(b);
  EXPECT_THAT(b.etcd.polls, ElementsAre("majority", "member", "member"));
  EXPECT_EQ(b.replica.view().config->version, 2u);
  Poll(b, etcd_.revision() + 1);
  EXPECT_THAT(b.etcd.polls, ElementsAre("majority", "member", "member", "member", "majority"));
  EXPECT_EQ(b.replica.view().config->version, 3u);
}

// Not even a replica that is woken all the time, at revisions that the member has.
TEST_F(ReplicaTest, AMemberOfEtcdThatStandsStillIsNotTrustedForLong) {
  Node& b = *nodes_[1];
  Poll(b);
  b.etcd.member_is_old = true;
  SetReplicas({"b", "c", "a"});
  for (int poll = 0; poll < 4; ++poll) {
    EXPECT_EQ(b.replica.view().config->version, 1u);
    Poll(b);
  }
  Poll(b);
  EXPECT_EQ(b.replica.view().config->version, 2u);
}

// The others sync an entry while the primary does, so they may have what its disk refuses.
TEST_F(ReplicaTest, AnEntryThatThePrimarysDiskRefusesIsNotMadeThoughOthersHaveIt) {
  Node &a = *nodes_[0], &b = *nodes_[1];
  Await({0}, [&] { return a.replica.is_primary(); });
  const std::uint64_t epoch = a.replica.epoch();
  a.store.refused = 1;
  absl::Status outcome;
  a.replica.Propose("x", [&](const absl::Status& status) { outcome = status; });
  EXPECT_THAT(outcome, StatusIs(absl::StatusCode::kUnavailable, "the disk refuses"));
  EXPECT_FALSE(HasUnknownOutcome(outcome));
  EXPECT_FALSE(a.replica.is_primary());
  Await({}, [&] { return b.store.Staged(1, epoch).has_value(); });
  // Once it has refused one, it has to take the next one first.
  Await({0}, [&] { return a.replica.is_primary(); });
  a.replica.Propose("z", [&](const absl::Status& status) { outcome = status; });
  EXPECT_FALSE(outcome.ok());
  loop_.RunUntil(loop_.Now() + absl::Seconds(1));
  EXPECT_FALSE(b.store.Staged(1, a.replica.epoch()).has_value());
  a.store.refused = 0;
  Await({1}, [&] { return b.replica.is_primary(); });
  b.replica.Propose("y", [](const absl::Status&) {});
  Await({0, 1}, [&] { return a.store.applied().sequence == 1; });
  EXPECT_EQ(a.store.applied(), b.store.applied());
  const absl::StatusOr<Entry> applied = a.store.Find(1, a.store.applied().digest);
  ASSERT_TRUE(applied.ok());
  EXPECT_EQ(applied->bytes, "y");
}

}  // namespace
}  // namespace softlookup
