// Groups of one cluster, which share its tenants: on a real etcd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "server/cluster/stored_tenants.h"
#include "tests/server/cluster/replica_process.h"
#include "tests/server/cluster/waiting_client.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

using ::testing::ElementsAre;
using testing::EtcdMembers;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::IsSupersetOf;
using ::testing::Pair;
using testing::StatusIs;

StoreConfig ConfigOf(const std::string& name) {
  return {.name = name, .key_dim = 1, .value_dim = 1};
}

absl::Status StatusOf(absl::Status status) { return status; }
template <typename Value>
absl::Status StatusOf(const absl::StatusOr<Value>& answer) {
  return answer.status();
}

// Calls `act` until its answer is another one than UNAVAILABLE, and returns that. An attempt whose
// outcome was unknown may have been made, so that a later one finds its effect.
template <typename Act>
absl::Status Patiently(const Act& act) {
  bool may_be_made = false;
  while (true) {
    const absl::Status status = StatusOf(act());
    if (may_be_made && (absl::IsAlreadyExists(status) || absl::IsNotFound(status))) {
      return absl::OkStatus();
    }
    if (!absl::IsUnavailable(status)) return status;
    may_be_made = may_be_made || HasUnknownOutcome(status);
    testing::LetPass(absl::Milliseconds(5));
  }
}

absl::Status Create(ReplicaProcess& process, const std::string& name) {
  return Patiently([&] { return process.engine().CreateStore(ConfigOf(name)); });
}
absl::Status Rename(ReplicaProcess& process, const std::string& name, const std::string& to) {
  return Patiently([&] { return process.engine().RenameStore({.name = name, .new_name = to}); });
}

// Calls act(done), and waits for what `done` gets.
template <typename Act>
absl::Status Ask(const Act& act) {
  absl::Status answer;
  absl::Notification done;
  act([&](absl::Status status) {
    answer = std::move(status);
    done.Notify();
  });
  done.WaitForNotification();
  return answer;
}

absl::Status Add(ReplicaProcess& primary, const std::string& node) {
  return Patiently([&] {
    return Ask([&](auto done) { primary.replication().AddReplica(node, std::move(done)); });
  });
}

// Makes a directory with these stores, as a server without etcd does.
void MakeDirectory(const std::string& directory, const std::vector<std::string>& stores) {
  auto engine = Engine::Open({.thread_count = 1}, directory, [](const absl::Status&) {});
  ASSERT_THAT(engine.status(), IsOk());
  for (const std::string& store : stores) {
    ASSERT_THAT((*engine)->CreateStore(ConfigOf(store)).status(), IsOk());
  }
}

class TenantsTest : public ::testing::Test {
 protected:
  std::unique_ptr<ReplicaProcess> Start(const std::string& group, const std::string& node = "n") {
    auto process =
        std::make_unique<ReplicaProcess>(members_, DirectoryOf(group, node), node, group);
    process->Load();
    return process;
  }
  std::string DirectoryOf(const std::string& group, const std::string& node = "n") const {
    return absl::StrCat(parent_.path(), "/", group, "-", node);
  }
  // What etcd holds of the tenants, by the ends of their keys.
  std::map<std::string, std::string> Held() {
    std::map<std::string, std::string> held;
    const std::string prefix = "/softlookup/c/tenants/";
    for (const EtcdKeyValue& kv : client_.ListUntilAnswered(prefix, "/softlookup/c/tenants0")) {
      held[kv.key.substr(prefix.size())] = kv.value;
    }
    return held;
  }

  const testing::TemporaryDirectory parent_;
  EtcdMembers members_{1};
  WaitingClient client_{members_.endpoints()};
};

