// Appends: what they answer and what they refuse.
#include <cmath>
#include <functional>

#include "tests/integration/integration_test.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

class AppendTest : public IntegrationTest {};

TEST_F(AppendTest, EitherAcknowledgementComesOnceTheRowsAreVisible) {
  Create("s", 2, 1);
  v1::AppendRequest append = TwoRows();
  v1::LookupRequest lookup;
  lookup.set_store("s");
  *lookup.mutable_queries() = Message({1, 2}, 2);
  std::uint64_t row_count = 0;
  for (const auto acknowledge :
       {v1::ACKNOWLEDGE_UNSPECIFIED, v1::ACKNOWLEDGE_DURABLE, v1::ACKNOWLEDGE_APPLIED}) {
    append.set_acknowledge(acknowledge);
    v1::AppendResponse appended;
    ASSERT_THAT(Append(append, &appended), IsGrpcOk());
    EXPECT_EQ(appended.first_position(), row_count);
    row_count += 2;
    v1::LookupResponse answer;
    ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    EXPECT_EQ(answer.stats(0).counted_rows(), row_count);
    EXPECT_EQ(answer.revision(), appended.revision());
  }
}

TEST_F(AppendTest, BadAppendsAreRefusedByFieldStoreNothingAndHurtNobody) {
  Create("s", 2, 1);
  struct Bad {
    std::string what;
    std::string message;
    std::string reason;
    std::function<void(v1::AppendRequest&)> spoil;
    grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
  };
  const std::vector<Bad> all = {
      {"both encodings", "keys: data and values are both set", "INVALID_MATRIX",
       [](auto& r) { r.mutable_keys()->add_values(1); }},
      {"neither encoding", "values: neither data nor values is set", "INVALID_MATRIX",
       [](auto& r) { r.mutable_values()->clear_data(); }},
      {"a byte short", "keys: data has 15 bytes", "INVALID_MATRIX",
       [](auto& r) { r.mutable_keys()->mutable_data()->resize(15); }},
      {"huge shape", "keys: data has 16 bytes", "INVALID_MATRIX",
       [](auto& r) {
         r.mutable_keys()->set_rows(~0u);
         r.mutable_keys()->set_cols(~0u);
       }},
      {"NaN", "values: row 1, column 0 is NaN", "NON_FINITE_VALUE",
       [](auto& r) {
         *r.mutable_values() = Message({5, NAN}, 1);
       }},
      {"infinity", "keys: row 0, column 1 is infinite", "NON_FINITE_VALUE",
       [](auto& r) {
         *r.mutable_keys() = Message({1, INFINITY, 3, 4}, 2);
       }},
      {"no rows", "keys: an append has at least one row", "SHAPE_MISMATCH",
       [](auto& r) {
         *r.mutable_keys() = Message({}, 2);
         *r.mutable_values() = Message({}, 1);
       }},
      {"row counts differ", "values: 1 rows, but keys has 2", "SHAPE_MISMATCH",
       [](auto& r) { *r.mutable_values() = Message({5}, 1); }},
      {"wrong dimension", "keys: 4 columns", "SHAPE_MISMATCH",
       [](auto& r) {
         *r.mutable_keys() = Message({1, 2, 3, 4}, 4);
         *r.mutable_values() = Message({5}, 1);
       }},
      {"bad name", "store: a store's name", "INVALID_NAME", [](auto& r) { r.set_store("../x"); }},
      {"unknown store", "There is no store \"t\"", "STORE_NOT_FOUND",
       [](auto& r) { r.set_store("t"); }, grpc::StatusCode::NOT_FOUND},
      {"unknown memory", "no memory \"m\"", "MEMORY_NOT_FOUND",
       [](auto& r) { r.add_return_memories("m"); }, grpc::StatusCode::NOT_FOUND},
      {"inputs", "inputs: the store has no projection", "NO_PROJECTION",
       [](auto& r) {
         r.clear_keys();
         r.clear_values();
         *r.mutable_inputs() = Message({1}, 1);
       },
       grpc::StatusCode::FAILED_PRECONDITION},
      {"too many rows", "65537 rows are over the limit of 65536", "LIMIT_EXCEEDED",
       [](auto& r) {
         *r.mutable_keys() = Message(std::vector<float>(2 * 65537), 2);
         *r.mutable_values() = Message(std::vector<float>(65537), 1);
       }},
      {"too large a message", "the limit is 67108864", "MESSAGE_TOO_LARGE",
       [](auto& r) { r.mutable_keys()->mutable_data()->resize(65 << 20); },
       grpc::StatusCode::RESOURCE_EXHAUSTED},
  };
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.what);
    v1::AppendRequest request = TwoRows();
    bad.spoil(request);
    const grpc::Status status = Append(request);
    EXPECT_EQ(status.error_code(), bad.code);
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(bad.message));
    EXPECT_EQ(InfoOf(status).reason(), bad.reason);
    EXPECT_EQ(InfoOf(status).domain(), "softlookup");
    const auto store = client_.GetStore("s");
    ASSERT_THAT(store, IsOk());
    EXPECT_EQ(store->row_count(), 0u);
    EXPECT_EQ(store->revision(), 1u);
  }
  EXPECT_TRUE(Append(TwoRows()).ok());
  EXPECT_EQ(client_.GetStore("s")->row_count(), 2u);
}

