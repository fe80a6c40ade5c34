// The golden cases over a real socket, against the real server.
#include "tests/testing/golden.h"

#include <cstring>

#include "tests/integration/golden_memories.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

v1::AttentionOptions OptionsOf(const GoldenLookup& golden) {
  v1::AttentionOptions options = Message(golden.options);
  options.set_weights(v1::WEIGHTS_MODE_ALL);
  return options;
}

// What is known of one query and head.
void ExpectLane(const v1::QueryStats& stats, const v1::QueryWeights& weights,
                const GoldenLookup& golden, int lane) {
  const QueryStats& expected = golden.expected_stats[lane];
  EXPECT_EQ(stats.counted_rows(), expected.counted_rows);
  EXPECT_EQ(stats.empty(), expected.counted_rows == 0);
  ExpectClose(stats.log_sum_exp(), expected.log_sum_exp, "log_sum_exp");
  ExpectClose(stats.max_logit(), expected.max_logit, "max_logit");
  ExpectClose(stats.entropy(), expected.entropy, "entropy");
  EXPECT_LE(RelativeError(Dense(weights, golden.row_count), golden.expected_weights[lane]), 1e-5);
}

class GoldenWireTest : public IntegrationTest {};

TEST_F(GoldenWireTest, LookupsHold) {
  int cases = 0;
  for (const GoldenLookup& golden : ReadGoldenLookups()) {
    if (!golden.allowed.empty()) continue;  // Needs row ids: below.
    const std::string store = "golden-" + std::to_string(cases++);
    SCOPED_TRACE(golden.name);
    Create(store, golden.key_dim, golden.value_dim, golden.num_heads);
    ASSERT_THAT(client_.Append(store, View(golden.keys, golden.key_dim),
                               View(golden.values, golden.value_dim)),
                IsOk());
    const auto answer = client_.Lookup(store, View(golden.queries, golden.key_dim),
                                       {.attention = OptionsOf(golden)});
    ASSERT_THAT(answer, IsOk());
    EXPECT_LE(RelativeError(answer->values.data, golden.expected_values), 1e-5);
    ASSERT_EQ(answer->stats.size(), golden.expected_stats.size());
    ASSERT_EQ(answer->weights.size(), golden.expected_stats.size());
    for (std::size_t i = 0; i < answer->stats.size(); ++i) {
      ExpectLane(answer->stats[i], answer->weights[i], golden, static_cast<int>(i));
    }
  }
  EXPECT_EQ(cases, 47);
}