TEST_F(TenantsTest, AStoreOfATenantOfAnotherGroupIsNotMade) {
  const auto one = Start("g1"), two = Start("g2");
  const std::string longest(kNameLengthMax, 'a');
  for (const std::string& name : {std::string("acme/a"), std::string("acme/b"), longest}) {
    EXPECT_THAT(Create(*one, name), IsOk());
  }
  EXPECT_THAT(Create(*two, "own/x"), IsOk());
  const std::map<std::string, std::string> held = {
      {"acme", "group=g1"}, {longest, "group=g1"}, {"own", "group=g2"}};
  EXPECT_EQ(Held(), held);

  const std::string copy = parent_.path() + "/copy";
  ASSERT_THAT(two->engine().CopyTo(copy), IsOk());
  const auto restore = [&](const std::string& name) {
    const CancelToken cancel;
    return Patiently([&] {
      return two->engine().RestoreStore({.directory = copy, .store = "own/x", .name = name},
                                        cancel);
    });
  };
  const std::uint64_t entry = two->replication().stats().applied_entry;
  for (const absl::Status& refused :
       {Create(*two, "acme/c"), Create(*two, "acme"), Create(*two, longest),
        Rename(*two, "own/x", "acme/x"), restore("acme/y")}) {
    EXPECT_EQ(ReasonOf(refused), "TENANT_ELSEWHERE");
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition, "belongs to group g1"));
    EXPECT_EQ(MetadataOf(refused)[0], (std::pair<std::string, std::string>("group", "g1")));
  }
  EXPECT_EQ(two->replication().stats().applied_entry, entry) << "something was stored";
  EXPECT_THAT(two->engine().GetStore("own/x").status(), IsOk());
  EXPECT_EQ(two->engine().ListStores("", "", 10)->stores.size(), 1u);
  EXPECT_EQ(Held(), held);

  EXPECT_THAT(Rename(*two, "own/x", "own"), IsOk());
  EXPECT_THAT(restore("restored/x"), IsOk());
  EXPECT_THAT(Rename(*two, "own", "renamed/x"), IsOk());
  std::map<std::string, std::string> more = held;
  more["restored"] = more["renamed"] = "group=g2";
  EXPECT_EQ(Held(), more);
}

TEST_F(TenantsTest, WhatIsRefusedAnywayClaimsNothing) {
  const auto one = Start("g1");
  const auto refused = [&](const std::string& name, std::int64_t key_dim) {
    StoreConfig config = ConfigOf(name);
    config.key_dim = key_dim;
    return Patiently([&] { return one->engine().CreateStore(config); });
  };
  EXPECT_EQ(ReasonOf(refused("new/x", -1)), "INVALID_OPTION");
  for (const std::string& name : {std::string(), std::string("/x"), std::string("a\nb"),
                                  std::string("a\0b", 3), std::string(129, 'a')}) {
    EXPECT_EQ(ReasonOf(refused(name, 1)), "INVALID_NAME");
  }
  EXPECT_EQ(ReasonOf(Rename(*one, "none", "new/x")), "STORE_NOT_FOUND");
  EXPECT_THAT(Held(), IsEmpty());
}

TEST_F(TenantsTest, OfTwoGroupsThatBeginATenantAtOnceOneGetsIt) {
  constexpr int kTenants = 40;
  const std::array<std::unique_ptr<ReplicaProcess>, 2> groups = {Start("g1"), Start("g2")};
  std::array<std::vector<absl::Status>, 2> answers;
  std::vector<std::thread> threads;
  for (const int group : {0, 1}) {
    threads.emplace_back([&, group] {
      for (int i = 0; i < kTenants; ++i) {
        answers[group].push_back(Create(*groups[group], absl::StrCat("t", i, "/s")));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, std::string> held = Held();
  EXPECT_EQ(std::ssize(held), kTenants);
  for (int i = 0; i < kTenants; ++i) {
    const bool is_first = answers[0][i].ok();
    EXPECT_NE(is_first, answers[1][i].ok()) << i;
    EXPECT_EQ(ReasonOf(answers[is_first ? 1 : 0][i]), "TENANT_ELSEWHERE");
    EXPECT_EQ(held[absl::StrCat("t", i)], is_first ? "group=g1" : "group=g2");
  }
}

TEST_F(TenantsTest, AServerThatFollowsClaimsNothing) {
  const auto primary = Start("g1", "a");
  EXPECT_THAT(Create(*primary, "s"), IsOk());
  EXPECT_THAT(Add(*primary, "b"), IsOk());
  const auto follower = Start("g1", "b");
  const absl::Status refused = follower->engine().CreateStore(ConfigOf("new")).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable, "node a is"));
  EXPECT_EQ(ReasonOf(refused), "STORAGE_FAILED");
  EXPECT_THAT(Held(), ElementsAre(Pair("s", "group=g1")));
}

TEST_F(TenantsTest, ATenantIsNotBegunWhileEtcdIsAway) {
  const auto one = Start("g1");
  EXPECT_THAT(Create(*one, "s"), IsOk());
  members_.Freeze(0);
  const absl::Status refused = one->engine().CreateStore(ConfigOf("new")).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable, "The write was not made"));
  EXPECT_EQ(ReasonOf(refused), "STORAGE_FAILED");
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  EXPECT_FALSE(HasUnknownOutcome(refused));
  members_.Thaw(0);
  EXPECT_THAT(Create(*one, "new"), IsOk());
  EXPECT_THAT(Held(), ElementsAre(Pair("new", "group=g1"), Pair("s", "group=g1")));
}

