// Stores: created, listed, updated, refused.
#include <cmath>
#include <functional>
#include <map>

#include "absl/time/clock.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

class StoresTest : public IntegrationTest {};

TEST_F(StoresTest, AStoreIsAnsweredWholeWhereverItIsAnswered) {
  v1::CreateStoreRequest request;
  v1::Store& store = *request.mutable_store();
  store = StoreMessage("acme/users", 6, 4, 2);
  store.set_score(v1::SCORE_COSINE);
  store.set_temperature(0.5);
  store.set_storage_type(v1::ELEMENT_TYPE_FLOAT32);
  (*store.mutable_labels())["team"] = "search";
  store.add_memories()->set_name("fading");
  store.mutable_memories(0)->set_kind(v1::MEMORY_KIND_DECAYED_SUM);
  store.mutable_memories(0)->set_decay(0.75);
  store.set_revision(99);  // Not the caller's to say.
  store.set_row_count(99);
  const absl::Time before = absl::Now();
  v1::Store created;
  ASSERT_THAT(Call(&v1::SoftLookup::Stub::CreateStore, request, &created), IsGrpcOk());
  const absl::Time after = absl::Now();
  EXPECT_EQ(created.revision(), 1u);
  EXPECT_EQ(created.row_count(), 0u);
  EXPECT_EQ(created.live_row_count(), 0u);
  const absl::Time create_time = absl::FromUnixSeconds(created.create_time().seconds()) +
                                 absl::Nanoseconds(created.create_time().nanos());
  EXPECT_GE(create_time, before);
  EXPECT_LE(create_time, after);
  v1::Store given = created;
  given.set_revision(store.revision());
  given.set_row_count(store.row_count());
  given.clear_byte_size();
  given.clear_create_time();
  EXPECT_THAT(given, IsMessage(store));

  Create("other", 1, 1);
  EXPECT_THAT(GetStore("acme/users"), IsMessage(created));
  v1::ListStoresResponse stores;
  ASSERT_THAT(Call(&v1::SoftLookup::Stub::ListStores, v1::ListStoresRequest(), &stores),
              IsGrpcOk());
  ASSERT_EQ(stores.stores_size(), 2);
  EXPECT_THAT(stores.stores(0), IsMessage(created));

  constexpr std::uint64_t kRows = 1000;
  const std::vector<float> keys(kRows * 6), values(kRows * 4);
  ASSERT_THAT(client_.Append("acme/users", View(keys, 6), View(values, 4)), IsOk());
  const v1::Store grown = GetStore("acme/users");
  EXPECT_EQ(grown.revision(), 2u);
  EXPECT_EQ(grown.row_count(), kRows);
  EXPECT_EQ(grown.live_row_count(), kRows);
  EXPECT_GE(grown.byte_size(), created.byte_size() + kRows * (6 + 4) * sizeof(float));
}

TEST_F(StoresTest, ANameIsTakenUntilItsStoreIsDeleted) {
  Create("a", 1, 1);
  Create("b", 1, 1);
  const grpc::Status taken = CreateStore(StoreMessage("a", 1, 1));
  EXPECT_THAT(taken, IsGrpcError(grpc::StatusCode::ALREADY_EXISTS, "\"a\""));
  EXPECT_EQ(ReasonOf(taken), "STORE_EXISTS");
  ASSERT_THAT(DeleteStore("a"), IsGrpcOk());
  EXPECT_THAT(DeleteStore("a"), IsGrpcError(grpc::StatusCode::NOT_FOUND, "\"a\""));
  EXPECT_EQ(GetStore("b").name(), "b");
  EXPECT_THAT(CreateStore(StoreMessage("a", 2, 2)), IsGrpcOk());
}

