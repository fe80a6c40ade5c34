// A router in front of a group of three: where lookups go, that everybody sees what was
// acknowledged to anybody, and what clients notice when nodes die. With real servers and a real
// etcd.
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/router_cluster.h"
#include "tests/integration/scrape.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

// How often a test repeats what it could miss once in a while.
int Times(int times) {
  return std::getenv("SOFTLOOKUP_LONG_TESTS") == nullptr ? times : 10 * times;
}

class RouterReplicasTest : public ::testing::Test {
 protected:
  explicit RouterReplicasTest(int etcd_members = 1) : cluster_(etcd_members) {
    cluster_.Found("g", "n1");
    cluster_.Add("n1", "n2");
    // With several members, n3 hears of entries by the last one alone.
    cluster_.Add("n1", "n3", {cluster_.etcd().endpoints().back()});
    cluster_.StartRouter();
    stub_ = StubOf(cluster_.router());
    cluster_.AwaitConnected({"n1", "n2", "n3"});
  }

  // Returns the number of rows that each of some lookups in a row finds, more than there are nodes.
  void ExpectRows(const std::string& store, std::uint64_t expected) {
    for (int i = 0; i < 6; ++i) {
      std::uint64_t rows = 0;
      ASSERT_THAT(LookUp(*stub_, store, &rows), IsGrpcOk());
      ASSERT_EQ(rows, expected);
    }
  }
  void ExpectGone(const std::string& store) {
    for (int i = 0; i < 6; ++i) {
      std::uint64_t rows = 0;
      ASSERT_EQ(ReasonOf(LookUp(*stub_, store, &rows)), "STORE_NOT_FOUND");
    }
  }
  grpc::Status Rename(const std::string& store, const std::string& new_name) {
    CallContext context;
    v1::RenameStoreRequest request;
    request.set_store(store);
    request.set_new_name(new_name);
    v1::RenameStoreResponse response;
    return stub_->RenameStore(&context, request, &response);
  }

  RouterCluster cluster_;
  std::unique_ptr<v1::SoftLookup::Stub> stub_;
};

// Threads that ask the router again and again, with calls that are never sent twice by gRPC.
class Lookups {
 public:
  Lookups(const ServerProcess& router, int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, stub = StubOf(router)] {
        while (!ends_) {
          std::uint64_t rows = 0;
          EXPECT_THAT(LookUp(*stub, "s", &rows), IsGrpcOk());
          ++done_;
          LetPass(absl::Milliseconds(1));  // What is tested is that none fails, and not how many.
        }
      });
    }
  }
  ~Lookups() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  // Waits for as many more.
  void Await(int count) const {
    const int begin = done_;
    EXPECT_TRUE(AwaitThat([&] { return done_ >= begin + count; }));
  }

 private:
  std::atomic<bool> ends_{false};
  std::atomic<int> done_{0};
  std::vector<std::thread> threads_;
};

// A writer that has each sequence acknowledged before it sends the next, by calls that are never
// sent twice by gRPC. Only UNAVAILABLE is tried again.
class Writer {
 public:
  explicit Writer(const ServerProcess& router)
      : thread_([this, stub = StubOf(router)] {
          for (std::uint64_t sequence = 1; !ends_; ++sequence) {
            v1::AppendRequest request = OneRow("s", static_cast<float>(sequence));
            request.set_writer("w");
            request.set_sequence(sequence);
            grpc::Status status = Append(*stub, request);
            while (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
              ++failed_;
              status = Append(*stub, request);
            }
            EXPECT_THAT(status, IsGrpcOk());
            acknowledged_ = sequence;
          }
        }) {}
  ~Writer() { Stop(); }

  void Await(std::uint64_t count) const {
    const std::uint64_t begin = acknowledged_;
    EXPECT_TRUE(AwaitThat([&] { return acknowledged_ >= begin + count; }));
  }
  // Returns the last sequence that was acknowledged.
  std::uint64_t Stop() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    return acknowledged_;
  }
  int failed() const { return failed_; }

 private:
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> acknowledged_{0};
  std::atomic<int> failed_{0};
  std::thread thread_;
};

