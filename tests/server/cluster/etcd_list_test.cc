// Lists of keys: of a real etcd, and of a member whose answers the test writes.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/cluster/etcd/etcd.grpc.pb.h"
#include "server/cluster/etcd_client.h"
#include "tests/server/cluster/served_member.h"
#include "tests/server/cluster/waiting_client.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::testing::ElementsAre;
using testing::EtcdMembers;
using testing::IsOk;
using testing::StatusIs;
namespace pb = etcdserverpb;

std::string NumberedKey(int number) { return absl::StrFormat("k/%05d", number); }

// Puts keys whose values are their numbers.
void PutNumberedKeys(WaitingClient& client, int count) {
  constexpr int kPutsPerTxn = 100;
  for (int begin = 0; begin < count; begin += kPutsPerTxn) {
    EtcdTxn txn;
    for (int i = begin; i < std::min(count, begin + kPutsPerTxn); ++i) {
      txn.puts.push_back({NumberedKey(i), std::to_string(i)});
    }
    client.RunUntilAnswered(txn);
  }
}

TEST(EtcdListTest, AListHasAllKeysOfARangeInOrder) {
  constexpr int kCount = 3000;  // Three pages.
  const EtcdMembers members(1);
  WaitingClient client(members.endpoints());
  PutNumberedKeys(client, kCount);
  client.RunUntilAnswered(
      {.compares = {}, .puts = {{"k", "before"}, {"k0", "after"}}, .reads = {}});
  for (const int count : {1, 999, 1000, 1001, 2000, kCount}) {
    const auto listed = client.ListUntilAnswered("k/", NumberedKey(count));
    ASSERT_EQ(std::ssize(listed), count);
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(listed[i], (EtcdKeyValue{NumberedKey(i), std::to_string(i)}));
    }
  }
  EXPECT_EQ(client.ListUntilAnswered("k/", "k0").size(), std::size_t{kCount});
  EXPECT_THAT(client.ListUntilAnswered("l", "m"), ElementsAre());
}

TEST(EtcdListTest, AListShowsOneMomentWhileKeysChange) {
  constexpr int kCount = 2500;
  const EtcdMembers members(1);
  WaitingClient client(members.endpoints()), writer(members.endpoints());
  PutNumberedKeys(client, kCount);
  // Each transaction gives the first and the last key the same new value.
  std::atomic<bool> is_over = false;
  std::thread changes([&] {
    for (int i = 0; !is_over; ++i) {
      const std::string value = std::to_string(i);
      writer.RunUntilAnswered({.compares = {},
                               .puts = {{NumberedKey(0), value}, {NumberedKey(kCount - 1), value}},
                               .reads = {}});
    }
  });
  // Until the values have changed ten times between two lists.
  std::set<std::string> seen;
  while (seen.size() < 10) {
    const auto listed = client.ListUntilAnswered("k/", "k0");
    EXPECT_EQ(std::ssize(listed), kCount);
    if (seen.empty() && listed.front().value != listed.back().value) continue;  // No change yet.
    EXPECT_EQ(listed.front().value, listed.back().value);
    seen.insert(listed.front().value);
  }
  is_over = true;
  changes.join();
}

// A member that answers each request for a page as the test says.
class ScriptedMember final : public pb::KV::Service {
 public:
  using Answer = std::function<grpc::Status(const pb::RangeRequest&, pb::RangeResponse&)>;

  explicit ScriptedMember(Answer answer) : answer_(std::move(answer)) {}

  const std::string& endpoint() const { return served_.endpoint(); }

 private:
  grpc::Status Range(grpc::ServerContext*, const pb::RangeRequest* request,
                     pb::RangeResponse* response) override {
    response->mutable_header()->set_cluster_id(1);
    return answer_(*request, *response);
  }

  const Answer answer_;
  const ServedMember served_{*this};  // Declared last, because it uses the other members.
};

// Lists ["a", "b") of a member with these answers.
absl::StatusOr<std::vector<EtcdKeyValue>> ListOf(ScriptedMember::Answer answer) {
  const ScriptedMember member(std::move(answer));
  WaitingClient client({member.endpoint()}, /*call_timeout=*/absl::Minutes(1));
  return client.List("a", "b");
}

