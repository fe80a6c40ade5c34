#include "server/rpc/store_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/time/clock.h"
#include "core/base/error.h"
#include "tests/server/rpc/codec_helpers.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

TEST(DecodeStoreTest, TakesEveryServedField) {
  const auto config = DecodeStore(FromText<v1::Store>(R"(
      name: "acme/users" key_dim: 6 value_dim: 4 num_heads: 2 score: SCORE_COSINE temperature: 0.5
      storage_type: ELEMENT_TYPE_FLOAT32 labels { key: "team" value: "search" })"));
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->name, "acme/users");
  EXPECT_EQ(config->key_dim, 6);
  EXPECT_EQ(config->value_dim, 4);
  EXPECT_EQ(config->num_heads, 2);
  EXPECT_EQ(config->score, Score::kCosine);
  EXPECT_EQ(config->temperature, 0.5);
  EXPECT_THAT(config->labels, ElementsAre(Pair("team", "search")));
}

TEST(DecodeStoreTest, FillsInTheDocumentedDefaults) {
  const auto config = DecodeStore(v1::Store());
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->num_heads, 1);
  EXPECT_EQ(config->score, Score::kScaledDot);
  EXPECT_EQ(config->temperature, 1);
  EXPECT_THAT(config->labels, IsEmpty());
  // Set is not unset: the engine refuses it.
  EXPECT_EQ(DecodeStore(FromText<v1::Store>("temperature: 0"))->temperature, 0);
}

TEST(DecodeStoreTest, KeepsDimensionsThatASignedIntWouldNotHold) {
  const auto config = DecodeStore(
      FromText<v1::Store>("key_dim: 4294967295 value_dim: 4294967295 num_heads: 4294967295"));
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->key_dim, 4294967295);
  EXPECT_EQ(config->value_dim, 4294967295);
  EXPECT_EQ(config->num_heads, 4294967295);
}

TEST(DecodeStoreTest, RefusesWhatItDoesNotServe) {
  const auto refusal = [](const char* text) { return DecodeStore(FromText<v1::Store>(text)); };
  EXPECT_THAT(refusal("projection { query { cols: 2 } key { cols: 3 } value { cols: 2 } }"),
              IsAbout(reasons::kShapeMismatch, "store.projection.key"));
  EXPECT_THAT(refusal("score: 6"), IsAbout(reasons::kInvalidOption, "store.score"));
  EXPECT_THAT(refusal("score: -1"), IsAbout(reasons::kInvalidOption, "store.score"));
}

TEST(DecodeStoreTest, TakesTheStorageTypeThatIsAskedFor) {
  const auto type_of = [](const char* text) {
    return DecodeStore(FromText<v1::Store>(text))->storage_type;
  };
  EXPECT_EQ(type_of(""), StorageType::kFloat32);
  EXPECT_EQ(type_of("storage_type: ELEMENT_TYPE_FLOAT32"), StorageType::kFloat32);
  EXPECT_EQ(type_of("storage_type: ELEMENT_TYPE_BFLOAT16"), StorageType::kBfloat16);
  EXPECT_EQ(type_of("storage_type: ELEMENT_TYPE_INT8"), StorageType::kInt8);
}

TEST(DecodeStoreTest, TakesEveryKindOfMemory) {
  v1::Store store;
  for (int kind = 0; v1::MemoryKind_IsValid(kind); ++kind) {
    store.add_memories()->set_kind(static_cast<v1::MemoryKind>(kind));
  }
  *store.mutable_memories(1) = FromText<v1::MemorySpec>(
      "name: 'm' kind: MEMORY_KIND_AVERAGE decay: 0.5 gate { rows: 1 cols: 3 values: [1, 2, 3] }");
  const auto config = DecodeStore(store);
  ASSERT_THAT(config, IsOk());
  ASSERT_EQ(config->memories.size(), v1::MemoryKind_ARRAYSIZE);
  for (int kind = 0; v1::MemoryKind_IsValid(kind); ++kind) {
    EXPECT_EQ(config->memories[kind].kind, static_cast<MemoryKind>(kind));
  }
  EXPECT_EQ(config->memories[1].name, "m");
  EXPECT_EQ(config->memories[1].decay, 0.5);
  EXPECT_THAT(config->memories[1].gate, ElementsAre(1, 2, 3));
  EXPECT_THAT(config->memories[2].gate, IsEmpty());
}

