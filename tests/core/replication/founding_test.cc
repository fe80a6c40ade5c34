#include "core/replication/founding.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/core/replication/event_loop.h"
#include "tests/core/replication/simulated_etcd.h"
#include "tests/core/replication/simulated_process.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using testing::IsOk;
using testing::StatusIs;

class FoundingTest : public ::testing::Test {
 protected:
  // Starts a node on its directory, and returns what becomes of it.
  absl::Status Found(const Founding::Node& node) {
    testing::SimulatedEtcdClient client(etcd_, process_);
    Founding founding(keys_, client, make_nonce_);
    std::optional<absl::Status> outcome;
    founding.Start(node, [&](absl::Status status) { outcome = std::move(status); });
    while (!outcome.has_value()) {
      loop_.RunUntil(loop_.Now() + absl::Milliseconds(100));
      founding.Tick();
    }
    return *outcome;
  }
  void Put(const GroupConfig& config, const CommitPoint& point) {
    etcd_.Put(keys_.config(), EncodeGroupConfig(config));
    etcd_.Put(keys_.commit_point(), EncodeCommitPoint(point));
  }

  const GroupKeys keys_{"c", "g"};
  const GroupConfig alone_{.version = 1, .copies = 1, .replicas = {"n"}};
  const AppliedEntry fifth_{.sequence = 5, .digest = DigestOf("", 1, "five entries")};
  const CommitPoint at_fifth_{
      .epoch = 2, .sequence = 5, .digest = DigestOf("", 1, "five entries"), .nonce = "p"};
  testing::EventLoop loop_{1};
  testing::SimulatedProcess process_{loop_};
  testing::SimulatedEtcd etcd_{loop_, [] {}};
  int nonces_ = 0;
  MakeNonce make_nonce_ = [this] { return absl::StrCat("nonce", ++nonces_); };
};

TEST_F(FoundingTest, TheFirstNodeFoundsTheGroup) {
  EXPECT_THAT(Found({.name = "n"}), IsOk());
  EXPECT_EQ(etcd_.Value(keys_.config()), EncodeGroupConfig(alone_));
  EXPECT_EQ(etcd_.Value(keys_.commit_point()), std::nullopt);
}

TEST_F(FoundingTest, ADirectoryWithStoresIsTheFirstCommitPoint) {
  const AppliedEntry first{.sequence = 1, .digest = DigestOf("", 1, "stores")};
  EXPECT_THAT(Found({.name = "n", .applied = first}), IsOk());
  const absl::StatusOr<CommitPoint> point =
      ParseCommitPoint(etcd_.Value(keys_.commit_point()).value_or(""));
  ASSERT_THAT(point, IsOk());
  EXPECT_EQ(point->sequence, 1u);
  EXPECT_EQ(point->digest, first.digest);
  // A node that ended before it noted that it has joined.
  EXPECT_THAT(Found({.name = "n", .applied = first}), IsOk());
}

TEST_F(FoundingTest, AnotherNodeIsNoReplicaByItself) {
  EXPECT_THAT(Found({.name = "n"}), IsOk());
  EXPECT_THAT(Found({.name = "o"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "its replica is n"));
  EXPECT_EQ(etcd_.Value(keys_.config()), EncodeGroupConfig(alone_));
}

TEST_F(FoundingTest, AnotherDirectoryIsNotThatOfTheNode) {
  Put(alone_, at_fifth_);
  EXPECT_THAT(Found({.name = "n"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "lost or replaced"));
  EXPECT_THAT(Found({.name = "n", .applied = {.sequence = 5, .digest = DigestOf("", 1, "other")}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "lost or replaced"));
}

TEST_F(FoundingTest, ANodeThatHasJoinedMayBeBehind) {
  Put(alone_, at_fifth_);
  const AppliedEntry third{.sequence = 3, .digest = DigestOf("", 1, "three entries")};
  EXPECT_THAT(Found({.name = "n", .applied = third, .has_joined = true}), IsOk());
  EXPECT_THAT(Found({.name = "n", .applied = fifth_, .has_joined = true}), IsOk());
}

TEST_F(FoundingTest, AnEtcdThatHasLostTheGroupGetsNoNewOne) {
  EXPECT_THAT(Found({.name = "n", .applied = fifth_, .has_joined = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "etcd has lost its data"));
  EXPECT_EQ(etcd_.Value(keys_.config()), std::nullopt);
  CommitPoint earlier = at_fifth_;
  earlier.sequence = 4;
  Put(alone_, earlier);
  EXPECT_THAT(Found({.name = "n", .applied = fifth_, .has_joined = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "has applied entry 5"));
}

TEST_F(FoundingTest, ANodeWithOtherBytesThanEtcdHasNamedIsRefused) {
  Put(alone_, at_fifth_);
  const AppliedEntry other{.sequence = 5, .digest = DigestOf("", 1, "other")};
  EXPECT_THAT(Found({.name = "n", .applied = other, .has_joined = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "of other bytes"));
}

TEST_F(FoundingTest, ValuesThatCannotBeReadAreSaidToBe) {
  etcd_.Put(keys_.config(), "version=one");
  EXPECT_THAT(Found({.name = "n"}), StatusIs(absl::StatusCode::kDataLoss, "config"));
}

TEST_F(FoundingTest, LostAnswersAndLateTransactionsFoundOneGroup) {
  etcd_.faults = {.lost_request = 0.3, .lost_answer = 0.3, .late = 0.3};
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Found({.name = "n"}), IsOk());
    EXPECT_EQ(etcd_.Value(keys_.config()), EncodeGroupConfig(alone_));
  }
}

}  // namespace
}  // namespace softlookup
