#include "server/cluster/etcd_client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/cluster/etcd/etcd.grpc.pb.h"
#include "tests/server/cluster/served_member.h"
#include "tests/server/cluster/waiting_client.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

namespace pb = etcdserverpb;

using ::testing::ElementsAre;
using testing::EtcdMembers;
using ::testing::HasSubstr;
using testing::IsOk;

EtcdTxn PutTxn(const std::string& key, const std::string& value, std::int64_t lease = 0) {
  return {.compares = {}, .puts = {{key, value, lease}}, .reads = {}};
}

TEST(EtcdClientTest, ATransactionPutsAllOrNothingAndReadsInEitherCase) {
  const EtcdMembers members(1);
  WaitingClient client(members.endpoints());
  const EtcdTxn first{.compares = {{"a", std::nullopt}},
                      .puts = {{"a", "1"}, {"b", std::string("\0\xff", 2)}},
                      .reads = {"b", "none", "a"}};
  EtcdTxnResult result = client.RunUntilAnswered(first);
  EXPECT_TRUE(result.succeeded);
  EXPECT_THAT(result.values, ElementsAre(std::string("\0\xff", 2), std::nullopt, "1"));
  result = client.RunUntilAnswered(first);
  EXPECT_FALSE(result.succeeded);
  EXPECT_THAT(result.values, ElementsAre(std::string("\0\xff", 2), std::nullopt, "1"));
  EXPECT_FALSE(
      client.RunUntilAnswered({.compares = {{"a", "2"}}, .puts = {{"a", "3"}}, .reads = {}})
          .succeeded);
  // A key that is absent has no value, not even an empty one.
  EXPECT_FALSE(
      client.RunUntilAnswered({.compares = {{"none", ""}}, .puts = {{"a", "3"}}, .reads = {}})
          .succeeded);
  EXPECT_TRUE(client.RunUntilAnswered({.compares = {{"a", "1"}}, .puts = {{"a", "3"}}, .reads = {}})
                  .succeeded);
  EXPECT_EQ(client.Value("a"), "3");
}

// A member that keeps the last transaction that it was asked for.
class KeepingMember final : public pb::KV::Service {
 public:
  const std::string& endpoint() const { return served_.endpoint(); }

  pb::TxnRequest last() const {
    absl::MutexLock lock(&mutex_);
    return last_;
  }

 private:
  grpc::Status Txn(grpc::ServerContext*, const pb::TxnRequest* request,
                   pb::TxnResponse* response) override {
    {
      absl::MutexLock lock(&mutex_);
      last_ = *request;
    }
    response->mutable_header()->set_cluster_id(1);
    response->set_succeeded(true);
    for (int i = 0; i < request->success_size(); ++i) {
      response->add_responses()->mutable_response_range();
    }
    return grpc::Status::OK;
  }

  mutable absl::Mutex mutex_;
  pb::TxnRequest last_ ABSL_GUARDED_BY(mutex_);
  const ServedMember served_{*this};  // Declared last, because it uses the other members.
};

// A member answers a transaction alone only if all of its reads say so.
TEST(EtcdClientTest, OneMemberIsAskedForWhatNeedNotBeTheNewest) {
  const EtcdMembers members(1);
  WaitingClient real({members.endpoints()});
  real.RunUntilAnswered(PutTxn("a", "1"));
  KeepingMember member;
  WaitingClient client({member.endpoint()}, /*call_timeout=*/absl::Minutes(1));
  for (const bool from_one_member : {true, false}) {
    const EtcdTxn txn{
        .compares = {}, .puts = {}, .reads = {"a", "b"}, .from_one_member = from_one_member};
    EXPECT_THAT(real.RunUntilAnswered(txn).values, ElementsAre("1", std::nullopt));
    ASSERT_THAT(client.Run(txn), IsOk());
    const pb::TxnRequest asked = member.last();
    ASSERT_EQ(asked.success_size(), 2);
    EXPECT_EQ(asked.failure_size(), 0);
    for (const pb::RequestOp& op : asked.success()) {
      EXPECT_EQ(op.request_range().serializable(), from_one_member);
    }
  }
}

