// Attention over a request's own matrices.
#include <algorithm>
#include <cmath>
#include <functional>

#include "core/attention/reference.h"
#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

MatrixView CoreView(const std::vector<float>& floats, std::int64_t cols) {
  return {
      .data = floats.data(), .rows = static_cast<std::int64_t>(floats.size()) / cols, .cols = cols};
}

class AttendWireTest : public IntegrationTest {};

TEST_F(AttendWireTest, AttendMatchesTheReference) {
  const std::uint64_t first_seed = FirstSeed();
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(first_seed + i));
    Draw draw(first_seed + i);
    const std::int64_t num_heads = draw.Coin() ? 1 : draw.Int(2, 4);
    std::int64_t key_dim = num_heads * draw.Int(1, 12), value_dim = num_heads * draw.Int(1, 6);
    const std::int64_t row_count = draw.Int(1, 50), input_dim = draw.Int(1, 16);
    const bool self = draw.Coin(), projects = draw.Coin();
    v1::AttendRequest request;
    std::vector<float> queries, keys, values;
    if (self && !projects) value_dim = key_dim;
    if (self || projects) {
      const std::int64_t dim = projects ? input_dim : key_dim;
      const std::vector<float> inputs = draw.Normal(row_count * dim);
      *request.mutable_inputs() = Message(inputs, dim);
      queries = keys = values = inputs;
      if (projects) {
        const Maps maps = RandomMaps(draw, key_dim, value_dim, input_dim);
        *request.mutable_projection() = maps.message;
        queries = Projected(inputs, maps.query, input_dim);
        keys = Projected(inputs, maps.key, input_dim);
        values = Projected(inputs, maps.value, input_dim);
      }
    } else {
      keys = draw.Normal(row_count * key_dim);
      values = draw.Normal(row_count * value_dim);
      *request.mutable_keys() = Message(keys, key_dim);
      *request.mutable_values() = Message(values, value_dim);
    }
    request.set_self(self);
    if (!self) {
      queries = draw.Normal(draw.Int(1, 6) * key_dim);
      *request.mutable_queries() = Message(queries, key_dim);
    }
    request.set_num_heads(num_heads == 1 && draw.Coin() ? 0 : num_heads);
    const bool defaults = draw.Int(0, 4) == 0;
    ResolvedOptions options;
    if (!defaults) {
      options = {.score = static_cast<Score>(draw.Int(1, 5)),
                 .temperature = 0.5 + 0.5 * static_cast<double>(draw.Int(0, 4)),
                 .mode = static_cast<Mode>(draw.Int(1, 3)),
                 .top_k = draw.Coin() ? 0 : static_cast<std::uint64_t>(draw.Int(1, 10)),
                 .causal = draw.Coin(),
                 .causal_offset = static_cast<std::uint64_t>(draw.Int(0, 3))};
      *request.mutable_options() = Message({.score = options.score,
                                            .temperature = options.temperature,
                                            .mode = options.mode,
                                            .top_k = static_cast<std::uint32_t>(options.top_k),
                                            .causal = options.causal,
                                            .causal_offset = options.causal_offset});
      if (draw.Coin()) {
        options.ln_decay = std::log(0.9);
        request.mutable_options()->set_recency_decay(0.9);
      }
    }
    request.mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
    const ReferenceAnswer expected =
        ReferenceAttend({.options = options,
                         .queries = CoreView(queries, key_dim),
                         .keys = CoreView(keys, key_dim),
                         .values = CoreView(values, value_dim),
                         .num_heads = num_heads,
                         .age_end = static_cast<std::uint64_t>(row_count)});
    v1::AttendResponse answer;
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::Attend, request, &answer), IsGrpcOk());
    EXPECT_EQ(answer.values().rows() * static_cast<std::size_t>(value_dim), expected.values.size());
    EXPECT_EQ(answer.values().cols(), static_cast<std::uint32_t>(value_dim));
    double scale = 0, largest = 1;
    for (const float value : values) scale = std::max(scale, std::abs(static_cast<double>(value)));
    for (const auto& weights : expected.weights) {
      double sum = 0;
      for (const double weight : weights) sum += std::abs(weight);
      largest = std::max(largest, sum);
    }
    const std::vector<float> actual = Floats(answer.values());
    ASSERT_EQ(actual.size(), expected.values.size());
    for (std::size_t c = 0; c < actual.size(); ++c) {
      ASSERT_NEAR(actual[c], expected.values[c], 1e-5 * largest * scale);
    }
    ASSERT_EQ(answer.stats_size(), static_cast<int>(expected.stats.size()));
    ASSERT_EQ(answer.weights_size(), answer.stats_size());
    for (int lane = 0; lane < answer.stats_size(); ++lane) {
      const v1::QueryStats& stats = answer.stats(lane);
      EXPECT_EQ(stats.counted_rows(), expected.stats[lane].counted_rows);
      ExpectClose(stats.log_sum_exp(), expected.stats[lane].log_sum_exp, "log_sum_exp");
      const double max_logit = expected.stats[lane].max_logit;
      EXPECT_NEAR(stats.max_logit(), max_logit, 1e-5 * std::max(1.0, std::abs(max_logit)));
      ExpectClose(stats.entropy(), expected.stats[lane].entropy, "entropy");
      const std::vector<double> weights = Dense(answer.weights(lane), row_count);
      for (std::int64_t j = 0; j < row_count; ++j) {
        EXPECT_NEAR(weights[j], expected.weights[lane][j], 1e-5 * largest);
      }
      EXPECT_EQ(answer.weights(lane).ids_size(), 0);
    }
  }
}