TEST_F(StoresTest, ScoreAndTemperatureAreTheDefaultsOfLookups) {
  v1::Store store = StoreMessage("s", 2, 1);
  store.set_score(v1::SCORE_DOT);
  store.set_temperature(0.5);
  ASSERT_THAT(CreateStore(store), IsGrpcOk());
  v1::AppendRequest append = TwoRows();
  *append.mutable_keys() = Message({3, 4, 3, 4}, 2);
  ASSERT_THAT(Append(append), IsGrpcOk());
  v1::LookupRequest lookup;
  lookup.set_store("s");
  *lookup.mutable_queries() = Message({1, 2}, 2);
  const auto expect_logit = [&](double logit) {
    v1::LookupResponse answer;
    ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    EXPECT_NEAR(answer.stats(0).max_logit(), logit, 1e-5);
  };
  expect_logit(11 / 0.5);
  const std::map<v1::Score, double> scores = {
      {v1::SCORE_UNSPECIFIED, 11 / std::sqrt(2)}, {v1::SCORE_DOT, 11},
      {v1::SCORE_SCALED_DOT, 11 / std::sqrt(2)},  {v1::SCORE_COSINE, 11 / std::sqrt(5 * 25)},
      {v1::SCORE_EUCLIDEAN, -std::sqrt(8)},       {v1::SCORE_SQUARED_EUCLIDEAN, -8}};
  for (const auto& [score, of_the_pair] : scores) {
    SCOPED_TRACE(v1::Score_Name(score));
    store.set_score(score);
    store.set_temperature(4);
    const auto updated = client_.UpdateStore(store, {"score", "temperature"});
    ASSERT_THAT(updated, IsOk());
    EXPECT_EQ(updated->score(), score == v1::SCORE_UNSPECIFIED ? v1::SCORE_SCALED_DOT : score);
    expect_logit(of_the_pair / 4);
    store.clear_temperature();
    ASSERT_THAT(client_.UpdateStore(store, {"temperature"}), IsOk());
    expect_logit(of_the_pair);
    // A lookup's own come first.
    lookup.mutable_options()->set_score(v1::SCORE_DOT);
    lookup.mutable_options()->set_temperature(2);
    expect_logit(11 / 2.0);
    lookup.clear_options();
  }
}

TEST_F(StoresTest, ListsStoresInPages) {
  for (int i = 0; i < 25; ++i) Create("p/" + std::to_string(100 + i), 1, 1);
  Create("other", 1, 1);
  v1::ListStoresRequest request;
  request.set_prefix("p/");
  request.set_page_size(10);
  std::vector<std::string> names;
  do {
    v1::ListStoresResponse response;
    ASSERT_THAT(Call(&v1::SoftLookup::Stub::ListStores, request, &response), IsGrpcOk());
    EXPECT_LE(response.stores_size(), 10);
    for (const v1::Store& store : response.stores()) names.push_back(store.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && names.size() < 100);
  ASSERT_EQ(names.size(), 25u);
  EXPECT_EQ(names.front(), "p/100");
  EXPECT_EQ(names.back(), "p/124");
  request.set_page_token("q/1");
  v1::ListStoresResponse response;
  EXPECT_THAT(Call(&v1::SoftLookup::Stub::ListStores, request, &response),
              IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, "page_token"));
}