TEST(EtcdClientTest, AKeyGoesAwayWithItsLease) {
  const EtcdMembers members(1);
  WaitingClient client(members.endpoints());
  client.Value("a");  // Until the member serves.
  const auto lease = client.GrantLease();
  ASSERT_THAT(lease, IsOk());
  ASSERT_THAT(client.Run(PutTxn("a", "1", *lease)), IsOk());
  EXPECT_EQ(*client.KeepAlive(*lease), true);
  EXPECT_EQ(client.Value("a"), "1");
  client.RevokeLease(*lease);
  EXPECT_TRUE(testing::AwaitThat([&] { return !client.Value("a").has_value(); }));
  EXPECT_EQ(*client.KeepAlive(*lease), false);
  const absl::Status ended = client.Run(PutTxn("a", "1", *lease)).status();
  EXPECT_TRUE(absl::IsNotFound(ended)) << ended;
  EXPECT_EQ(client.Value("a"), std::nullopt);
}

TEST(EtcdClientTest, AWatchHearsOfEachChangeAlsoAfterItsMemberWasKilled) {
  absl::Mutex mutex;  // The client's thread uses it until the client is gone.
  int changes = 0;
  EtcdMembers members(1);
  WaitingClient client(members.endpoints());
  client.Value("a");
  const auto await_more = [&](int than) {
    absl::MutexLock lock(&mutex);
    const auto more = [&] { return changes > than; };
    mutex.Await(absl::Condition(&more));
    return changes;
  };
  std::int64_t revision = 0;
  client.Watch("a", [&](std::int64_t changed_at) {
    absl::MutexLock lock(&mutex);
    revision = changed_at;
    ++changes;
  });
  int heard = await_more(0);  // The watch has begun.
  client.RunUntilAnswered(PutTxn("other", "1"));
  const std::int64_t put_at = client.RunUntilAnswered(PutTxn("a", "1")).revision;
  heard = await_more(heard);
  {
    // The put may have been made twice, if the first answer was lost.
    absl::MutexLock lock(&mutex);
    const auto is_told = [&] { return revision == put_at; };
    mutex.Await(absl::Condition(&is_told));
    heard = changes;
  }
  members.Kill(0);
  members.Start(0);
  heard = await_more(heard);  // Begun anew.
  client.RunUntilAnswered(PutTxn("a", "2"));
  await_more(heard);
}

TEST(EtcdClientTest, AMemberThatIsGoneOrDoesNotAnswerIsLeftForTheNext) {
  EtcdMembers members(3);
  WaitingClient client(members.endpoints());
  client.RunUntilAnswered(PutTxn("a", "0"));
  for (int member = 0; member < 3; ++member) {
    members.Freeze(member);
    client.RunUntilAnswered(PutTxn("a", std::to_string(member)));
    EXPECT_EQ(client.Value("a"), std::to_string(member));
    members.Thaw(member);
    members.Kill(member);
    client.RunUntilAnswered(PutTxn("b", std::to_string(member)));
    members.Start(member);
    EXPECT_EQ(client.Value("b"), std::to_string(member));
  }
}

TEST(EtcdClientTest, CallsThatFailTogetherDoNotGoBackToTheirMember) {
  EtcdMembers members(3);
  WaitingClient client(members.endpoints());
  client.RunUntilAnswered(PutTxn("a", "0"));
  for (int member = 0; member < 3; ++member) {
    // As many calls as there are members fail at the one that is stuck. If each of them had the
    // next call go one member further, all would go to it for ever.
    members.Freeze(member);
    while (client.RunAtOnce(PutTxn("a", "1"), 3) == 0) {
    }
    members.Thaw(member);
  }
}

TEST(EtcdClientTest, MembersOfTwoClustersAreRefused) {
  const EtcdMembers one(1), other(1);
  WaitingClient client({one.endpoints()[0], other.endpoints()[0]});
  client.RunUntilAnswered(PutTxn("a", "1"));
  // The lease asks the next member each time.
  absl::Status refused;
  while (!absl::IsFailedPrecondition(refused)) refused = client.KeepAlive(1).status();
  EXPECT_THAT(refused.message(), HasSubstr("another cluster"));
}

TEST(EtcdClientTest, CallsInProgressEndWithTheClient) {
  EtcdMembers members(1);
  auto client = std::make_unique<WaitingClient>(members.endpoints());
  client->Value("a");
  client->Watch("a", [](std::int64_t) {});
  members.Freeze(0);
  client->RevokeLease(1);
  client.reset();
}

}  // namespace
}  // namespace softlookup::server