TEST_F(RouterReplicasTest, LookupsAreSpreadOverAllNodes) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  ASSERT_THAT(Append(*stub_, OneRow("s", 1)), IsGrpcOk());
  cluster_.AwaitEqual("n1");
  std::map<std::string, double> before;
  const auto served = [&](const std::string& node) {
    return MetricOf(cluster_.node(node), "softlookup_calls_total{method=\"Lookup\",code=\"OK\"}");
  };
  const auto answered = [&](const std::string& node) {
    return NodeMetric(cluster_.router(), "calls_total", node, ",result=\"answered\"");
  };
  const std::vector<std::string> nodes = {"n1", "n2", "n3"};
  for (const std::string& node : nodes) before[node] = served(node);
  constexpr int kCount = 300;
  ExpectRows("s", 1);
  for (int i = 6; i < kCount; ++i) {
    std::uint64_t rows = 0;
    ASSERT_THAT(LookUp(*stub_, "s", &rows), IsGrpcOk());
  }
  double sum = 0;
  for (const std::string& node : nodes) {
    const double count = served(node) - before[node];
    EXPECT_GT(count, kCount / 6) << node;
    EXPECT_GE(answered(node), count) << node;
    EXPECT_EQ(NodeMetric(cluster_.router(), "calls_in_progress", node), 0) << node;
    EXPECT_EQ(NodeMetric(cluster_.router(), "node_primary", node), node == "n1") << node;
    sum += count;
  }
  EXPECT_EQ(sum, kCount) << "none was asked twice";
}

TEST_F(RouterReplicasTest, WhatWasAcknowledgedIsSeenAtOnce) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  std::uint64_t rows = 0;
  for (int i = 0; i < Times(300); ++i) {
    ASSERT_THAT(Append(*stub_, OneRow("s", 1)), IsGrpcOk());
    ++rows;
    std::uint64_t found = 0;
    ASSERT_THAT(LookUp(*stub_, "s", &found), IsGrpcOk());
    ASSERT_EQ(found, rows);
  }
  CallContext context;
  context.set_deadline(std::chrono::system_clock::time_point::max());
  const auto stream = stub_->StreamAppend(&context);
  for (int i = 0; i < Times(200); ++i) {
    ASSERT_TRUE(stream->Write(OneRow("s", 1)));
    v1::AppendResponse response;
    ASSERT_TRUE(stream->Read(&response));
    ++rows;
    std::uint64_t found = 0;
    ASSERT_THAT(LookUp(*stub_, "s", &found), IsGrpcOk());
    ASSERT_EQ(found, rows);
  }
  stream->WritesDone();
  EXPECT_THAT(stream->Finish(), IsGrpcOk());
  for (int i = 0; i < Times(20); ++i) {
    ASSERT_THAT(DeleteStore(*stub_, "s"), IsGrpcOk());
    ExpectGone("s");
    ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
    ExpectRows("s", 0);
    ASSERT_THAT(Append(*stub_, OneRow("s", 1)), IsGrpcOk());
    ASSERT_THAT(Append(*stub_, OneRow("s", 1)), IsGrpcOk());
    ExpectRows("s", 2);
    ASSERT_THAT(Rename("s", "t"), IsGrpcOk());
    ExpectGone("s");
    ExpectRows("t", 2);
    ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
    ExpectRows("s", 0);
    ASSERT_THAT(DeleteStore(*stub_, "t"), IsGrpcOk());
  }
}

class RouterLaggingReplicaTest : public RouterReplicasTest {
 protected:
  RouterLaggingReplicaTest() : RouterReplicasTest(/*etcd_members=*/3) {}
};

// n3 answers, but hears of nothing new.
TEST_F(RouterLaggingReplicaTest, ANodeThatIsBehindShowsNothingOld) {
  for (const char* store : {"s", "gone", "again", "old"}) {
    ASSERT_THAT(CreateStore(*stub_, store), IsGrpcOk());
    for (int i = 0; i < 3; ++i) ASSERT_THAT(Append(*stub_, OneRow(store, 1)), IsGrpcOk());
  }
  cluster_.AwaitEqual("n1");
  cluster_.etcd().Freeze(2);
  ASSERT_THAT(Append(*stub_, OneRow("s", 1)), IsGrpcOk());
  ExpectRows("s", 4);
  ASSERT_THAT(DeleteStore(*stub_, "gone"), IsGrpcOk());
  ExpectGone("gone");
  ASSERT_THAT(DeleteStore(*stub_, "again"), IsGrpcOk());
  ASSERT_THAT(CreateStore(*stub_, "again"), IsGrpcOk());
  ExpectRows("again", 0);
  ASSERT_THAT(Append(*stub_, OneRow("again", 1)), IsGrpcOk());
  ExpectRows("again", 1);
  ASSERT_THAT(Rename("old", "new"), IsGrpcOk());
  ExpectGone("old");
  ExpectRows("new", 3);
  ASSERT_THAT(CreateStore(*stub_, "fresh"), IsGrpcOk());
  ExpectRows("fresh", 0);
  CallContext context;
  const auto stream = stub_->StreamLookup(&context);
  for (const char* store : {"s", "again", "new", "fresh"}) {
    ASSERT_TRUE(stream->Write(OneLookup(store)));
  }
  for (const std::uint64_t rows : {4, 1, 3, 0}) {
    v1::LookupResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.error().code(), 0) << response.error().message();
    EXPECT_EQ(response.row_count(), rows);
  }
  stream->WritesDone();
  EXPECT_THAT(stream->Finish(), IsGrpcOk());
  cluster_.etcd().Thaw(2);
}