TEST_F(TenantsTest, AServerThatCanNeverServeAgainClaimsNothing) {
  auto one = Start("g1", "a");
  EXPECT_THAT(Create(*one, "s"), IsOk());
  const std::string copy = parent_.path() + "/copy";
  ASSERT_THAT(one->engine().CopyTo(copy), IsOk());
  EXPECT_THAT(Create(*one, "t"), IsOk());
  ReplicaProcess behind(members_, copy, "a", "g1");
  behind.AwaitFailure();
  const absl::Status refused =
      Ask([&](auto done) { behind.replication().ClaimTenant("new", std::move(done)); });
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable, "The write was not made"));
}

// Notes the tenants that are refused.
class Refusals {
 public:
  StoredTenants::OnRefused Note() {
    return [this](const std::string& tenant, const absl::Status& why) {
      absl::MutexLock lock(&mutex_);
      EXPECT_TRUE(reasons_.emplace(tenant, ReasonOf(why)).second) << tenant << " is told twice";
    };
  }
  std::map<std::string, std::string> reasons() const {
    absl::MutexLock lock(&mutex_);
    return reasons_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, std::string> reasons_ ABSL_GUARDED_BY(mutex_);  // By tenant.
};

TEST_F(TenantsTest, TheTenantsOfStoresThatAreThereAlreadyAreClaimed) {
  std::vector<std::string> stores = {"acme", "acme-x", "acme.x/1", "acme/1", "acme/2/3", "acme0"};
  std::map<std::string, std::string> held = {{"acme", "group=g1"},
                                             {"acme-x", "group=g1"},
                                             {"acme.x", "group=g1"},
                                             {"acme0", "group=g1"},
                                             {"taken", "group=g2"}};
  for (int i = 0; i < 100; ++i) {
    stores.push_back(absl::StrCat("t", i, "/a"));
    stores.push_back(absl::StrCat("t", i, "/b"));
    held[absl::StrCat("t", i)] = "group=g1";
  }
  stores.insert(stores.end(), {"taken", "taken/s"});
  MakeDirectory(DirectoryOf("g1"), stores);
  EXPECT_THAT(Create(*Start("g2"), "taken/x"), IsOk());
  const auto one = Start("g1");
  EXPECT_THAT(Held(), ElementsAre(Pair("taken", "group=g2")));
  Refusals refusals;
  auto stored = std::make_unique<StoredTenants>(one->engine(), one->replication(), refusals.Note());
  EXPECT_TRUE(testing::AwaitThat([&] {
    EXPECT_THAT(held, IsSupersetOf(Held()));
    return Held() == held && !refusals.reasons().empty();
  }));
  EXPECT_THAT(refusals.reasons(), ElementsAre(Pair("taken", "TENANT_ELSEWHERE")));
  // What is there is served, and nothing is added.
  EXPECT_EQ(one->engine().GetStore("taken/s")->config.name, "taken/s");
  const float row = 1;
  const MatrixView view{&row, 1, 1};
  EXPECT_THAT(Patiently([&] {
                return testing::AppendAndWait(one->engine(),
                                              {.store = "taken/s", .keys = view, .values = view});
              }),
              IsOk());
  EXPECT_EQ(ReasonOf(Create(*one, "taken/new")), "TENANT_ELSEWHERE");
  EXPECT_THAT(Rename(*one, "taken/s", "taken/renamed"), IsOk());
  EXPECT_THAT(Rename(*one, "taken/renamed", "acme/renamed"), IsOk());
  EXPECT_EQ(ReasonOf(Rename(*one, "acme/renamed", "taken/again")), "TENANT_ELSEWHERE");
}

TEST_F(TenantsTest, TheNextPrimaryClaimsWhatIsThere) {
  MakeDirectory(DirectoryOf("g1", "a"), {"acme/1", "other"});
  auto first = Start("g1", "a");
  EXPECT_THAT(Add(*first, "b"), IsOk());
  const auto second = Start("g1", "b");
  Refusals refusals;
  const StoredTenants stored(second->engine(), second->replication(), refusals.Note());
  EXPECT_THAT(Held(), IsEmpty());
  while (!second->replication().stats().is_primary) {
    Ask([&](auto done) { first->replication().StepDown(std::move(done)); }).IgnoreError();
  }
  EXPECT_TRUE(testing::AwaitThat([&] { return Held().size() >= 2; }));
  EXPECT_THAT(Held(), ElementsAre(Pair("acme", "group=g1"), Pair("other", "group=g1")));
  EXPECT_THAT(refusals.reasons(), IsEmpty());
}

TEST_F(TenantsTest, ClaimsInTheBackgroundEndWithTheirServer) {
  MakeDirectory(DirectoryOf("g1"), {"acme/1"});
  const auto one = Start("g1");
  members_.Freeze(0);
  const StoredTenants stored(one->engine(), one->replication(),
                             [](const std::string&, const absl::Status&) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace softlookup::server
