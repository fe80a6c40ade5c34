// A router in front of two groups: where tenants live, and what is told of both. With real servers
// and a real etcd.
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/router_cluster.h"
#include "tests/integration/scrape.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

using ::testing::HasSubstr;

// The groups "g1" and "g2" of the nodes "a" and "b". The new tenants "acme", "a" and "zoo" are for
// g1; "users" and "7" are for g2.
class RouterGroupsTest : public ::testing::Test {
 protected:
  RouterGroupsTest() {
    cluster_.Found("g1", "a");
    cluster_.Found("g2", "b");
    cluster_.StartRouter();
    stub_ = StubOf(cluster_.router());
    at_a_ = StubOf(cluster_.node("a"));
    at_b_ = StubOf(cluster_.node("b"));
    // Until the router knows both groups, and can reach their nodes.
    for (const char* sample : {"softlookup_router_node_connected{group=\"g1\",node=\"a\"}",
                               "softlookup_router_node_connected{group=\"g2\",node=\"b\"}"}) {
      EXPECT_TRUE(AwaitThat([&] { return MetricOf(cluster_.router(), sample) > 0; }));
    }
  }

  static bool Has(v1::SoftLookup::Stub& stub, const std::string& store) {
    std::uint64_t rows = 0;
    const grpc::Status status = LookUp(stub, store, &rows);
    if (!status.ok()) {
      EXPECT_EQ(ReasonOf(status), "STORE_NOT_FOUND") << status.error_message();
    }
    return status.ok();
  }
  grpc::Status Rename(const std::string& store, const std::string& new_name) {
    CallContext context;
    v1::RenameStoreRequest request;
    request.set_store(store);
    request.set_new_name(new_name);
    v1::RenameStoreResponse response;
    return stub_->RenameStore(&context, request, &response);
  }
  // The names that a listing gives, page by page.
  std::vector<std::string> NamesOf(const std::string& prefix, int page_size) {
    std::vector<std::string> names;
    v1::ListStoresRequest request;
    request.set_prefix(prefix);
    request.set_page_size(page_size);
    v1::ListStoresResponse page;
    do {
      CallContext context;
      EXPECT_THAT(stub_->ListStores(&context, request, &page), IsGrpcOk());
      EXPECT_LE(page.stores_size(), page_size);
      EXPECT_TRUE(page.stores_size() > 0 || page.next_page_token().empty());
      for (const v1::Store& store : page.stores()) names.push_back(store.name());
      request.set_page_token(page.next_page_token());
    } while (!page.next_page_token().empty());
    return names;
  }

  RouterCluster cluster_;
  std::unique_ptr<v1::SoftLookup::Stub> stub_, at_a_, at_b_;
};

TEST_F(RouterGroupsTest, ANodeTellsItsGroupInItsMetrics) {
  EXPECT_EQ(MetricOf(cluster_.node("a"),
                     "softlookup_replication_info{cluster=\"c\",group=\"g1\",node=\"a\"}"),
            1);
  EXPECT_EQ(MetricOf(cluster_.node("b"),
                     "softlookup_replication_info{cluster=\"c\",group=\"g2\",node=\"b\"}"),
            1);
}

TEST_F(RouterGroupsTest, ATenantStaysInItsGroup) {
  for (const char* tenant : {"acme", "users", "a", "7", "zoo"}) {
    const bool is_for_a = std::string("acme a zoo").find(tenant) != std::string::npos;
    for (const std::string& store : {std::string(tenant), absl::StrCat(tenant, "/x/y")}) {
      EXPECT_FALSE(Has(*stub_, store));
      ASSERT_THAT(CreateStore(*stub_, store), IsGrpcOk());
      ASSERT_THAT(Append(*stub_, OneRow(store, 1)), IsGrpcOk());
      EXPECT_TRUE(Has(*stub_, store));
      EXPECT_EQ(Has(*at_a_, store), is_for_a) << store;
      EXPECT_EQ(Has(*at_b_, store), !is_for_a) << store;
    }
  }
  ASSERT_THAT(DeleteStore(*stub_, "users"), IsGrpcOk());
  EXPECT_FALSE(Has(*stub_, "users"));
  EXPECT_TRUE(Has(*stub_, "users/x/y"));
}

TEST_F(RouterGroupsTest, ATenantThatAnotherGroupHasIsFound) {
  // Not where the router would have put it. The router has heard that nobody has it.
  EXPECT_FALSE(Has(*stub_, "zoo/x"));
  ASSERT_THAT(CreateStore(*at_b_, "zoo/x"), IsGrpcOk());
  ASSERT_THAT(CreateStore(*stub_, "zoo/y"), IsGrpcOk());
  EXPECT_TRUE(Has(*at_b_, "zoo/y"));
  EXPECT_TRUE(Has(*stub_, "zoo/x"));
  EXPECT_TRUE(Has(*stub_, "zoo/y"));
  // The router has never heard of this one.
  ASSERT_THAT(CreateStore(*at_b_, "a/x"), IsGrpcOk());
  EXPECT_TRUE(Has(*stub_, "a/x"));
}