TEST(DecodeStoreTest, NamesTheMemoryThatIsWrong) {
  const auto refusal = [](const std::string& spec) {
    return DecodeStore(FromText<v1::Store>("memories {} memories {" + spec + "}"));
  };
  EXPECT_THAT(refusal("kind: 99"), IsAbout(reasons::kInvalidOption, "store.memories[1].kind"));
  EXPECT_THAT(refusal("gate { rows: 1 cols: 2 values: 1 }"),
              IsAbout(reasons::kInvalidMatrix, "store.memories[1].gate"));
  for (const char* gate : {"", "rows: 0 cols: 2", "rows: 2 cols: 1 values: [1, 2]"}) {
    EXPECT_THAT(refusal(std::string("gate {") + gate + "}"),
                IsAbout(reasons::kInvalidMatrix, "store.memories[1].gate"))
        << gate;
  }
}

TEST(DecodeUpdateTest, TakesOnlyWhatTheMaskNames) {
  const std::string store =
      "store { name: 's' key_dim: 9 score: SCORE_DOT temperature: 2 "
      "labels { key: 'a' value: 'b' } } ";
  const auto decode = [&](const std::string& mask) {
    return DecodeUpdate(FromText<v1::UpdateStoreRequest>(store + "update_mask {" + mask + "}"));
  };
  const auto score = decode("paths: 'score'");
  ASSERT_THAT(score, IsOk());
  EXPECT_EQ(score->score, Score::kDot);
  EXPECT_FALSE(score->temperature);
  EXPECT_FALSE(score->labels);
  const auto rest = decode("paths: 'labels' paths: 'temperature'");
  ASSERT_THAT(rest, IsOk());
  EXPECT_FALSE(rest->score);
  EXPECT_EQ(rest->temperature, 2);
  EXPECT_THAT(*rest->labels, ElementsAre(Pair("a", "b")));
}

TEST(DecodeUpdateTest, AnUnsetFieldThatTheMaskNamesGoesBackToItsDefault) {
  const auto update = DecodeUpdate(FromText<v1::UpdateStoreRequest>(
      "update_mask { paths: 'score' paths: 'temperature' paths: 'labels' }"));
  ASSERT_THAT(update, IsOk());
  EXPECT_EQ(update->score, Score::kUnspecified);
  EXPECT_EQ(update->temperature, 1);
  ASSERT_TRUE(update->labels);
  EXPECT_THAT(*update->labels, IsEmpty());
}

TEST(DecodeUpdateTest, RefusesAnEmptyMaskAndFieldsThatCannotChange) {
  const auto refusal = [](const std::string& mask) {
    return DecodeUpdate(FromText<v1::UpdateStoreRequest>("store { score: 6 } " + mask));
  };
  EXPECT_THAT(refusal(""), IsAbout(reasons::kInvalidOption, "update_mask"));
  EXPECT_THAT(refusal("update_mask {}"), IsAbout(reasons::kInvalidOption, "update_mask"));
  for (const char* path : {"name", "key_dim", "revision", "*", "", "store.score", "labels.a"}) {
    EXPECT_THAT(refusal(std::string("update_mask { paths: 'labels' paths: '") + path + "' }"),
                IsAbout(reasons::kInvalidOption, "update_mask"))
        << path;
  }
  EXPECT_THAT(refusal("update_mask { paths: 'projection' }"), IsOk()) << "takes it away";
  EXPECT_THAT(refusal("update_mask { paths: 'score' }"),
              IsAbout(reasons::kInvalidOption, "store.score"));
  EXPECT_THAT(refusal("update_mask { paths: 'labels' }"), IsOk()) << "score is not in the mask";
}