TEST_F(AppendTest, BadAppendsOfTaggedRowsAreRefusedByFieldAndLeaveNothing) {
  v1::Store store = StoreMessage("s", 2, 1);
  *store.mutable_projection()->mutable_query() = Message(std::vector<float>(6, 1.0f), 3);
  *store.mutable_projection()->mutable_key() = Message(std::vector<float>(6, 1.0f), 3);
  *store.mutable_projection()->mutable_value() = Message(std::vector<float>(3, 1.0f), 3);
  ASSERT_THAT(CreateStore(store), IsGrpcOk());
  struct Bad {
    std::string what;
    std::string message;
    std::function<void(v1::AppendRequest&)> spoil;
    grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
  };
  const auto use_inputs = [](v1::AppendRequest& r, const std::vector<float>& inputs, int cols) {
    r.clear_keys();
    r.clear_values();
    *r.mutable_inputs() = Message(inputs, cols);
  };
  const std::vector<Bad> all = {
      {"an id twice", "ids: row 1", [](auto& r) { r.set_ids(1, r.ids(0)); }},
      {"an id missing", "ids: 1 ids", [](auto& r) { r.mutable_ids()->RemoveLast(); }},
      {"an id too many", "ids: 3 ids", [](auto& r) { r.add_ids(77); }},
      {"labels missing", "row_labels", [](auto& r) { r.mutable_row_labels()->RemoveLast(); }},
      {"17 labels", "row_labels: row 1",
       [](auto& r) {
         for (int i = 0; i < 17; ++i) r.mutable_row_labels(1)->add_labels(std::to_string(i));
       }},
      {"a label of 65 bytes", "row_labels: row 0",
       [](auto& r) { r.mutable_row_labels(0)->add_labels(std::string(65, 'x')); }},
      {"unknown on_conflict", "on_conflict",
       [](auto& r) { r.set_on_conflict(static_cast<v1::OnConflict>(9)); }},
      {"unknown acknowledge", "acknowledge",
       [](auto& r) { r.set_acknowledge(static_cast<v1::Acknowledge>(9)); }},
      {"unknown memory", "\"m\"", [](auto& r) { r.add_return_memories("m"); },
       grpc::StatusCode::NOT_FOUND},
      {"inputs beside keys", "inputs",
       [](auto& r) {
         *r.mutable_inputs() = Message({1, 2, 3, 4, 5, 6}, 3);
       }},
      {"inputs of another dimension", "inputs: 2 columns",
       [&](auto& r) {
         use_inputs(r, {1, 2, 3, 4}, 2);
       }},
      {"inputs NaN", "inputs: row 1, column 2 is NaN",
       [&](auto& r) {
         use_inputs(r, {1, 2, 3, 4, 5, NAN}, 3);
       }},
      {"inputs that overflow", "inputs: row 0",
       [&](auto& r) {
         use_inputs(r, {3e38f, 3e38f, 3e38f, 1, 1, 1}, 3);
       }},
      {"no inputs", "inputs: an append has at least one row",
       [&](auto& r) { use_inputs(r, {}, 3); }},
  };
  v1::AppendRequest good;
  good.set_store("s");
  *good.mutable_keys() = Message({1, 2, 3, 4}, 2);
  *good.mutable_values() = Message({5, 6}, 1);
  good.add_ids(1);
  good.add_ids(2);
  good.add_row_labels()->add_labels("a");
  good.add_row_labels();
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.what);
    v1::AppendRequest request = good;
    bad.spoil(request);
    const grpc::Status status = Append(request);
    EXPECT_THAT(status, IsGrpcError(bad.code, bad.message));
    EXPECT_NE(ReasonOf(status), "");
    EXPECT_EQ(GetStore("s").row_count(), 0u);
    EXPECT_EQ(GetStore("s").revision(), 1u);
  }
  // At the limits, and then with the ids all taken.
  for (int i = 0; i < 15; ++i) good.mutable_row_labels(0)->add_labels(std::string(60, 'a' + i));
  good.mutable_row_labels(1)->add_labels(std::string(64, 'x'));
  EXPECT_THAT(Append(good), IsGrpcOk());
  EXPECT_THAT(Append(good), IsGrpcError(grpc::StatusCode::ALREADY_EXISTS, "id 1"));
}

}  // namespace
}  // namespace softlookup::testing
