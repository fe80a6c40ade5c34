// The golden cases through a router, in stores that are cut into ranges. With real servers and a
// real etcd.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/golden_memories.h"
#include "tests/integration/router_cluster.h"
#include "tests/testing/golden.h"

namespace softlookup::testing {
namespace {

// A range has at least 8,192 positions, so a golden case alone could not be cut. The test puts the
// rows of a case at equal distances on as many positions as 7 ranges have. The last row is at the
// last position. All other positions get rows that the test deletes.
constexpr std::uint64_t kPositions = 7 * 8192;
constexpr std::uint64_t kFirstIdBetween = 1'000'000;

// A golden case whose rows are spread.
struct SpreadCase {
  explicit SpreadCase(const GoldenLookup& lookup)
      : golden(lookup),
        row_count(static_cast<std::uint64_t>(lookup.row_count)),
        stride(row_count > 1 ? (kPositions - 1) / (row_count - 1) : 1) {}

  // Where the row is that the case has at `index`. Rows behind its last one are at the end, too.
  std::uint64_t PositionOf(std::uint64_t index) const {
    return kPositions - 1 - (row_count - 1 - std::min(index, row_count - 1)) * stride;
  }

  const GoldenLookup& golden;
  std::uint64_t row_count;
  std::uint64_t stride;
};

v1::AppendRequest AppendOf(const SpreadCase& spread, const std::string& store) {
  const GoldenLookup& golden = spread.golden;
  std::vector<float> keys(kPositions * static_cast<std::uint64_t>(golden.key_dim), 1);
  std::vector<float> values(kPositions * static_cast<std::uint64_t>(golden.value_dim), 1);
  v1::AppendRequest request;
  request.set_store(store);
  for (std::uint64_t position = 0; position < kPositions; ++position) {
    request.add_ids(kFirstIdBetween + position);
  }
  for (std::uint64_t row = 0; row < spread.row_count; ++row) {
    const std::uint64_t position = spread.PositionOf(row);
    request.set_ids(static_cast<int>(position), row);
    const auto copy = [&](const std::vector<float>& from, std::int64_t dim,
                          std::vector<float>& to) {
      const auto begin = from.begin() + static_cast<std::int64_t>(row) * dim;
      std::copy(begin, begin + dim, to.begin() + static_cast<std::int64_t>(position) * dim);
    };
    copy(golden.keys, golden.key_dim, keys);
    copy(golden.values, golden.value_dim, values);
  }
  *request.mutable_keys() = Message(keys, golden.key_dim);
  *request.mutable_values() = Message(values, golden.value_dim);
  return request;
}

// One query of the case, so that it has a causal_offset of its own.
v1::LookupRequest LookupOf(const SpreadCase& spread, const std::string& store, std::int64_t query) {
  const GoldenLookup& golden = spread.golden;
  v1::LookupRequest request;
  request.set_store(store);
  const auto begin = golden.queries.begin() + query * golden.key_dim;
  *request.mutable_queries() =
      Message(std::vector<float>(begin, begin + golden.key_dim), golden.key_dim);
  AttentionOptions options = golden.options;
  options.causal_offset = spread.PositionOf(options.causal_offset + query);
  // Rows are `stride` times as old.
  if (options.recency_decay) {
    options.recency_decay =
        std::pow(*options.recency_decay, 1 / static_cast<double>(spread.stride));
  }
  *request.mutable_options() = Message(options);
  request.mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
  // The id of no row, so that the list is never empty.
  if (!golden.allowed.empty()) request.mutable_filter()->add_ids(kFirstIdBetween - 1);
  for (std::uint64_t row = 0; row < golden.allowed.size(); ++row) {
    if (golden.allowed[row]) request.mutable_filter()->add_ids(row);
  }
  return request;
}

class RouterGoldenTest : public ::testing::Test {
 protected:
  RouterGoldenTest() {
    cluster_.Found("g", "n1");
    cluster_.Add("n1", "n2");
    cluster_.StartRouter();
    cluster_.AwaitConnected({"n1", "n2"});
    router_ = StubOf(cluster_.router());
    node_ = StubOf(cluster_.node("n1"));
  }

