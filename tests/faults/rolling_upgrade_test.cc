// Replaces the nodes of a group of three and two routers with those of this build, one after
// another, while clients of nodes and of routers write and look up all the time. No call fails that
// is made again once, and nothing that was acknowledged is lost.
//
// In the environment, SOFTLOOKUP_TEST_LAST_VERSION_SERVER is the path of the server to begin with,
// such as that of the last version. Default: this build's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "softlookup/client.h"
#include "tests/faults/group_faults/client.h"
#include "tests/faults/group_faults/group.h"
#include "tests/faults/group_faults/router.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

constexpr char kStore[] = "s";

std::string LastVersionServer() {
  const char* const path = std::getenv("SOFTLOOKUP_TEST_LAST_VERSION_SERVER");
  return path == nullptr ? ServerBinary() : path;
}

softlookup::Client Connect(const std::string& addresses) {
  return *softlookup::Client::Connect(addresses, PatientOptions());
}

// Whether a failed write was certainly not made, so that anyone may send it again.
bool WasNotMade(const absl::Status& status) {
  return RetryDelay(status).has_value() || ErrorMetadata(status)["written"] == "no" ||
         (absl::IsCancelled(status) && ErrorReason(status).empty());
}

// Prints what happens now.
void Say(const std::string& what) {
  std::cout << absl::FormatTime("%H:%M:%E1S ", absl::Now(), absl::LocalTimeZone()) << what
            << std::endl;
}

// A client that writes a row and looks it up, again and again. The client library may repeat a
// write that has a writer and a sequence, and a lookup. Any other write is repeated here, once, if
// it was certainly not made.
class Caller {
 public:
  enum class Writes : bool { kOnce, kWithWriter };