StoreConfig ConfigWithProjection() {
  return {.name = "s",
          .key_dim = 2,
          .value_dim = 1,
          .projection = std::make_shared<Projection>(Projection{.input_dim = 3,
                                                                .query = {1, 2, 3, 4, 5, 6},
                                                                .key = {1, 2, 3, 4, 5, 6},
                                                                .value = {7, 8, 9}})};
}

TEST(CheckStoreBytesTest, AStoreWithinTheLimitFitsAListWhateverItGrowsTo) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  const StoreConfig config = ConfigWithProjection();
  std::int64_t least = 1;
  while (!CheckStoreBytes(config, least).ok()) ++least;
  v1::ListStoresResponse list;
  *list.add_stores() = EncodeStore({.config = config,
                                    .revision = kMax,
                                    .row_count = kMax,
                                    .live_row_count = kMax,
                                    .byte_size = kMax,
                                    .create_time = absl::Now()});
  list.set_next_page_token(config.name);
  EXPECT_GE(least, static_cast<std::int64_t>(list.ByteSizeLong()));
  EXPECT_LE(least, static_cast<std::int64_t>(list.ByteSizeLong()) + 16);
  const absl::Status refusal = CheckStoreBytes(config, least - 1);
  EXPECT_THAT(refusal, StatusIs(absl::StatusCode::kResourceExhausted, "store: "));
  EXPECT_EQ(ReasonOf(refusal), "ANSWER_TOO_LARGE");
  EXPECT_THAT(MetadataOf(refusal), ElementsAre(Pair("bytes", std::to_string(least)),
                                               Pair("limit", std::to_string(least - 1))));
}

// It is asked before the engine sees the config.
TEST(CheckStoreBytesTest, TakesWhatTheEngineRefuses) {
  EXPECT_THAT(CheckStoreBytes({.projection = std::make_shared<Projection>()}, kNoLimit), IsOk());
}