// The lookups of the stopped node go to another one while the node still seems to be there.
TEST_F(RouterReplicasTest, AFrozenNodeHoldsNoLookupBack) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  Lookups lookups(cluster_.router(), 6);
  lookups.Await(100);
  kill(cluster_.node("n3").pid(), SIGSTOP);
  lookups.Await(300);
  EXPECT_EQ(NodeMetric(cluster_.router(), "node_connected", "n3"), 1);
  kill(cluster_.node("n3").pid(), SIGCONT);
  lookups.Await(100);
}

TEST_F(RouterReplicasTest, NothingFailsWhenAFollowerDies) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  {
    const Lookups lookups(cluster_.router(), 3);
    Writer writer(cluster_.router());
    writer.Await(20);
    cluster_.node("n2").Stop(SIGKILL);
    lookups.Await(200);
    writer.Await(20);
    cluster_.Restart("n2");
    cluster_.AwaitConnected({"n2"});
    lookups.Await(200);
    const std::uint64_t last = writer.Stop();
    EXPECT_EQ(writer.failed(), 0);
    ExpectRows("s", last);
  }
}

TEST_F(RouterReplicasTest, NoLookupFailsWhenThePrimaryDiesAndEachWriteIsThereOnce) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  const Lookups lookups(cluster_.router(), 3);
  Writer writer(cluster_.router());
  writer.Await(20);
  cluster_.node("n1").Stop(SIGKILL);
  lookups.Await(200);
  writer.Await(20);
  ExpectRows("s", writer.Stop());
}

// It loses nothing: what comes then goes to the node that leads next.
TEST_F(RouterReplicasTest, NothingFailsWhenThePrimaryStops) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  const Lookups lookups(cluster_.router(), 3);
  std::atomic<bool> ends = false;
  std::atomic<int> written = 0;
  // Without a writer, so nothing may be sent twice.
  std::thread writer([&, stub = StubOf(cluster_.router())] {
    while (!ends) {
      EXPECT_THAT(Append(*stub, OneRow("s", 1)), IsGrpcOk());
      ++written;
    }
  });
  const auto await = [&](int count) {
    const int begin = written;
    EXPECT_TRUE(AwaitThat([&] { return written >= begin + count; }));
  };
  await(20);
  EXPECT_EQ(cluster_.node("n1").Stop(SIGTERM), 0);
  await(20);
  lookups.Await(100);
  ends = true;
  writer.join();
  ExpectRows("s", static_cast<std::uint64_t>(written));
}

TEST_F(RouterReplicasTest, AWriteWhosePrimaryDiesIsSentOnce) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  grpc::Status status;
  bool was_refused = true;
  // A primary that has lost etcd already refuses the write at once.
  while (was_refused) {
    cluster_.etcd().Freeze(0);
    std::atomic<bool> has_ended = false;
    std::thread writer([&] {
      status = Append(*StubOf(cluster_.router()), OneRow("s", 1));
      has_ended = true;
    });
    EXPECT_TRUE(AwaitThat(
        [&] { return NodeMetric(cluster_.router(), "calls_in_progress", "n1") > 0 || has_ended; }));
    was_refused = has_ended;
    if (!was_refused) cluster_.node("n1").Stop(SIGKILL);
    writer.join();
    if (was_refused) cluster_.etcd().Thaw(0);
  }
  EXPECT_EQ(ReasonOf(status), "CLUSTER_UNAVAILABLE") << status.error_message();
  EXPECT_EQ(InfoOf(status).metadata().at("written"), "unknown");
  cluster_.etcd().Thaw(0);
  grpc::Status created;
  EXPECT_TRUE(AwaitThat([&] {
    created = CreateStore(*stub_, "t");
    return created.error_code() != grpc::StatusCode::UNAVAILABLE;
  }));
  EXPECT_THAT(created, IsGrpcOk());
  std::uint64_t rows = 0;
  EXPECT_THAT(LookUp(*stub_, "s", &rows), IsGrpcOk());
  EXPECT_LE(rows, 1u);
  EXPECT_EQ(NodeMetric(cluster_.router(), "calls_in_progress", "n1"), 0);
}

}  // namespace
}  // namespace softlookup::testing