  void Create(const v1::Store& store) {
    CallContext context;
    v1::CreateStoreRequest request;
    *request.mutable_store() = store;
    v1::Store created;
    ASSERT_THAT(router_->CreateStore(&context, request, &created), IsGrpcOk());
  }

  void Fill(const SpreadCase& spread, const std::string& store) {
    ASSERT_NO_FATAL_FAILURE(Create(StoreMessage(store, spread.golden.key_dim,
                                                spread.golden.value_dim, spread.golden.num_heads)));
    CallContext deletion_context;
    ASSERT_THAT(Append(*router_, AppendOf(spread, store)), IsGrpcOk());
    v1::DeleteRowsRequest deletion;
    deletion.set_store(store);
    for (std::uint64_t row = 0; row < spread.row_count; ++row) {
      deletion.mutable_filter()->add_exclude_ids(row);
    }
    v1::DeleteRowsResponse deleted;
    ASSERT_THAT(router_->DeleteRows(&deletion_context, deletion, &deleted), IsGrpcOk());
    ASSERT_EQ(deleted.deleted_count(), kPositions - spread.row_count);
  }
  static v1::LookupResponse LookUp(v1::SoftLookup::Stub& stub, const v1::LookupRequest& request) {
    CallContext context;
    v1::LookupResponse response;
    EXPECT_THAT(stub.Lookup(&context, request, &response), IsGrpcOk());
    return response;
  }

  v1::Memory GetMemory(const v1::GetMemoryRequest& request) {
    CallContext context;
    v1::Memory memory;
    EXPECT_THAT(router_->GetMemory(&context, request, &memory), IsGrpcOk());
    return memory;
  }

  // Expects the answer of the case, and that of one machine within 1e-6.
  static void ExpectAnswer(const SpreadCase& spread, std::int64_t query,
                           const v1::LookupResponse& answer, const v1::LookupResponse& whole) {
    const GoldenLookup& golden = spread.golden;
    const auto begin = golden.expected_values.begin() + query * golden.value_dim;
    const std::vector<double> expected(begin, begin + golden.value_dim);
    EXPECT_LE(RelativeError(Floats(answer.values()), expected), 1e-5);
    const std::vector<float> of_whole = Floats(whole.values());
    EXPECT_LE(RelativeError(Floats(answer.values()),
                            std::vector<double>(of_whole.begin(), of_whole.end())),
              1e-6);
    ASSERT_EQ(answer.stats_size(), golden.num_heads);
    ASSERT_EQ(answer.weights_size(), golden.num_heads);
    for (int head = 0; head < answer.stats_size(); ++head) {
      const auto lane = static_cast<std::size_t>(query * golden.num_heads + head);
      const v1::QueryStats& stats = answer.stats(head);
      const QueryStats& expected_stats = golden.expected_stats[lane];
      EXPECT_EQ(stats.counted_rows(), expected_stats.counted_rows);
      ExpectClose(stats.log_sum_exp(), expected_stats.log_sum_exp, "log_sum_exp");
      ExpectClose(stats.max_logit(), expected_stats.max_logit, "max_logit");
      ExpectClose(stats.entropy(), expected_stats.entropy, "entropy");
      std::vector<double> weights(spread.row_count);
      const v1::QueryWeights& listed = answer.weights(head);
      for (int i = 0; i < listed.ids_size(); ++i) weights.at(listed.ids(i)) = listed.weights(i);
      EXPECT_LE(RelativeError(weights, golden.expected_weights[lane]), 1e-5);
    }
  }