TEST(EncodeStoreRenamedTest, TellsOfAReplacedStoreOnlyIfThereWasOne) {
  StoreRenamed renamed{.store = {.config = {.name = "new"}, .revision = 3}};
  v1::RenameStoreResponse response;
  EncodeStoreRenamed(renamed, response);
  EXPECT_EQ(response.store().name(), "new");
  EXPECT_EQ(response.store().revision(), 3u);
  EXPECT_FALSE(response.has_replaced());
  renamed.replaced = {.revision = 4,
                      .row_count = 5,
                      .live_row_count = 2,
                      .create_time = absl::FromUnixNanos(6'000'000'007)};
  EncodeStoreRenamed(renamed, response);
  EXPECT_EQ(response.replaced().revision(), 4u);
  EXPECT_EQ(response.replaced().row_count(), 5u);
  EXPECT_EQ(response.replaced().live_row_count(), 2u);
  EXPECT_EQ(response.replaced().create_time().seconds(), 6);
  EXPECT_EQ(response.replaced().create_time().nanos(), 7);
}

TEST(EncodeCompactionTest, TellsWhatWasDroppedWithoutTheNumbersOfTheStore) {
  v1::CompactStoreResponse response;
  EncodeCompaction({.block_count = 2,
                    .dropped_rows = 700,
                    .store = {.config = ConfigWithProjection(), .row_count = 1000}},
                   response);
  EXPECT_EQ(response.compacted_blocks(), 2u);
  EXPECT_EQ(response.dropped_rows(), 700u);
  EXPECT_EQ(response.store().row_count(), 1000u);
  const v1::Matrix& matrix = response.store().projection().query();
  EXPECT_GT(matrix.cols(), 0u);
  EXPECT_EQ(matrix.data(), "");
}

TEST(EncodeStoreTest, FillsInEveryField) {
  const StoreInfo info{.config = {.name = "s",
                                  .key_dim = 65536,
                                  .value_dim = 4,
                                  .num_heads = 2,
                                  .score = Score::kSquaredEuclidean,
                                  .temperature = 0.5,
                                  .labels = {{"a", "b"}}},
                       .revision = 3,
                       .row_count = 1'000'000'000'000,
                       .live_row_count = 999'999'999'999,
                       .byte_size = 5,
                       .create_time = absl::FromUnixNanos(1'700'000'000'123'456'789)};
  const v1::Store store = EncodeStore(info);
  EXPECT_EQ(store.name(), "s");
  EXPECT_EQ(store.key_dim(), 65536u);
  EXPECT_EQ(store.value_dim(), 4u);
  EXPECT_EQ(store.num_heads(), 2u);
  EXPECT_EQ(store.score(), v1::SCORE_SQUARED_EUCLIDEAN);
  EXPECT_EQ(store.temperature(), 0.5);
  EXPECT_EQ(store.storage_type(), v1::ELEMENT_TYPE_FLOAT32);
  EXPECT_EQ(store.labels().at("a"), "b");
  EXPECT_EQ(store.revision(), 3u);
  EXPECT_EQ(store.row_count(), 1'000'000'000'000u);
  EXPECT_EQ(store.live_row_count(), 999'999'999'999u);
  EXPECT_EQ(store.byte_size(), 5u);
  EXPECT_EQ(store.create_time().seconds(), 1'700'000'000);
  EXPECT_EQ(store.create_time().nanos(), 123'456'789);
  EXPECT_EQ(store.damage(), "");
}

TEST(EncodeStoreTest, SaysWhatIsDamagedAndWhatElseIsKnown) {
  StoreInfo info{.config = {.name = "s"}, .damage = "bad block in disk/\xff"};
  v1::Store only_named;
  only_named.set_name("s");
  only_named.set_damage("bad block in disk/?");
  EXPECT_EQ(EncodeStore(info).SerializeAsString(), only_named.SerializeAsString());

  info.config.key_dim = info.config.value_dim = 3;
  info.row_count = 7;
  info.damage = std::string(5000, 'x');
  const v1::Store store = EncodeStore(info);
  EXPECT_EQ(store.key_dim(), 3u);
  EXPECT_EQ(store.row_count(), 7u);
  EXPECT_EQ(store.damage(), std::string(1024, 'x') + "...");
}

TEST(EncodeStoreTest, WhatItSaysOfAStoreMakesTheSameStore) {
  const StoreConfig config{
      .name = "s",
      .key_dim = 6,
      .value_dim = 4,
      .num_heads = 2,
      .score = Score::kCosine,
      .temperature = 0.5,
      .memories = {{.name = "d", .kind = MemoryKind::kDecayedSum, .decay = 0.5},
                   {.name = "g", .kind = MemoryKind::kGated, .gate = {1, 2}}},
      .labels = {{"a", "b"}}};
  const auto again = DecodeStore(EncodeStore({.config = config, .revision = 9, .row_count = 8}));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->name, config.name);
  EXPECT_EQ(again->key_dim, config.key_dim);
  EXPECT_EQ(again->value_dim, config.value_dim);
  EXPECT_EQ(again->num_heads, config.num_heads);
  EXPECT_EQ(again->score, config.score);
  EXPECT_EQ(again->temperature, config.temperature);
  EXPECT_EQ(again->labels, config.labels);
  ASSERT_EQ(again->memories.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(again->memories[i].name, config.memories[i].name);
    EXPECT_EQ(again->memories[i].kind, config.memories[i].kind);
    EXPECT_EQ(again->memories[i].decay, config.memories[i].decay);
    EXPECT_EQ(again->memories[i].gate, config.memories[i].gate);
  }
}

}  // namespace
}  // namespace softlookup::server
