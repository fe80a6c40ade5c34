#include "server/cluster/etcd_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/cluster/task_thread.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::testing::ElementsAre;
using testing::EtcdMembers;
using ::testing::HasSubstr;
using testing::IsOk;

constexpr absl::Duration kTtl = absl::Seconds(60);

// A client of its own thread, whose calls wait for their answers.
class WaitingClient {
 public:
  explicit WaitingClient(std::vector<std::string> endpoints) {
    Do([&] {
      client_ = std::make_unique<EtcdClient>(
          EtcdOptions{.endpoints = std::move(endpoints),
                      .credentials = grpc::InsecureChannelCredentials()},
          [this](absl::AnyInvocable<void()> task) { thread_.Post(std::move(task)); });
    });
  }
  ~WaitingClient() {
    Do([this] { client_.reset(); });
  }

  absl::StatusOr<EtcdTxnResult> Run(const EtcdTxn& txn) {
    return Ask<EtcdTxnResult>([&](auto done) { client_->Run(txn, std::move(done)); });
  }
  // Runs it until a member answers.
  EtcdTxnResult RunUntilAnswered(const EtcdTxn& txn) {
    while (true) {
      absl::StatusOr<EtcdTxnResult> result = Run(txn);
      if (result.ok()) return *std::move(result);
    }
  }
  absl::StatusOr<std::int64_t> GrantLease() {
    return Ask<std::int64_t>([&](auto done) { client_->GrantLease(kTtl, std::move(done)); });
  }
  absl::StatusOr<bool> KeepAlive(std::int64_t lease) {
    return Ask<bool>([&](auto done) { client_->KeepAlive(lease, std::move(done)); });
  }
  void RevokeLease(std::int64_t lease) {
    Do([&] { client_->RevokeLease(lease); });
  }
  void Watch(const std::string& key, absl::AnyInvocable<void()> on_change) {
    Do([&] { client_->Watch(key, key + '\0', std::move(on_change)); });
  }
  std::optional<std::string> Value(const std::string& key) {
    return RunUntilAnswered({.compares = {}, .puts = {}, .reads = {key}}).values[0];
  }

 private:
  void Do(absl::AnyInvocable<void()> act) {
    absl::Notification done;
    thread_.Post([&] {
      act();
      done.Notify();
    });
    done.WaitForNotification();
  }
  template <typename Result, typename Act>
  absl::StatusOr<Result> Ask(Act act) {
    std::promise<absl::StatusOr<Result>> answer;
    thread_.Post([&] {
      act(Etcd::Callback<Result>(
          [&](absl::StatusOr<Result> result) { answer.set_value(std::move(result)); }));
    });
    return answer.get_future().get();
  }

  std::unique_ptr<EtcdClient> client_;
  TaskThread thread_{[this] {
                       if (client_ != nullptr) client_->Tick();
                     },
                     absl::Milliseconds(100)};
};

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
  while (client.Value("a").has_value()) {
  }
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
  client.Watch("a", [&] {
    absl::MutexLock lock(&mutex);
    ++changes;
  });
  int heard = await_more(0);  // The watch has begun.
  client.RunUntilAnswered(PutTxn("other", "1"));
  client.RunUntilAnswered(PutTxn("a", "1"));
  heard = await_more(heard);
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
  client->Watch("a", [] {});
  members.Freeze(0);
  client->RevokeLease(1);
  client.reset();
}

}  // namespace
}  // namespace softlookup::server