TEST_F(StoresTest, UpdatesOnlyWhatTheMaskNames) {
  Create("s", 2, 1);
  v1::Store store;
  store.set_name("s");
  store.set_score(v1::SCORE_COSINE);
  store.set_temperature(0.5);
  (*store.mutable_labels())["team"] = "search";
  const auto updated = client_.UpdateStore(store, {"temperature", "labels"});
  ASSERT_THAT(updated, IsOk());
  EXPECT_EQ(updated->temperature(), 0.5);
  EXPECT_EQ(updated->score(), v1::SCORE_SCALED_DOT);
  EXPECT_EQ(updated->labels().at("team"), "search");
  EXPECT_EQ(updated->revision(), 2u);
  EXPECT_THAT(client_.UpdateStore(store, {"key_dim"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "\"key_dim\" cannot change"));
  EXPECT_THAT(client_.UpdateStore(store, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "update_mask"));
}

TEST_F(StoresTest, RowsAreKeptAsTheStoreSays) {
  v1::Store store = StoreMessage("s", 1, 1);
  for (const auto type : {v1::ELEMENT_TYPE_FLOAT64, static_cast<v1::ElementType>(99),
                          static_cast<v1::ElementType>(257), static_cast<v1::ElementType>(-1)}) {
    store.set_storage_type(type);
    EXPECT_THAT(CreateStore(store),
                IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, "store.storage_type"))
        << type;
  }
  for (const auto type : {v1::ELEMENT_TYPE_UNSPECIFIED, v1::ELEMENT_TYPE_FLOAT32}) {
    store.set_name(v1::ElementType_Name(type));
    store.set_storage_type(type);
    ASSERT_THAT(CreateStore(store), IsGrpcOk());
    EXPECT_EQ(GetStore(store.name()).storage_type(), v1::ELEMENT_TYPE_FLOAT32);
  }
  // 1.005 is between the bfloat16 numbers 1 and 1.0078125; 127 is the largest of its row.
  const std::vector<std::pair<v1::ElementType, std::vector<float>>> kept = {
      {v1::ELEMENT_TYPE_FLOAT32, {1.005f, -127}},
      {v1::ELEMENT_TYPE_BFLOAT16, {1.0078125f, -127}},
      {v1::ELEMENT_TYPE_INT8, {1, -127}}};
  for (const auto& [type, components] : kept) {
    const std::string name = "two-" + v1::ElementType_Name(type);
    store = StoreMessage(name, 2, 2);
    store.set_storage_type(type);
    ASSERT_THAT(CreateStore(store), IsGrpcOk());
    EXPECT_EQ(GetStore(name).storage_type(), type);
    v1::AppendRequest append;
    append.set_store(name);
    *append.mutable_keys() = Message({1.005f, -127}, 2);
    *append.mutable_values() = Message({1.005f, -127}, 2);
    ASSERT_THAT(Append(append), IsGrpcOk());
    v1::ReadRowsRequest read;
    read.set_store(name);
    std::vector<v1::ReadRowsResponse> pages;
    ASSERT_THAT(ReadRows(read, &pages), IsGrpcOk());
    ASSERT_EQ(pages.at(0).rows_size(), 1);
    EXPECT_EQ(Floats(pages[0].rows(0).key()), components);
    EXPECT_EQ(Floats(pages[0].rows(0).value()), components);
  }
}