void AddKey(const std::string& key, pb::RangeResponse& page) {
  pb::KeyValue& added = *page.add_kvs();
  added.set_key(key);
  added.set_value("value");
}

// Pages of two keys each, of which there are two. The second page of the first `compacted` lists is
// refused, because their revision was compacted.
class CompactedPages {
 public:
  explicit CompactedPages(int compacted) : compacted_(compacted) {}

  grpc::Status operator()(const pb::RangeRequest& request, pb::RangeResponse& page) {
    if (request.revision() == 0) {
      EXPECT_EQ(request.key(), "a");
      page.mutable_header()->set_revision(++revision_);
      for (const char* end : {"1", "2"}) AddKey(absl::StrCat("a", revision_, end), page);
      page.set_more(true);
      return grpc::Status::OK;
    }
    EXPECT_EQ(request.revision(), revision_);
    EXPECT_EQ(request.key(), absl::StrCat("a", revision_, "2") + '\0');
    if (revision_ <= compacted_) {
      return {grpc::StatusCode::OUT_OF_RANGE,
              "etcdserver: mvcc: required revision has been compacted"};
    }
    AddKey(absl::StrCat("a", revision_, "3"), page);
    return grpc::Status::OK;
  }

 private:
  const std::int64_t compacted_;
  std::int64_t revision_ = 0;
};

TEST(EtcdListTest, AListWhoseRevisionWasCompactedBeginsAgainOnce) {
  const auto listed = ListOf(CompactedPages(1));
  ASSERT_THAT(listed.status(), IsOk());
  EXPECT_THAT(*listed, ElementsAre(EtcdKeyValue{"a21", "value"}, EtcdKeyValue{"a22", "value"},
                                   EtcdKeyValue{"a23", "value"}));
  EXPECT_THAT(ListOf(CompactedPages(2)).status(),
              StatusIs(absl::StatusCode::kOutOfRange, "compacted"));
}

TEST(EtcdListTest, AListEndsWhateverAMemberAnswers) {
  const auto always = [](std::vector<std::string> keys) {
    return [keys = std::move(keys)](const pb::RangeRequest&, pb::RangeResponse& page) {
      for (const std::string& key : keys) AddKey(key, page);
      page.set_more(true);
      return grpc::Status::OK;
    };
  };
  using Keys = std::vector<std::string>;
  for (const Keys& keys : {Keys{}, Keys{"a1"}, Keys{"a2", "a1"}, Keys{"a1", "a1"}, Keys{"b"}}) {
    EXPECT_THAT(ListOf(always(keys)).status(), StatusIs(absl::StatusCode::kInternal, "etcd's"));
  }
}

TEST(EtcdListTest, AMemberThatHasTooManyRequestsIsNoListThatIsTooLong) {
  EXPECT_THAT(ListOf([](const pb::RangeRequest&, pb::RangeResponse&) {
                return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                    "etcdserver: too many requests");
              }).status(),
              StatusIs(absl::StatusCode::kUnavailable, "too many requests"));
}

TEST(EtcdListTest, MoreKeysThanMayBeListedAreRefused) {
  const auto pages_of = [](std::size_t count) {
    return [count, sent = std::size_t{0}](const pb::RangeRequest& request,
                                          pb::RangeResponse& page) mutable {
      for (std::int64_t i = 0; i < request.limit() && sent < count; ++i) {
        AddKey(absl::StrFormat("a%06d", sent++), page);
      }
      page.set_more(sent < count);
      page.mutable_header()->set_revision(1);
      return grpc::Status::OK;
    };
  };
  const auto all = ListOf(pages_of(Etcd::kListedKeysMax));
  ASSERT_THAT(all.status(), IsOk());
  EXPECT_EQ(all->size(), Etcd::kListedKeysMax);
  EXPECT_THAT(ListOf(pages_of(Etcd::kListedKeysMax + 1)).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, "more than"));
}

}  // namespace
}  // namespace softlookup::server
