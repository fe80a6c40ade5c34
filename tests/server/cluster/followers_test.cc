// Groups of several replicas, on a real etcd and real sockets.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "server/cluster/seeding.h"
#include "softlookup/replication.h"
#include "tests/server/cluster/replica_process.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

using testing::EtcdMembers;
using testing::IsOk;
using testing::StatusIs;

class FollowersTest : public ::testing::Test {
 protected:
  ReplicaProcess& Start(int index) {
    nodes_[index] = std::make_unique<ReplicaProcess>(
        members_, absl::StrCat(parent_.path(), "/", index), NameOf(index));
    nodes_[index]->Load();
    return *nodes_[index];
  }
  // Starts a group of `count` replicas, the first one first.
  void StartGroup(int count) {
    ReplicaProcess& first = Start(0);
    ASSERT_THAT(first.engine().CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}).status(),
                IsOk());
    for (int index = 1; index < count; ++index) {
      ASSERT_THAT(Add(first, index), IsOk());
      Start(index);
    }
    AwaitCopies(first, static_cast<std::uint64_t>(count / 2 + 1));
  }
  static constexpr absl::Duration kPause = absl::Milliseconds(5);  // Between two attempts.

  static std::string NameOf(int index) { return std::string(1, static_cast<char>('a' + index)); }

  using Change = void (Replication::*)(std::string, absl::AnyInvocable<void(absl::Status)>);
  // Changes the replicas as soon as the primary knows them and makes no other change. It makes one
  // by itself once a new replica has copied the data.
  static absl::Status Ask(ReplicaProcess& primary, Change change, int index) {
    absl::Status status;
    EXPECT_TRUE(testing::AwaitThat([&] {
      absl::Notification done;
      (primary.replication().*change)(NameOf(index), [&](absl::Status changed) {
        status = std::move(changed);
        done.Notify();
      });
      done.WaitForNotification();
      return !absl::IsUnavailable(status) && !absl::StrContains(status.message(), "another change");
    }));
    return status;
  }
  static absl::Status Add(ReplicaProcess& primary, int index) {
    return Ask(primary, &Replication::AddReplica, index);
  }
  static absl::Status Remove(ReplicaProcess& primary, int index) {
    return Ask(primary, &Replication::RemoveReplica, index);
  }
  static absl::StatusOr<GroupStatus> Group(ReplicaProcess& process) {
    absl::StatusOr<GroupStatus> group;
    absl::Notification done;
    process.replication().GetGroup([&](absl::StatusOr<GroupStatus> status) {
      group = std::move(status);
      done.Notify();
    });
    done.WaitForNotification();
    return group;
  }
  static void AwaitCopies(ReplicaProcess& process, std::uint64_t copies) {
    EXPECT_TRUE(testing::AwaitThat([&] {
      const absl::StatusOr<GroupStatus> group = Group(process);
      return group.ok() && group->copies == copies;
    }));
  }
  // Waits until one of the running nodes is the primary.
  ReplicaProcess& AwaitPrimary() {
    while (true) {
      for (const auto& node : nodes_) {
        if (node != nullptr && node->replication().stats().is_primary) return *node;
      }
      testing::LetPass(kPause);
    }
  }
  // Appends rows as a writer does that looks for the primary.
  void Append(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t row = first; row <= last; ++row) {
      while (!AwaitPrimary().Append(row).ok()) testing::LetPass(kPause);
    }
  }

  const testing::TemporaryDirectory parent_;
  EtcdMembers members_{1};
  std::array<std::unique_ptr<ReplicaProcess>, 3> nodes_;
};

TEST_F(FollowersTest, EachReplicaShowsWhatThePrimaryHasCommitted) {
  StartGroup(3);
  Append(1, 50);
  for (const auto& node : nodes_) {
    node->AwaitRevision(51);
    EXPECT_EQ(node->Values(), UpTo(50));
  }
  EXPECT_EQ(Group(*nodes_[2])->primary, "a");
  // Who does not lead makes no write, and says who does.
  const absl::Status refused = nodes_[1]->Append(51).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable, "node a is"));
  EXPECT_EQ(MetadataOf(refused), (ErrorMetadata{{"primary", "a"}, {"written", "no"}}));
  EXPECT_EQ(nodes_[1]->Values(), UpTo(50));
}

TEST_F(FollowersTest, AnotherReplicaTakesOverWithAllThatWasAcknowledged) {
  StartGroup(3);
  Append(1, 20);
  nodes_[0] = nullptr;
  Append(21, 40);
  Start(0);
  Append(41, 60);
  for (const auto& node : nodes_) {
    node->AwaitRevision(61);
    EXPECT_EQ(node->Values(), UpTo(60));
  }
}

// Each replica is the primary once.
TEST_F(FollowersTest, ThePrimaryMovesWhileRowsCome) {
  StartGroup(3);
  std::uint64_t rows = 0;
  for (int move = 0; move < 2; ++move) {
    Append(rows + 1, rows + 10);
    rows += 10;
    absl::Notification moved;
    AwaitPrimary().replication().StepDown([&](const absl::Status&) { moved.Notify(); });
    moved.WaitForNotification();
  }
  Append(rows + 1, rows + 1);
  for (const auto& node : nodes_) {
    node->AwaitRevision(rows + 2);
    EXPECT_EQ(node->Values(), UpTo(rows + 1));
  }
}