  // Keys are the numbers of rows, from 1, and values are `index`.
  Caller(int index, const std::string& addresses, Writes writes)
      : index_(index), writes_(writes), client_(Connect(addresses)), thread_([this] { Run(); }) {}
  ~Caller() { Stop(); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void Stop() {
    must_stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::uint64_t done() const { return done_; }

  // Call these after Stop().
  const std::set<std::uint64_t>& acknowledged() const { return acknowledged_; }
  const std::vector<std::string>& failures() const { return failures_; }
  std::string summary() const {
    return absl::StrCat(done_.load(), " rows written and looked up, ", repeated_,
                        " writes repeated, longest time of both ", absl::FormatDuration(longest_));
  }

 private:
  void Run() {
    for (std::uint64_t number = 1; !must_stop_; ++number) {
      const absl::Time begin = absl::Now();
      const absl::StatusOr<v1::AppendResponse> written = Write(number);
      if (!written.ok()) {
        Note(absl::StrCat("write ", number, ": "), written.status());
        continue;
      }
      acknowledged_.insert(number);
      const float query = 1;
      const absl::StatusOr<LookupAnswer> answer =
          client_.Lookup(kStore, {absl::MakeConstSpan(&query, 1), 1, 1},
                         LookupOptions{.min_revision = written->revision()});
      if (!answer.ok()) {
        Note(absl::StrCat("lookup ", number, ": "), answer.status());
        continue;
      }
      if (answer->row_count < written->row_count()) Note("a lookup without the row", {});
      longest_ = std::max(longest_, absl::Now() - begin);
      ++done_;
    }
  }

  absl::StatusOr<v1::AppendResponse> Write(std::uint64_t number) {
    v1::AppendRequest request;
    request.set_store(kStore);
    SetRows(1, static_cast<float>(number), static_cast<float>(index_), request);
    if (writes_ == Writes::kWithWriter) {
      request.set_writer(absl::StrCat("w", index_));
      request.set_sequence(number);
      return client_.Append(request);
    }
    absl::StatusOr<v1::AppendResponse> written = client_.Append(request);
    if (written.ok() || !WasNotMade(written.status())) return written;
    ++repeated_;
    LetPass(RetryDelay(written.status()).value_or(absl::ZeroDuration()));
    return client_.Append(request);
  }

  void Note(const std::string& what, const absl::Status& status) {
    failures_.push_back(absl::StrCat(what, status.ToString(), " ", ErrorReason(status)));
    LetPass(absl::Milliseconds(100));
  }

  const int index_;
  const Writes writes_;
  softlookup::Client client_;
  std::atomic<bool> must_stop_ = false;
  std::atomic<std::uint64_t> done_ = 0;
  int repeated_ = 0;
  absl::Duration longest_;
  std::set<std::uint64_t> acknowledged_;
  std::vector<std::string> failures_;
  std::thread thread_;  // Declared last, because it uses the other members.
};

class RollingUpgradeTest : public ::testing::Test {
 protected:
  RollingUpgradeTest() {
    const std::string last = LastVersionServer();
    for (int i = 0; i < Group::kNodes; ++i) group_.node(i).SetProgram(last);
    group_.Start();
    // Nodes of versions before routers do not answer any, so that all clients call nodes.
    const bool has_routers = absl::StrContains(RunCommand({last, "--help"}).out, "--router");
    for (int i = 0; has_routers && i < 2; ++i) {
      routers_.push_back(
          std::make_unique<Router>(logs_.path(), group_.etcd().endpoints(), std::nullopt));
      routers_.back()->SetProgram(last);
      routers_.back()->Start();
    }
    MakeStore();
    group_.AwaitCopies();
  }
  ~RollingUpgradeTest() override {
    if (HasFailure()) std::cout << group_.Logs();
  }

  void StartCallers() {
    std::string nodes, routers;
    for (int i = 0; i < Group::kNodes; ++i) {
      absl::StrAppend(&nodes, i == 0 ? "" : ",", group_.node(i).address());
    }
    for (const auto& router : routers_) {
      absl::StrAppend(&routers, routers.empty() ? "" : ",", router->address());
    }
    for (const std::string& addresses : {nodes, routers}) {
      if (addresses.empty()) continue;
      for (const Caller::Writes writes : {Caller::Writes::kOnce, Caller::Writes::kWithWriter}) {
        callers_.push_back(
            std::make_unique<Caller>(static_cast<int>(callers_.size()), addresses, writes));
      }
    }
  }

  // Waits until each caller has written and looked up some more rows.
  void AwaitTraffic() {
    constexpr std::uint64_t kRows = 50;
    std::vector<std::uint64_t> before;
    for (const auto& caller : callers_) before.push_back(caller->done());
    for (std::size_t i = 0; i < callers_.size(); ++i) {
      ASSERT_TRUE(AwaitThat([&] { return callers_[i]->done() >= before[i] + kRows; }));
    }
  }

  // These wait until the new process serves.
  void ReplaceRouter(Router& router) {
    Say("replaces a router");
    router.Stop(SIGTERM);
    Say("it has stopped");
    router.SetProgram(ServerBinary());
    router.Start();
    AwaitServing(router.address());
  }
  void ReplaceNode(Node& node) {
    node.Stop(SIGTERM);
    Say("it has stopped");
    node.SetProgram(ServerBinary());
    node.Start();
    AwaitServing(node.address());
  }

  // The rows of each caller are those that were acknowledged, once each, and the same on all nodes.
  void CheckRows() {
    std::size_t acknowledged = 0;
    for (const auto& caller : callers_) acknowledged += caller->acknowledged().size();
    std::string first;
    for (int i = 0; i < Group::kNodes; ++i) {
      std::string shown;
      std::map<int, std::multiset<std::uint64_t>> numbers;
      const auto stub = group_.node(i).NewStub();
      // A node that follows may be some entries behind the last one that was acknowledged.
      EXPECT_TRUE(AwaitThat([&] {
        std::size_t rows = 0;
        shown.clear();
        numbers.clear();
        const auto add = [&](const v1::ReadRowsResponse& response) {
          for (const v1::Row& row : response.rows()) {
            ++rows;
            row.AppendToString(&shown);
            numbers[static_cast<int>(ComponentOf(row.value()))].insert(
                static_cast<std::uint64_t>(ComponentOf(row.key())));
          }
        };
        return ReadStore(*stub, kStore, add) && rows >= acknowledged;
      })) << "node "
          << i;
      for (std::size_t caller = 0; caller < callers_.size(); ++caller) {
        const std::set<std::uint64_t>& sent = callers_[caller]->acknowledged();
        EXPECT_TRUE(numbers[static_cast<int>(caller)] == std::multiset(sent.begin(), sent.end()))
            << "caller " << caller << " at node " << i;
      }
      if (i == 0) first = shown;
      EXPECT_TRUE(shown == first) << "node " << i;
    }
  }

  Group group_;
  const TemporaryDirectory logs_;
  std::vector<std::unique_ptr<Router>> routers_;
  std::vector<std::unique_ptr<Caller>> callers_;

 private:
  static void AwaitServing(const std::string& address) {
    softlookup::Client client = Connect(address);
    ASSERT_TRUE(AwaitThat([&] {
      const absl::StatusOr<ServingStatus> status = client.Health();
      return status.ok() && *status == ServingStatus::kServing;
    })) << address;
  }

  void MakeStore() {
    const std::atomic<bool> never = false;
    testing::Client(group_).Try(never, [](v1::SoftLookup::Stub& stub,
                                          grpc::ClientContext& context) {
      v1::CreateStoreRequest request;
      request.mutable_store()->set_name(kStore);
      request.mutable_store()->set_key_dim(1);
      request.mutable_store()->set_value_dim(1);
      v1::Store response;
      const grpc::Status status = stub.CreateStore(&context, request, &response);
      return status.error_code() == grpc::StatusCode::ALREADY_EXISTS ? grpc::Status::OK : status;
    });
  }
};

TEST_F(RollingUpgradeTest, NothingFailsAndNothingIsLost) {
  Say("starts clients");
  StartCallers();
  ASSERT_NO_FATAL_FAILURE(AwaitTraffic());
  if (!routers_.empty()) ReplaceRouter(*routers_.front());
  ASSERT_NO_FATAL_FAILURE(AwaitTraffic());
  std::set<int> left = {0, 1, 2};
  while (!left.empty()) {
    // The primary comes last.
    const std::optional<int> primary = group_.Primary();
    ASSERT_TRUE(primary.has_value());
    const auto next = absl::c_find_if(left, [&](int node) { return node != *primary; });
    const int node = next == left.end() ? *primary : *next;
    Say(absl::StrCat("replaces node ", node, node == *primary ? ", the primary" : ""));
    left.erase(node);
    ASSERT_NO_FATAL_FAILURE(ReplaceNode(group_.node(node)));
    ASSERT_NO_FATAL_FAILURE(AwaitTraffic());
    ASSERT_FALSE(HasFailure());
  }
  if (!routers_.empty()) ReplaceRouter(*routers_.back());
  ASSERT_NO_FATAL_FAILURE(AwaitTraffic());
  for (const auto& caller : callers_) caller->Stop();
  for (const auto& caller : callers_) {
    std::cout << caller->summary() << "\n";
    EXPECT_THAT(caller->failures(), ::testing::IsEmpty());
  }
  CheckRows();
}

}  // namespace
}  // namespace softlookup::testing