TEST_F(AttendWireTest, AttendKeepsNothingAndAnswersInNumbersWhenAskedInNumbers) {
  v1::AttendRequest request;
  request.set_self(true);
  request.mutable_inputs()->set_rows(2);
  request.mutable_inputs()->set_cols(1);
  request.mutable_inputs()->add_values(1);
  request.mutable_inputs()->add_values(-1);
  v1::AttendResponse answer;
  ASSERT_THAT(Call(&v1::SoftLookup::Stub::Attend, request, &answer), IsGrpcOk());
  ASSERT_EQ(answer.values().values_size(), 2);
  EXPECT_NEAR(answer.values().values(0), std::tanh(1.0), 1e-6);
  EXPECT_NEAR(answer.values().values(1), -std::tanh(1.0), 1e-6);
  EXPECT_EQ(answer.weights_size(), 0);
  v1::ListStoresResponse stores;
  ASSERT_THAT(Call(&v1::SoftLookup::Stub::ListStores, v1::ListStoresRequest(), &stores),
              IsGrpcOk());
  EXPECT_EQ(stores.stores_size(), 0);
}

TEST_F(AttendWireTest, BadAttendsAreRefusedByField) {
  struct Bad {
    std::string what;
    std::string message;
    std::function<void(v1::AttendRequest&)> spoil;
    grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
  };
  const auto use_inputs = [](v1::AttendRequest& r, bool projects) {
    r.clear_keys();
    r.clear_values();
    *r.mutable_inputs() = Message({1, 2, 3, 4, 5, 6}, 3);
    if (!projects) return;
    *r.mutable_projection()->mutable_query() = Message(std::vector<float>(6, 1.0f), 3);
    *r.mutable_projection()->mutable_key() = Message(std::vector<float>(6, 1.0f), 3);
    *r.mutable_projection()->mutable_value() = Message(std::vector<float>(6, 1.0f), 3);
  };
  const std::vector<Bad> all = {
      {"row counts differ", "values",
       [](auto& r) {
         *r.mutable_values() = Message({1, 2}, 2);
       }},
      {"query dimension", "queries: 3 columns",
       [](auto& r) {
         *r.mutable_queries() = Message({1, 2, 3}, 3);
       }},
      {"no rows", "keys",
       [](auto& r) {
         *r.mutable_keys() = Message({}, 2);
         *r.mutable_values() = Message({}, 2);
       }},
      {"heads that do not divide", "num_heads", [](auto& r) { r.set_num_heads(3); }},
      {"heads that do not divide the values", "value",
       [](auto& r) {
         r.set_num_heads(2);
         *r.mutable_values() = Message({1, 2}, 1);
       }},
      {"query NaN", "queries: row 0, column 1 is NaN",
       [](auto& r) {
         *r.mutable_queries() = Message({1, NAN}, 2);
       }},
      {"key infinite", "keys: row 1, column 0 is infinite",
       [](auto& r) {
         *r.mutable_keys() = Message({1, 2, INFINITY, 4}, 2);
       }},
      {"value NaN", "values: row 1, column 1 is NaN",
       [](auto& r) {
         *r.mutable_values() = Message({1, 2, 3, NAN}, 2);
       }},
      {"both encodings", "keys: data and values", [](auto& r) { r.mutable_keys()->add_values(1); }},
      {"no queries", "queries", [](auto& r) { r.clear_queries(); }},
      {"temperature 0", "options.temperature",
       [](auto& r) { r.mutable_options()->set_temperature(0); }},
      {"unknown score", "options.score",
       [](auto& r) { r.mutable_options()->set_score(static_cast<v1::Score>(9)); }},
      {"self without inputs", "inputs",
       [](auto& r) {
         r.clear_queries();
         r.set_self(true);
       }},
      {"self beside queries", "inputs",
       [&](auto& r) {
         use_inputs(r, true);
         r.set_self(true);
       }},
      {"inputs beside keys", "inputs",
       [](auto& r) {
         *r.mutable_inputs() = Message({1, 2, 3, 4}, 2);
       }},
      {"inputs without a projection", "inputs", [&](auto& r) { use_inputs(r, false); },
       grpc::StatusCode::FAILED_PRECONDITION},
      {"inputs NaN", "inputs: row 0, column 0 is NaN",
       [&](auto& r) {
         use_inputs(r, true);
         *r.mutable_inputs() = Message({NAN, 2, 3}, 3);
       }},
      {"inputs of another dimension", "inputs: 2 columns",
       [&](auto& r) {
         use_inputs(r, true);
         *r.mutable_inputs() = Message({1, 2}, 2);
       }},
      {"maps of different inputs", "projection.value",
       [&](auto& r) {
         use_inputs(r, true);
         *r.mutable_projection()->mutable_value() = Message(std::vector<float>(4, 1.0f), 2);
       }},
      {"query and key maps of different dimensions", "projection.query",
       [&](auto& r) {
         use_inputs(r, true);
         *r.mutable_projection()->mutable_query() = Message(std::vector<float>(9, 1.0f), 3);
       }},
      {"a map NaN", "projection.key",
       [&](auto& r) {
         use_inputs(r, true);
         *r.mutable_projection()->mutable_key() = Message({1, 2, 3, 4, 5, NAN}, 3);
       }},
      {"an empty projection", "projection",
       [&](auto& r) {
         use_inputs(r, true);
         r.mutable_projection()->Clear();
       }},
      {"too many queries", "over the limit of 4096",
       [](auto& r) { *r.mutable_queries() = Message(std::vector<float>(2 * 4097), 2); }},
  };
  v1::AttendRequest good;
  *good.mutable_queries() = Message({1, 2}, 2);
  *good.mutable_keys() = Message({1, 2, 3, 4}, 2);
  *good.mutable_values() = Message({5, 6, 7, 8}, 2);
  v1::AttendResponse answer;
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.what);
    v1::AttendRequest request = good;
    bad.spoil(request);
    const grpc::Status status = Call(&v1::SoftLookup::Stub::Attend, request, &answer);
    EXPECT_THAT(status, IsGrpcError(bad.code, bad.message));
    EXPECT_NE(ReasonOf(status), "");
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::Attend, good, &answer), IsGrpcOk());
  }
}

}  // namespace
}  // namespace softlookup::testing
