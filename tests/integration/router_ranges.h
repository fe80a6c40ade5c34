#ifndef SOFTLOOKUP_TESTS_INTEGRATION_ROUTER_RANGES_H_
#define SOFTLOOKUP_TESTS_INTEGRATION_ROUTER_RANGES_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/router_cluster.h"
#include "tests/integration/scrape.h"

namespace softlookup::testing {

// A group of three nodes behind a router, and one store, which is cut into ranges.
class RouterRangesTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kKeyDim = 512;
  static constexpr std::int64_t kValueDim = 24;
  static constexpr char kStore[] = "s";
  static constexpr std::int64_t kRowsPerAppend = 1024;

  explicit RouterRangesTest(const std::vector<std::string>& node_flags = {}) {
    const auto flags_of = [&](const std::string& node) {
      std::vector<std::string> flags = node_flags;
      flags.insert(flags.end(), {"--backup-dir", BackupsOf(node)});
      return flags;
    };
    cluster_.Found("g", "n1", flags_of("n1"));
    cluster_.Add("n1", "n2", /*etcd=*/{}, flags_of("n2"));
    cluster_.Add("n1", "n3", /*etcd=*/{}, flags_of("n3"));
    cluster_.StartRouter();
    router_ = StubOf(cluster_.router());
    node_ = StubOf(cluster_.node("n1"));
    cluster_.AwaitConnected({"n1", "n2", "n3"});
  }

  void Create(const v1::Store& store) {
    CallContext context;
    v1::CreateStoreRequest request;
    *request.mutable_store() = store;
    v1::Store response;
    ASSERT_THAT(router_->CreateStore(&context, request, &response), IsGrpcOk());
  }
  // Appends random rows at positions [begin, end) with ids and a label for each third one.
  void Fill(std::int64_t end, std::int64_t begin = 0) {
    for (std::int64_t first = begin; first < end; first += kRowsPerAppend) {
      v1::AppendRequest request;
      request.set_store(kStore);
      *request.mutable_keys() = Message(draw_.Normal(kRowsPerAppend * kKeyDim), kKeyDim);
      *request.mutable_values() = Message(draw_.Normal(kRowsPerAppend * kValueDim), kValueDim);
      for (std::int64_t row = first; row < first + kRowsPerAppend; ++row) {
        request.add_ids(static_cast<std::uint64_t>(row));
        v1::RowLabels& labels = *request.add_row_labels();
        if (row % 3 == 0) labels.add_labels("third");
      }
      ASSERT_THAT(Append(*router_, request), IsGrpcOk());
    }
  }
  // Makes a backup, which is then at the node that is the primary, and copies it to the others: on
  // a busy machine another one may be the primary when it is restored.
  void BackUp(const std::string& backup) {
    ASSERT_THAT(ClientOf(cluster_.router()).CreateBackup(backup), IsOk());
    const std::vector<std::string> nodes = {"n1", "n2", "n3"};
    const auto holder = std::ranges::find_if(nodes, [&](const std::string& node) {
      return std::filesystem::exists(BackupsOf(node) + "/" + backup);
    });
    ASSERT_NE(holder, nodes.end());
    for (const std::string& node : nodes) {
      if (node == *holder) continue;
      std::filesystem::copy(BackupsOf(*holder) + "/" + backup, BackupsOf(node) + "/" + backup,
                            std::filesystem::copy_options::recursive);
    }
  }
  std::string BackupsOf(const std::string& node) {
    return cluster_.Path(absl::StrCat("backups-", node));
  }
  void Split(int ranges) { cluster_.Split(kStore, ranges); }
  void Rebalance(const std::string& nodes) { cluster_.Rebalance(kStore, nodes); }
  grpc::Status LookUpAt(v1::SoftLookup::Stub& stub, const v1::LookupRequest& request,
                        v1::LookupResponse* response) {
    CallContext context;
    response->Clear();
    return stub.Lookup(&context, request, response);
  }
  // Looks up in all rows until `ends`, and counts in `asked`. No lookup may fail, and each must
  // count as many rows as expected_rows(its answer).
  std::thread StartReader(
      const std::atomic<bool>& ends, std::atomic<int>& asked,
      const std::function<std::uint64_t(const v1::LookupResponse&)>& expected_rows) {
    return std::thread([this, &ends, &asked, expected_rows, request = Request(1),
                        stub = StubOf(cluster_.router())] {
      while (!ends) {
        v1::LookupResponse response;
        ASSERT_THAT(LookUpAt(*stub, request, &response), IsGrpcOk());
        ASSERT_EQ(response.stats(0).counted_rows(), expected_rows(response));
        ++asked;
      }
    });
  }
  double AnsweredAt(const std::string& node, const std::string& method) {
    return MetricOf(cluster_.node(node),
                    absl::StrCat("softlookup_calls_total{method=\"", method, "\",code=\"OK\"}"));
  }
  double PartsAt(const std::string& node) {
    return AnsweredAt(node, "AnswerPart") + AnsweredAt(node, "AnswerFirstPart");
  }

  v1::LookupRequest Request(std::int64_t queries) {
    v1::LookupRequest request;
    request.set_store(kStore);
    *request.mutable_queries() = Message(draw_.Normal(queries * kKeyDim), kKeyDim);
    return request;
  }
  RouterCluster cluster_;
  Draw draw_{20261129};
  std::unique_ptr<v1::SoftLookup::Stub> router_, node_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_INTEGRATION_ROUTER_RANGES_H_
