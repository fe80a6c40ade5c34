// Inputs in place of keys, values and queries.
#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

class ProjectionTest : public IntegrationTest {};

TEST_F(ProjectionTest, InputsOfAStoreAreWhatItsProjectionMakesOfThem) {
  const std::uint64_t first_seed = FirstSeed();
  for (int i = 0; i < 20 && !HasFailure(); ++i) {
    SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(first_seed + i));
    Draw draw(first_seed + i);
    const std::int64_t num_heads = draw.Int(1, 3), key_dim = num_heads * draw.Int(1, 10);
    const std::int64_t value_dim = num_heads * draw.Int(1, 6), input_dim = draw.Int(1, 30);
    const std::int64_t row_count = draw.Int(1, 60);
    const Maps maps = RandomMaps(draw, key_dim, value_dim, input_dim);
    v1::Store store = StoreMessage("inputs-" + std::to_string(i), key_dim, value_dim, num_heads);
    v1::Store plain = store;
    plain.set_name("plain-" + std::to_string(i));
    *store.mutable_projection() = maps.message;
    ASSERT_THAT(CreateStore(store), IsGrpcOk());
    ASSERT_THAT(CreateStore(plain), IsGrpcOk());
    const v1::Projection kept = GetStore(store.name()).projection();
    EXPECT_EQ(Floats(kept.query()), maps.query);
    EXPECT_EQ(Floats(kept.key()), maps.key);
    EXPECT_EQ(Floats(kept.value()), maps.value);
    EXPECT_EQ(kept.value().rows(), static_cast<std::uint32_t>(value_dim));
    EXPECT_EQ(kept.value().cols(), static_cast<std::uint32_t>(input_dim));
    EXPECT_FALSE(GetStore(plain.name()).has_projection());

    const std::vector<float> inputs = draw.Normal(row_count * input_dim);
    const std::vector<float> asked = draw.Normal(3 * input_dim);
    v1::AppendRequest append;
    append.set_store(store.name());
    *append.mutable_inputs() = Message(inputs, input_dim);
    ASSERT_THAT(Append(append), IsGrpcOk());
    v1::AppendRequest append_plain;
    append_plain.set_store(plain.name());
    const std::vector<float> keys = Projected(inputs, maps.key, input_dim);
    *append_plain.mutable_keys() = Message(keys, key_dim);
    *append_plain.mutable_values() = Message(Projected(inputs, maps.value, input_dim), value_dim);
    ASSERT_THAT(Append(append_plain), IsGrpcOk());
    const std::vector<v1::Row> rows = RowsOf(store.name()), plain_rows = RowsOf(plain.name());
    ASSERT_EQ(rows.size(), plain_rows.size());
    for (std::size_t j = 0; j < rows.size(); ++j) {
      EXPECT_THAT(Floats(rows[j].key()),
                  ::testing::Pointwise(::testing::FloatNear(1e-6), Floats(plain_rows[j].key())));
      EXPECT_THAT(Floats(rows[j].value()),
                  ::testing::Pointwise(::testing::FloatNear(1e-6), Floats(plain_rows[j].value())));
    }

    v1::LookupRequest lookup;
    lookup.set_store(store.name());
    lookup.mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
    v1::LookupRequest lookup_plain = lookup, lookup_queries = lookup;
    *lookup.mutable_inputs() = Message(asked, input_dim);
    const v1::Matrix queries = Message(Projected(asked, maps.query, input_dim), key_dim);
    lookup_plain.set_store(plain.name());
    *lookup_plain.mutable_queries() = queries;
    *lookup_queries.mutable_queries() = queries;  // Queries may still come as they are.
    v1::LookupResponse by_inputs, by_queries, expected;
    ASSERT_THAT(Lookup(lookup, &by_inputs), IsGrpcOk());
    ASSERT_THAT(Lookup(lookup_queries, &by_queries), IsGrpcOk());
    ASSERT_THAT(Lookup(lookup_plain, &expected), IsGrpcOk());
    for (const v1::LookupResponse& answer : {by_inputs, by_queries}) {
      EXPECT_THAT(Floats(answer.values()),
                  ::testing::Pointwise(::testing::FloatNear(1e-5), Floats(expected.values())));
      ASSERT_EQ(answer.stats_size(), expected.stats_size());
      for (int lane = 0; lane < expected.stats_size(); ++lane) {
        ExpectClose(answer.stats(lane).log_sum_exp(), expected.stats(lane).log_sum_exp(), "lse");
      }
    }
  }
}

TEST_F(ProjectionTest, AProjectionComesAndGoesWithAnUpdate) {
  Create("s", 2, 1);
  Draw draw(1);
  const Maps maps = RandomMaps(draw, 2, 1, 3);
  v1::AppendRequest append;
  append.set_store("s");
  *append.mutable_inputs() = Message({1, 2, 3}, 3);
  v1::LookupRequest lookup;
  lookup.set_store("s");
  *lookup.mutable_inputs() = Message({1, 2, 3}, 3);
  v1::LookupResponse answer;
  v1::UpdateStoreRequest update;
  update.mutable_store()->set_name("s");
  update.mutable_update_mask()->add_paths("projection");
  v1::Store updated;
  for (int round = 0; round < 2; ++round) {
    const grpc::Status status = Append(append);
    EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::FAILED_PRECONDITION, "inputs"));
    EXPECT_EQ(ReasonOf(status), "NO_PROJECTION");
    EXPECT_THAT(Lookup(lookup, &answer),
                IsGrpcError(grpc::StatusCode::FAILED_PRECONDITION, "inputs"));
    *update.mutable_store()->mutable_projection() = maps.message;
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::UpdateStore, update, &updated), IsGrpcOk());
    EXPECT_EQ(Floats(updated.projection().key()), maps.key);
    EXPECT_THAT(Append(append), IsGrpcOk());
    EXPECT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    EXPECT_EQ(answer.row_count(), round + 1u);
    update.mutable_store()->clear_projection();
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::UpdateStore, update, &updated), IsGrpcOk());
    EXPECT_FALSE(updated.has_projection());
  }
}

}  // namespace
}  // namespace softlookup::testing