  RouterCluster cluster_;
  std::unique_ptr<v1::SoftLookup::Stub> router_, node_;
};

// The first case of each mode with and without top_k. With SOFTLOOKUP_LONG_TESTS in the
// environment: all of them.
TEST_F(RouterGoldenTest, LookupsHoldOverAnyNumberOfRanges) {
  const std::vector<GoldenLookup> cases = ReadGoldenLookups();
  ASSERT_EQ(cases.size(), 59u);
  std::set<std::pair<Mode, bool>> asked;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const AttentionOptions& options = cases[i].options;
    const bool is_first = asked.insert({options.mode, options.top_k > 0}).second;
    if (!is_first && std::getenv("SOFTLOOKUP_LONG_TESTS") == nullptr) continue;
    const SpreadCase spread(cases[i]);
    SCOPED_TRACE(spread.golden.name);
    const std::string store = absl::StrCat("golden-", i);
    ASSERT_NO_FATAL_FAILURE(Fill(spread, store));
    std::vector<v1::LookupRequest> lookups;
    std::vector<v1::LookupResponse> whole;
    for (std::int64_t query = 0; query < spread.golden.query_count; ++query) {
      lookups.push_back(LookupOf(spread, store, query));
      whole.push_back(LookUp(*node_, lookups.back()));
    }
    EXPECT_THAT(LookUp(*router_, lookups[0]), IsMessage(whole[0]));  // Not cut yet.
    for (const int ranges : NumbersOfRanges()) {
      SCOPED_TRACE(absl::StrCat(ranges, " ranges"));
      cluster_.Split(store, ranges);
      for (std::size_t query = 0; query < lookups.size(); ++query) {
        const v1::LookupResponse answer = LookUp(*router_, lookups[query]);
        ASSERT_NO_FATAL_FAILURE(
            ExpectAnswer(spread, static_cast<std::int64_t>(query), answer, whole[query]));
        EXPECT_THAT(LookUp(*router_, lookups[query]), IsMessage(answer));
      }
    }
    EXPECT_THAT(DeleteStore(*router_, store), IsGrpcOk());
  }
}

// The first case of each kind. With SOFTLOOKUP_LONG_TESTS in the environment: all of them.
TEST_F(RouterGoldenTest, MemoriesHoldOverAnyNumberOfRanges) {
  const std::vector<GoldenMemory> cases = ReadGoldenMemories();
  ASSERT_EQ(cases.size(), 30u);
  std::set<std::string> asked;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const GoldenMemory& golden = cases[i];
    const bool is_first = asked.insert(golden.kind).second;
    if (!is_first && std::getenv("SOFTLOOKUP_LONG_TESTS") == nullptr) continue;
    SCOPED_TRACE(absl::StrCat(golden.kind, " of ", golden.row_count, " rows"));
    const std::string store = absl::StrCat("memory-", i);
    ASSERT_NO_FATAL_FAILURE(Create(StoreOf(golden, store)));
    v1::AppendRequest append;
    append.set_store(store);
    *append.mutable_keys() = Message(golden.keys, golden.key_dim);
    *append.mutable_values() = Message(golden.values, golden.value_dim);
    ASSERT_THAT(Append(*router_, append), IsGrpcOk());
    // The rows that follow make the store large enough to be cut.
    *append.mutable_keys() =
        Message(std::vector<float>(kPositions * golden.key_dim, 5.0f), golden.key_dim);
    *append.mutable_values() =
        Message(std::vector<float>(kPositions * golden.value_dim, 5.0f), golden.value_dim);
    ASSERT_THAT(Append(*router_, append), IsGrpcOk());
    v1::GetMemoryRequest all, of_case;
    all.set_store(store);
    all.set_name("m");
    of_case = all;
    of_case.set_begin(golden.begin);
    of_case.set_end(static_cast<std::uint64_t>(golden.row_count));
    const v1::Memory whole = GetMemory(all);
    for (const int ranges : NumbersOfRanges()) {
      SCOPED_TRACE(absl::StrCat(ranges, " ranges"));
      cluster_.Split(store, ranges);
      // The primary, which answers, has no row in RAM.
      if (ranges > 1) cluster_.Rebalance(store, "n2");
      ExpectMemory(GetMemory(of_case), golden);
      v1::Memory memory = GetMemory(all);
      memory.set_revision(whole.revision());
      EXPECT_THAT(memory, IsMessage(whole));
    }
    EXPECT_THAT(DeleteStore(*router_, store), IsGrpcOk());
  }
}

}  // namespace
}  // namespace softlookup::testing