TEST_F(RouterGroupsTest, ANewNameOfAnotherGroupsTenantIsRefused) {
  ASSERT_THAT(CreateStore(*stub_, "acme/x"), IsGrpcOk());
  ASSERT_THAT(CreateStore(*stub_, "users/x"), IsGrpcOk());
  EXPECT_EQ(ReasonOf(Rename("acme/x", "users/y")), "TENANT_ELSEWHERE");
  EXPECT_TRUE(Has(*stub_, "acme/x"));
  EXPECT_TRUE(Has(*stub_, "users/x"));
  EXPECT_THAT(Rename("acme/x", "acme/y"), IsGrpcOk());
  EXPECT_TRUE(Has(*stub_, "acme/y"));
}

TEST_F(RouterGroupsTest, AListingMergesThePagesOfAllGroups) {
  EXPECT_TRUE(NamesOf("", 3).empty());
  std::vector<std::string> names;
  for (const char* tenant : {"7", "a", "acme", "users", "zoo"}) {
    for (int i = 0; i < 5; ++i) {
      names.push_back(absl::StrCat(tenant, "/", i));
      ASSERT_THAT(CreateStore(*stub_, names.back()), IsGrpcOk());
    }
  }
  for (const int page_size : {1, 2, 3, 7, 24, 25, 26, 1'000}) {
    EXPECT_EQ(NamesOf("", page_size), names) << page_size;
  }
  EXPECT_EQ(NamesOf("a", 3), std::vector<std::string>(names.begin() + 5, names.begin() + 15));
  EXPECT_EQ(NamesOf("users/", 2), std::vector<std::string>(names.begin() + 15, names.begin() + 20));
  EXPECT_TRUE(NamesOf("nobody/", 2).empty());
  v1::ListStoresRequest request;
  request.set_page_token("\x01wrong");
  CallContext context;
  v1::ListStoresResponse page;
  EXPECT_THAT(stub_->ListStores(&context, request, &page), IsGrpcOk());
}

TEST_F(RouterGroupsTest, WhatIsAboutOneGroupIsRefused) {
  Client client = ClientOf(cluster_.router());
  for (const absl::Status& status :
       {client.GetGroup().status(), client.AddReplica("x").status(),
        client.RemoveReplica("x").status(), client.MovePrimary().status(),
        client.CreateBackup("b").status(), client.ListBackups().status()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 "The cluster has several groups (g1, g2)"));
  }
}

TEST_F(RouterGroupsTest, NamesOfNoStoreAreAnsweredAsANodeDoes) {
  for (const std::string& name :
       {std::string(), std::string("/"), std::string("/x"), std::string("\x01\x02"),
        std::string("a b/c"), std::string(200, 'x'), std::string(200, 'x') + "/y",
        std::string(127, 'x') + "/yy", std::string("nobody/x")}) {
    std::uint64_t rows = 0;
    const grpc::Status routed = LookUp(*stub_, name, &rows);
    const grpc::Status direct = LookUp(*at_a_, name, &rows);
    EXPECT_FALSE(routed.ok());
    ExpectSameAnswer({.status = routed}, {.status = direct}, ::testing::PrintToString(name));
    EXPECT_EQ(ReasonOf(CreateStore(*stub_, name + "..")), "INVALID_NAME");
  }
}

// Anybody can make up tenants.
TEST_F(RouterGroupsTest, ManyUnknownTenantsAtOnceAreAnswered) {
  ASSERT_THAT(CreateStore(*stub_, "acme/s"), IsGrpcOk());
  CallContext context;
  const auto stream = stub_->StreamLookup(&context);
  int found = 0, unknown = 0, refused = 0;
  constexpr int kCount = 2'000;
  std::thread writer([&] {
    for (int i = 0; i < kCount; ++i) {
      stream->Write(OneLookup(i % 10 == 0 ? "acme/s" : absl::StrCat("nobody", i, "/s")));
    }
    stream->WritesDone();
  });
  v1::LookupResponse response;
  while (stream->Read(&response)) {
    found += response.error().code() == 0;
    unknown += response.error().code() == grpc::StatusCode::NOT_FOUND;
    refused += response.error().code() == grpc::StatusCode::UNAVAILABLE;
  }
  writer.join();
  EXPECT_THAT(stream->Finish(), IsGrpcOk());
  EXPECT_EQ(found, kCount / 10);
  EXPECT_EQ(unknown + refused, kCount - found);
  EXPECT_GT(unknown, 0);
}

}  // namespace
}  // namespace softlookup::testing