TEST_F(GoldenWireTest, AllGoldenLookupsHoldWithTheirRowsFilteredById) {
  int cases = 0, filtered = 0;
  for (const GoldenLookup& golden : ReadGoldenLookups()) {
    SCOPED_TRACE(golden.name);
    const std::string name = "golden-" + std::to_string(cases++);
    Create(name, golden.key_dim, golden.value_dim, golden.num_heads);
    v1::AppendRequest append;
    append.set_store(name);
    *append.mutable_keys() = Message(golden.keys, golden.key_dim);
    *append.mutable_values() = Message(golden.values, golden.value_dim);
    for (std::int64_t j = 0; j < golden.row_count; ++j) append.add_ids(1000 + 7 * j);
    ASSERT_THAT(Append(append), IsGrpcOk());
    v1::LookupRequest lookup;
    lookup.set_store(name);
    *lookup.mutable_queries() = Message(golden.queries, golden.key_dim);
    *lookup.mutable_options() = OptionsOf(golden);
    v1::RowFilter allow, exclude;
    allow.add_ids(1);  // Nobody's, so that the list is never empty.
    for (std::size_t j = 0; j < golden.allowed.size(); ++j) {
      (golden.allowed[j] ? allow.mutable_ids() : exclude.mutable_exclude_ids())->Add(1000 + 7 * j);
    }
    std::vector<v1::RowFilter> filters;
    if (golden.allowed.empty()) {
      filters = {v1::RowFilter()};
    } else {
      filters = {allow, exclude};
      ++filtered;
    }
    for (const v1::RowFilter& filter : filters) {
      *lookup.mutable_filter() = filter;
      v1::LookupResponse answer;
      ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
      EXPECT_LE(RelativeError(Floats(answer.values()), golden.expected_values), 1e-5);
      ASSERT_EQ(answer.stats_size(), static_cast<int>(golden.expected_stats.size()));
      ASSERT_EQ(answer.weights_size(), answer.stats_size());
      for (int i = 0; i < answer.stats_size(); ++i) {
        const v1::QueryWeights& weights = answer.weights(i);
        ExpectLane(answer.stats(i), weights, golden, i);
        ASSERT_EQ(weights.ids_size(), weights.positions_size());
        for (int j = 0; j < weights.ids_size(); ++j) {
          EXPECT_EQ(weights.ids(j), 1000 + 7 * weights.positions(j));
        }
      }
    }
  }
  EXPECT_EQ(cases, 59);
  EXPECT_EQ(filtered, 12);
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

TEST_F(GoldenWireTest, AllGoldenMemoriesHoldAlsoAsOfAnEarlierRowAndAsReturnedByTheAppend) {
  int cases = 0;
  for (const GoldenMemory& golden : ReadGoldenMemories()) {
    SCOPED_TRACE(golden.kind + " of " + std::to_string(golden.row_count) + " rows");
    const v1::Store store = StoreOf(golden, "memory-" + std::to_string(cases++));
    ASSERT_THAT(CreateStore(store), IsGrpcOk());
    const v1::Store created = GetStore(store.name());
    ASSERT_EQ(created.memories_size(), 1);
    EXPECT_EQ(created.memories(0).name(), "m");
    EXPECT_EQ(created.memories(0).kind(), store.memories(0).kind());
    EXPECT_EQ(created.memories(0).decay(), golden.decay);
    EXPECT_EQ(Floats(created.memories(0).gate()), golden.gate);

    v1::AppendRequest append;
    append.set_store(store.name());
    *append.mutable_keys() = Message(golden.keys, golden.key_dim);
    *append.mutable_values() = Message(golden.values, golden.value_dim);
    append.add_return_memories("m");
    append.add_return_memories("average");
    v1::AppendResponse appended;
    ASSERT_THAT(Append(append, &appended), IsGrpcOk());
    ASSERT_EQ(appended.memories_size(), 2);
    EXPECT_EQ(appended.memories(1).name(), "average");
    EXPECT_EQ(appended.memories(1).weight(), golden.row_count);
    // Later rows do not change the past.
    *append.mutable_keys() = Message(std::vector<float>(3 * golden.key_dim, 5.0f), golden.key_dim);
    *append.mutable_values() =
        Message(std::vector<float>(3 * golden.value_dim, 5.0f), golden.value_dim);
    ASSERT_THAT(Append(append), IsGrpcOk());

    v1::Memory memory;
    ASSERT_THAT(GetMemory(store.name(), "m", golden.begin, golden.row_count, &memory), IsGrpcOk());
    EXPECT_EQ(memory.name(), "m");
    EXPECT_EQ(memory.revision(), 3u);
    ExpectMemory(memory, golden);
    if (golden.begin == 0) ExpectMemory(appended.memories(0), golden);
    if (golden.kind == "AVERAGE") {
      ASSERT_THAT(GetMemory(store.name(), "", golden.begin, golden.row_count, &memory), IsGrpcOk());
      EXPECT_EQ(memory.name(), "average");
      ExpectMemory(memory, golden);
    } else {
      EXPECT_THAT(GetMemory(store.name(), "m", 1, golden.row_count, &memory),
                  IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, "begin"));
    }
  }
  EXPECT_EQ(cases, 30);
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
    Client client = *Client::Connect(server.grpc_address(), PatientOptions());
    ASSERT_THAT(client.CreateStore(StoreMessage("s", kDim, kDim, 2)), IsOk());
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