// The stores of a replica that follows may lack what would have been changed.
TEST_F(FollowersTest, WhoFollowsAnswersNoWriteAlsoIfItChangesNothing) {
  StartGroup(2);
  Append(1, 3);
  ReplicaProcess& follower = &AwaitPrimary() == nodes_[0].get() ? *nodes_[1] : *nodes_[0];
  follower.AwaitRevision(4);
  EXPECT_THAT(follower.engine().DeleteRows("s", {.begin = 3}).status(),
              StatusIs(absl::StatusCode::kUnavailable, "is not the primary"));
  EXPECT_THAT(follower.engine().GetWriter("s", "w").status(),
              StatusIs(absl::StatusCode::kUnavailable, "is not the primary"));
  EXPECT_THAT(follower.Append(3).status(),
              StatusIs(absl::StatusCode::kUnavailable, "is not the primary"));
  EXPECT_THAT(follower.engine().CompactStore({.store = "s"}, CancelToken()).status(), IsOk());
}

TEST_F(FollowersTest, ADeadReplicaThatIsRemovedNoLongerHoldsUpWrites) {
  StartGroup(2);
  Append(1, 5);
  ReplicaProcess& primary = AwaitPrimary();
  const int dead = &primary == nodes_[0].get() ? 1 : 0;
  nodes_[dead] = nullptr;
  ASSERT_THAT(Remove(primary, dead), IsOk());
  Append(6, 10);
  EXPECT_EQ(primary.Values(), UpTo(10));
}

TEST_F(FollowersTest, WithoutEnoughCopiesNothingIsAcknowledged) {
  StartGroup(2);
  Append(1, 5);
  nodes_[1] = nullptr;
  // The entry waits for a copy, and the primary gives up after some seconds. Its outcome is known:
  // etcd never named it.
  EXPECT_EQ(MetadataOf(nodes_[0]->Append(6).status()), (ErrorMetadata{{"written", "no"}}));
  EXPECT_EQ(nodes_[0]->Values(), UpTo(5));
  Start(1);
  Append(6, 10);
  for (int index : {0, 1}) {
    nodes_[index]->AwaitRevision(11);
    EXPECT_EQ(nodes_[index]->Values(), UpTo(10));
  }
}

TEST_F(FollowersTest, AReplicaThatIsRemovedEnds) {
  StartGroup(3);
  Append(1, 5);
  ReplicaProcess& primary = AwaitPrimary();
  const int removed = &primary == nodes_[2].get() ? 1 : 2;
  ASSERT_THAT(Remove(primary, removed), IsOk());
  EXPECT_TRUE(testing::AwaitThat([&] { return Group(primary)->replicas.size() == 2; }));
  nodes_[removed]->AwaitFailure();
  EXPECT_THAT(nodes_[removed]->AwaitReady(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "no replica of its group any more"));
  Append(6, 10);
  EXPECT_THAT(Remove(primary, &primary == nodes_[0].get() ? 0 : 1),
              StatusIs(absl::StatusCode::kFailedPrecondition, "is the primary"));
}

// A disk that was lost: the node begins with nothing, and is given all.
TEST_F(FollowersTest, AReplicaWithoutItsDirectoryIsSeeded) {
  StartGroup(3);
  Append(1, 30);
  const int lost = &AwaitPrimary() == nodes_[2].get() ? 1 : 2;
  nodes_[lost] = nullptr;
  std::filesystem::remove_all(absl::StrCat(parent_.path(), "/", lost));
  Append(31, 40);
  ReplicaProcess& seeded = Start(lost);
  Append(41, 50);
  seeded.AwaitRevision(51);
  EXPECT_EQ(seeded.Values(), UpTo(50));
}

// The slots of the entries that the replica lacks were overwritten meanwhile. A server then marks
// the directory, and its next start copies all records.
TEST_F(FollowersTest, AReplicaThatIsTooFarBehindSaysSoAndBeginsAnew) {
  StartGroup(3);
  const int late = &AwaitPrimary() == nodes_[2].get() ? 1 : 2;
  const std::string directory = absl::StrCat(parent_.path(), "/", late);
  nodes_[late] = nullptr;
  Append(1, 100);
  {
    ReplicaProcess process(members_, directory, NameOf(late));
    process.AwaitFailure();
    EXPECT_THAT(process.AwaitReady(),
                StatusIs(absl::StatusCode::kOutOfRange, "of the group is no longer named"));
  }
  ASSERT_THAT(SeedAgain(directory), IsOk());
  ReplicaProcess& again = Start(late);
  again.AwaitRevision(101);
  EXPECT_EQ(again.Values(), UpTo(100));
  EXPECT_FALSE(HasUnfinishedSeed(directory));
}

// A process that is killed while it moves the files of a seed leaves some in each place.
TEST_F(FollowersTest, ASeedThatWasCutShortIsFinished) {
  namespace fs = std::filesystem;
  StartGroup(2);
  Append(1, 10);
  ReplicaProcess& primary = AwaitPrimary();
  const int other = &primary == nodes_[0].get() ? 1 : 0;
  const std::string directory = absl::StrCat(parent_.path(), "/", other);
  const std::string complete = directory + "/seed-complete";
  nodes_[other] = nullptr;
  fs::remove_all(directory);
  fs::create_directory(directory);
  ASSERT_THAT(primary.replication().CopyRecordsTo(complete), IsOk());
  ASSERT_THAT(AdoptSeed({.cluster = "c", .group = "g", .node = NameOf(other)}, complete), IsOk());
  for (const fs::directory_entry& file : fs::directory_iterator(complete)) {
    if (file.path().extension() != ".sst") continue;
    fs::rename(file.path(), fs::path(directory) / file.path().filename());
  }
  EXPECT_TRUE(HasUnfinishedSeed(directory));
  ReplicaProcess& finished = Start(other);
  Append(11, 12);
  finished.AwaitRevision(13);
  EXPECT_EQ(finished.Values(), UpTo(12));
  EXPECT_FALSE(HasUnfinishedSeed(directory));
}

}  // namespace
}  // namespace softlookup::server
