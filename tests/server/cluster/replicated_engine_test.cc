// An engine that is a replica, on a real etcd.
#include "softlookup/replicated_engine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "tests/server/cluster/replica_process.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

using testing::AppendAndWait;
using testing::EtcdMembers;
using testing::IsOk;
using testing::StatusIs;

class ReplicatedEngineTest : public ::testing::Test {
 protected:
  std::unique_ptr<ReplicaProcess> Start(const std::string& directory) {
    return std::make_unique<ReplicaProcess>(members_, directory);
  }
  std::unique_ptr<ReplicaProcess> StartAndLoad() {
    std::unique_ptr<ReplicaProcess> process = Start(directory_);
    process->Load();
    return process;
  }
  void CreateStore(ReplicaProcess& process) {
    ASSERT_THAT(process.engine().CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}).status(),
                IsOk());
  }

  const testing::TemporaryDirectory parent_;
  const std::string directory_ = parent_.path() + "/data";
  EtcdMembers members_{1};
};

TEST_F(ReplicatedEngineTest, WritesAreThereAfterAStartWhichBeginsAnEpoch) {
  std::unique_ptr<ReplicaProcess> process = StartAndLoad();
  EXPECT_EQ(process->replication().stats().epoch, 1u);
  CreateStore(*process);
  process->AppendPatiently(1);
  process->AppendPatiently(2);
  EXPECT_EQ(process->replication().stats().applied_entry, 3u);
  process = nullptr;
  process = StartAndLoad();
  EXPECT_EQ(process->Values(), UpTo(2));
  const ReplicationStats stats = process->replication().stats();
  EXPECT_TRUE(stats.is_primary);
  EXPECT_EQ(stats.epoch, 2u);
  EXPECT_EQ(stats.applied_entry, 3u);
  process->AppendPatiently(3);
  EXPECT_EQ(process->Values(), UpTo(3));
}

TEST_F(ReplicatedEngineTest, StoresOfADirectoryThatWasNoReplicasStay) {
  {
    auto engine = Engine::Open({.thread_count = 1}, directory_, [](const absl::Status&) {});
    ASSERT_THAT(engine.status(), IsOk());
    const float one = 1;
    const MatrixView view{&one, 1, 1};
    ASSERT_THAT((*engine)->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}).status(),
                IsOk());
    ASSERT_THAT(AppendAndWait(**engine, {.store = "s", .keys = view, .values = view}), IsOk());
  }
  std::unique_ptr<ReplicaProcess> process = StartAndLoad();
  EXPECT_EQ(process->Values(), UpTo(1));
  process->AppendPatiently(2);
  process = nullptr;
  EXPECT_THAT(Engine::Open({.thread_count = 1}, directory_).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "belongs to node n of group g"));
  EXPECT_EQ(StartAndLoad()->Values(), UpTo(2));
}

// Two processes that begin with the same data: what one of them has written, the other can never
// overwrite.
TEST_F(ReplicatedEngineTest, OfTwoCopiesOfADirectoryOnlyOneGoesOn) {
  std::unique_ptr<ReplicaProcess> process = StartAndLoad();
  CreateStore(*process);
  process->AppendPatiently(1);
  const std::string copy = parent_.path() + "/copy";
  ASSERT_THAT(process->engine().CopyTo(copy), IsOk());
  process->AppendPatiently(2);
  const std::unique_ptr<ReplicaProcess> second = Start(copy);
  second->AwaitFailure();
  EXPECT_THAT(second->AwaitReady(),
              StatusIs(absl::StatusCode::kUnavailable, "etcd says that node n has entry 3"));
  process->AppendPatiently(3);
  EXPECT_EQ(process->Values(), UpTo(3));
}

TEST_F(ReplicatedEngineTest, AWriteThatEtcdDoesNotAnswerIsSettledWhenItAnswersAgain) {
  std::unique_ptr<ReplicaProcess> process = StartAndLoad();
  CreateStore(*process);
  process->AppendPatiently(1);
  members_.Freeze(0);
  const absl::Status unknown = process->Append(2).status();
  EXPECT_THAT(unknown, StatusIs(absl::StatusCode::kUnavailable, "may have been made"));
  EXPECT_TRUE(HasUnknownOutcome(unknown));
  EXPECT_EQ(MetadataOf(unknown), (ErrorMetadata{{"written", "unknown"}}));
  // The next is refused at once, and lookups go on.
  const absl::Status refused = process->Append(2).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable, "was not made"));
  EXPECT_FALSE(HasUnknownOutcome(refused));
  EXPECT_EQ(MetadataOf(refused), (ErrorMetadata{{"written", "no"}}));
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  EXPECT_EQ(process->Values(), UpTo(1));
  members_.Thaw(0);
  process->AppendPatiently(2);
  process->AppendPatiently(3);
  EXPECT_EQ(process->Values(), UpTo(3));
  process = nullptr;
  EXPECT_EQ(StartAndLoad()->Values(), UpTo(3));
}

TEST_F(ReplicatedEngineTest, AWriteThatNeverReachedEtcdIsNotMadeUntilItIsSentAgain) {
  std::unique_ptr<ReplicaProcess> process = StartAndLoad();
  CreateStore(*process);
  process->AppendPatiently(1);
  members_.Kill(0);
  EXPECT_TRUE(HasUnknownOutcome(process->Append(2).status()));
  members_.Start(0);
  EXPECT_THAT(process->AwaitReady(), IsOk());
  process->AppendPatiently(3);
  EXPECT_EQ(process->Values(), (std::vector<float>{1, 3}));
  process = nullptr;
  EXPECT_EQ(StartAndLoad()->Values(), (std::vector<float>{1, 3}));
}

// Like a volume that was lost, and like an etcd that was.
TEST_F(ReplicatedEngineTest, ADirectoryAndAnEtcdThatDoNotFitAreRefused) {
  {
    std::unique_ptr<ReplicaProcess> process = StartAndLoad();
    CreateStore(*process);
  }
  EXPECT_THAT(Start(parent_.path() + "/new")->AwaitReady(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "lost or replaced"));
  const EtcdMembers new_etcd(1);
  EXPECT_THAT(ReplicaProcess(new_etcd, directory_).AwaitReady(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "etcd has lost its data"));
  EXPECT_THAT(StartAndLoad()->engine().GetStore("s").status(), IsOk());
}

TEST(ReplicatedEngineOnThreeMembersTest, EachRowIsThereOnceWhileMembersAreKilledAndStopped) {
  const testing::TemporaryDirectory parent;
  EtcdMembers members(3);
  auto process = std::make_unique<ReplicaProcess>(members, parent.path() + "/data");
  process->Load();
  ASSERT_THAT(process->engine().CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}).status(),
              IsOk());
  std::uint64_t rows = 0;
  const auto append = [&](int count) {
    for (int i = 0; i < count; ++i) process->AppendPatiently(++rows);
  };
  for (int member = 0; member < 3; ++member) {
    members.Freeze(member);
    append(20);
    members.Thaw(member);
    members.Kill(member);
    append(20);
    members.Start(member);
    append(20);
  }
  EXPECT_EQ(process->Values(), UpTo(rows));
  process = nullptr;
  process = std::make_unique<ReplicaProcess>(members, parent.path() + "/data");
  process->Load();
  EXPECT_EQ(process->Values(), UpTo(rows));
}

}  // namespace
}  // namespace softlookup::server
