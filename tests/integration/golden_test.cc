// The golden cases over a real socket, against the real server.
#include "tests/testing/golden.h"

#include <cmath>

#include "tests/integration/integration_test.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

v1::AttentionOptions ToMessage(const AttentionOptions& options) {
  v1::AttentionOptions message;
  message.set_score(static_cast<v1::Score>(options.score));
  message.set_mode(static_cast<v1::Mode>(options.mode));
  if (options.temperature) message.set_temperature(*options.temperature);
  if (options.min_score) message.set_min_score(*options.min_score);
  if (options.recency_decay) message.set_recency_decay(*options.recency_decay);
  message.set_top_k(options.top_k);
  message.set_causal(options.causal);
  message.set_causal_offset(options.causal_offset);
  message.set_weights(v1::WEIGHTS_MODE_ALL);
  return message;
}

void ExpectNearOrBothInfinite(double actual, double expected, const std::string& what) {
  if (std::isinf(expected)) {
    EXPECT_EQ(actual, expected) << what;
  } else {
    EXPECT_NEAR(actual, expected, 1e-5) << what;
  }
}

class GoldenWireTest : public IntegrationTest {};

TEST_F(GoldenWireTest, LookupsHold) {
  int cases = 0;
  for (const GoldenLookup& golden : ReadGoldenLookups()) {
    if (!golden.allowed.empty()) continue;  // Needs row ids; tests/core/attention covers them.
    const std::string store = "golden-" + std::to_string(cases++);
    SCOPED_TRACE(golden.name);
    Create(store, golden.key_dim, golden.value_dim, golden.num_heads);
    ASSERT_THAT(client_.Append(store, View(golden.keys, golden.key_dim),
                               View(golden.values, golden.value_dim)),
                IsOk());
    const auto answer = client_.Lookup(store, View(golden.queries, golden.key_dim),
                                       {.attention = ToMessage(golden.options)});
    ASSERT_THAT(answer, IsOk());
    EXPECT_LE(RelativeError(answer->values.data, golden.expected_values), 1e-5);
    ASSERT_EQ(answer->stats.size(), golden.expected_stats.size());
    for (std::size_t i = 0; i < answer->stats.size(); ++i) {
      const v1::QueryStats& stats = answer->stats[i];
      const QueryStats& expected = golden.expected_stats[i];
      EXPECT_EQ(stats.counted_rows(), expected.counted_rows);
      EXPECT_EQ(stats.empty(), expected.counted_rows == 0);
      ExpectNearOrBothInfinite(stats.log_sum_exp(), expected.log_sum_exp, "log_sum_exp");
      ExpectNearOrBothInfinite(stats.max_logit(), expected.max_logit, "max_logit");
      EXPECT_NEAR(stats.entropy(), expected.entropy, 1e-5);
      const v1::QueryWeights& weights = answer->weights[i];
      std::vector<double> dense(golden.row_count);
      for (int j = 0; j < weights.positions_size(); ++j) {
        dense[weights.positions(j)] = weights.weights(j);
      }
      EXPECT_LE(RelativeError(dense, golden.expected_weights[i]), 1e-5);
    }
  }
  EXPECT_EQ(cases, 47);
}

TEST_F(GoldenWireTest, AverageMemoriesHoldWindowsIncluded) {
  int cases = 0;
  for (const GoldenMemory& golden : ReadGoldenMemories()) {
    if (golden.kind != "AVERAGE") continue;
    const std::string store = "golden-" + std::to_string(cases++);
    Create(store, golden.key_dim, golden.value_dim);
    ASSERT_THAT(client_.Append(store, View(golden.keys, golden.key_dim),
                               View(golden.values, golden.value_dim)),
                IsOk());
    v1::GetMemoryRequest request;
    request.set_store(store);
    request.set_begin(golden.begin);
    const auto memory = client_.GetMemory(request);
    ASSERT_THAT(memory, IsOk());
    EXPECT_LE(RelativeError(*DoublesFromProto(memory->key()), golden.expected_key), 1e-12);
    EXPECT_LE(RelativeError(*DoublesFromProto(memory->value()), golden.expected_value), 1e-12);
    EXPECT_EQ(memory->weight(), golden.expected_weight);
    EXPECT_EQ(memory->begin(), golden.begin);
    EXPECT_EQ(memory->end(), static_cast<std::uint64_t>(golden.row_count));
  }
  EXPECT_EQ(cases, 10);
}

// One query alone, inside a batch of 256, pipelined beside others, on one thread and on two.
TEST(BatchInvarianceTest, AQuerysBitsAreTheSameEverywhere) {
  constexpr std::int64_t kRows = 20'000, kDim = 64, kQueries = 256;
  const std::vector<float> keys = NormalFloats(kRows * kDim, 1);
  const std::vector<float> values = NormalFloats(kRows * kDim, 2);
  const std::vector<float> queries = NormalFloats(kQueries * kDim, 3);
  std::vector<std::vector<float>> batches;
  for (const char* threads : {"1", "2"}) {
    const ServerProcess server({"--threads", threads});
    Client client = *Client::Connect(server.grpc_address());
    v1::Store store;
    store.set_name("s");
    store.set_key_dim(kDim);
    store.set_value_dim(kDim);
    store.set_num_heads(2);
    ASSERT_THAT(client.CreateStore(store), IsOk());
    ASSERT_THAT(client.Append("s", View(keys, kDim), View(values, kDim)), IsOk());
    const auto batch = client.Lookup("s", View(queries, kDim));
    ASSERT_THAT(batch, IsOk());
    batches.push_back(batch->values.data);
    for (const std::int64_t t : {0, 7, 128, 255}) {
      const auto alone = client.Lookup("s", Rows(queries, kDim, t, 1));
      ASSERT_THAT(alone, IsOk());
      EXPECT_EQ(std::memcmp(alone->values.data.data(), &batch->values.data[t * kDim], kDim * 4), 0)
          << "query " << t << " on " << threads << " threads";
      EXPECT_EQ(alone->stats[1].log_sum_exp(), batch->stats[t * 2 + 1].log_sum_exp());
    }
  }
  EXPECT_EQ(std::memcmp(batches[0].data(), batches[1].data(), batches[0].size() * 4), 0);
}

}  // namespace
}  // namespace softlookup::testing