TEST_F(StoresTest, BadStoresAreRefusedByField) {
  struct Bad {
    std::string what;
    std::string message;
    std::function<void(v1::Store&)> spoil;
  };
  const std::vector<Bad> all = {
      {"decay 0", "store.memories[0].decay", [](auto& s) { s.mutable_memories(0)->set_decay(0); }},
      {"decay 1", "store.memories[0].decay", [](auto& s) { s.mutable_memories(0)->set_decay(1); }},
      {"decay over 1", "store.memories[0].decay",
       [](auto& s) { s.mutable_memories(0)->set_decay(1.5); }},
      {"negative decay", "store.memories[0].decay",
       [](auto& s) { s.mutable_memories(0)->set_decay(-0.5); }},
      {"decay NaN", "store.memories[0].decay",
       [](auto& s) { s.mutable_memories(0)->set_decay(NAN); }},
      {"gate without its bias", "store.memories[1].gate",
       [](auto& s) {
         *s.mutable_memories(1)->mutable_gate() = Message({1, 2}, 2);
       }},
      {"gate too long", "store.memories[1].gate",
       [](auto& s) {
         *s.mutable_memories(1)->mutable_gate() = Message({1, 2, 3, 4}, 4);
       }},
      {"gate of two rows", "store.memories[1].gate",
       [](auto& s) {
         *s.mutable_memories(1)->mutable_gate() = Message({1, 2, 3, 4, 5, 6}, 3);
       }},
      {"gate as a column", "store.memories[1].gate",
       [](auto& s) {
         *s.mutable_memories(1)->mutable_gate() = Message({1, 2, 3}, 1);
       }},
      {"no gate", "store.memories[1].gate", [](auto& s) { s.mutable_memories(1)->clear_gate(); }},
      {"gate NaN", "store.memories[1].gate",
       [](auto& s) {
         *s.mutable_memories(1)->mutable_gate() = Message({1, NAN, 3}, 3);
       }},
      {"no kind", "store.memories[1].kind", [](auto& s) { s.mutable_memories(1)->clear_kind(); }},
      {"unknown kind", "store.memories[1].kind",
       [](auto& s) { s.mutable_memories(1)->set_kind(static_cast<v1::MemoryKind>(99)); }},
      {"no name", "store.memories[0].name", [](auto& s) { s.mutable_memories(0)->clear_name(); }},
      {"named average", "store.memories[0].name",
       [](auto& s) { s.mutable_memories(0)->set_name("average"); }},
      {"a name twice", "store.memories[1].name",
       [](auto& s) { s.mutable_memories(1)->set_name("m0"); }},
      {"65 memories", "store.memories",
       [](auto& s) {
         for (int i = 2; i < 65; ++i) {
           *s.add_memories() = s.memories(0);
           s.mutable_memories(i)->set_name("m" + std::to_string(i));
         }
       }},
      {"query map of other inputs", "store.projection",
       [](auto& s) {
         *s.mutable_projection()->mutable_query() = Message(std::vector<float>(8), 4);
       }},
      {"value map of other inputs", "store.projection.value",
       [](auto& s) {
         *s.mutable_projection()->mutable_value() = Message({1, 2}, 2);
       }},
      {"key map of another dimension", "store.projection.key",
       [](auto& s) { *s.mutable_projection()->mutable_key() = Message(std::vector<float>(9), 3); }},
      {"query map of another dimension", "store.projection.query",
       [](auto& s) {
         *s.mutable_projection()->mutable_query() = Message({1, 2, 3}, 3);
       }},
      {"value map of another dimension", "store.projection.value",
       [](auto& s) {
         *s.mutable_projection()->mutable_value() = Message(std::vector<float>(6), 3);
       }},
      {"a map missing", "store.projection.value",
       [](auto& s) { s.mutable_projection()->clear_value(); }},
      {"an infinite map", "store.projection.key",
       [](auto& s) {
         *s.mutable_projection()->mutable_key() = Message({1, 2, 3, 4, INFINITY, 6}, 3);
       }},
  };
  v1::Store good = StoreMessage("s", 2, 1);
  good.add_memories()->set_name("m0");
  good.mutable_memories(0)->set_kind(v1::MEMORY_KIND_DECAYED_SUM);
  good.mutable_memories(0)->set_decay(0.5);
  good.add_memories()->set_name("m1");
  good.mutable_memories(1)->set_kind(v1::MEMORY_KIND_GATED);
  *good.mutable_memories(1)->mutable_gate() = Message({0, 1, 2}, 3);
  *good.mutable_projection()->mutable_query() = Message(std::vector<float>(6, 1.0f), 3);
  *good.mutable_projection()->mutable_key() = Message(std::vector<float>(6, 1.0f), 3);
  *good.mutable_projection()->mutable_value() = Message(std::vector<float>(3, 1.0f), 3);
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.what);
    v1::Store store = good;
    bad.spoil(store);
    const grpc::Status status = CreateStore(store);
    EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, bad.message));
    EXPECT_NE(ReasonOf(status), "");
  }
  EXPECT_THAT(CreateStore(good), IsGrpcOk());
  // Nor does a projection that does not fit come in by an update.
  for (const Bad& bad : all) {
    if (bad.message.find("projection") == std::string::npos) continue;
    SCOPED_TRACE(bad.what);
    v1::UpdateStoreRequest update;
    *update.mutable_store() = good;
    bad.spoil(*update.mutable_store());
    update.mutable_update_mask()->add_paths("projection");
    v1::Store updated;
    EXPECT_THAT(Call(&v1::SoftLookup::Stub::UpdateStore, update, &updated),
                IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, bad.message));
  }
  EXPECT_EQ(GetStore("s").revision(), 1u);
}

}  // namespace
}  // namespace softlookup::testing
