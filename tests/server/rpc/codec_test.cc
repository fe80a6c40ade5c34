#include "server/rpc/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "server/rpc/message_bytes.h"
#include "tests/server/rpc/codec_helpers.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;

TEST(DecodeAppendTest, ViewsTheRequest) {
  const auto request = FromText<v1::AppendRequest>(R"(
      store: "s" keys { rows: 2 cols: 1 values: [1, 2] } values { rows: 2 cols: 2
      values: [3, 4, 5, 6] } return_memories: "average" return_memories: "")");
  DecodedAppend decoded;
  ASSERT_THAT(DecodeAppend(request, "other", decoded), IsOk());
  EXPECT_EQ(decoded.request.store, "s");
  EXPECT_EQ(decoded.request.keys.data, request.keys().values().data());
  EXPECT_EQ(decoded.request.values.data, request.values().values().data());
  EXPECT_THAT(Floats(decoded.request.keys), ElementsAre(1, 2));
  EXPECT_THAT(Floats(decoded.request.values), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(decoded.request.return_memories, ElementsAre("average", ""));
}

TEST(DecodeAppendTest, ViewsMatricesThatItConverted) {
  v1::AppendRequest request;
  *request.mutable_keys() =
      MatrixOf<std::uint16_t>(1, 2, v1::ELEMENT_TYPE_BFLOAT16, {0x3f80, 0x4000});
  *request.mutable_values() = MatrixOf<double>(1, 1, v1::ELEMENT_TYPE_FLOAT64, {3});
  DecodedAppend decoded;
  ASSERT_THAT(DecodeAppend(request, "s", decoded), IsOk());
  EXPECT_THAT(Floats(decoded.request.keys), ElementsAre(1, 2));
  EXPECT_THAT(Floats(decoded.request.values), ElementsAre(3));
}

TEST(DecodeAppendTest, OnAStreamTheStoreMayBeLeftOut) {
  const std::string store = "first";
  DecodedAppend decoded;
  ASSERT_THAT(DecodeAppend(v1::AppendRequest(), store, decoded), IsOk());
  EXPECT_EQ(decoded.request.store, "first");
}

TEST(DecodeAppendTest, RefusesWhatItDoesNotServe) {
  const auto refusal = [](const char* text) {
    DecodedAppend decoded;
    return DecodeAppend(FromText<v1::AppendRequest>(text), "s", decoded);
  };
  EXPECT_THAT(refusal("inputs {} keys {}"), IsAbout(reasons::kInvalidMatrix, "inputs"));
  EXPECT_THAT(refusal("on_conflict: 4"), IsAbout(reasons::kInvalidOption, "on_conflict"));
  EXPECT_THAT(refusal("acknowledge: 3"), IsAbout(reasons::kInvalidOption, "acknowledge"));
  EXPECT_THAT(refusal("acknowledge: -1"), IsAbout(reasons::kInvalidOption, "acknowledge"));
}

TEST(DecodeAppendTest, TakesWriterAndSequenceAsTheyAre) {
  const auto decode = [](const char* text) {
    DecodedAppend decoded;
    EXPECT_THAT(DecodeAppend(FromText<v1::AppendRequest>(text), "s", decoded), IsOk()) << text;
    return decoded.request;
  };
  const AppendRequest both = decode("writer: 'loader 7' sequence: 18446744073709551615");
  EXPECT_EQ(both.writer, "loader 7");
  EXPECT_EQ(both.sequence, 18446744073709551615u);
  // One without the other is for the engine to refuse.
  EXPECT_EQ(decode("writer: 'w'").sequence, 0u);
  EXPECT_EQ(decode("sequence: 1").writer, "");
  EXPECT_EQ(decode("").writer, "");
  EXPECT_EQ(decode("").sequence, 0u);
}

TEST(DecodeAppendTest, IsDurableUnlessAppliedIsEnough) {
  const auto durable = [](v1::Acknowledge acknowledge) {
    v1::AppendRequest request;
    request.set_acknowledge(acknowledge);
    DecodedAppend decoded;
    EXPECT_THAT(DecodeAppend(request, "s", decoded), IsOk());
    return decoded.request.durable;
  };
  EXPECT_TRUE(durable(v1::ACKNOWLEDGE_UNSPECIFIED));
  EXPECT_TRUE(durable(v1::ACKNOWLEDGE_DURABLE));
  EXPECT_FALSE(durable(v1::ACKNOWLEDGE_APPLIED));
}

TEST(DecodeAppendTest, NamesTheMatrixThatIsWrong) {
  const auto refusal = [](const char* text) {
    DecodedAppend decoded;
    return DecodeAppend(FromText<v1::AppendRequest>(text), "s", decoded);
  };
  EXPECT_THAT(refusal("keys { rows: 1 cols: 1 }"), IsAbout(reasons::kInvalidMatrix, "keys"));
  EXPECT_THAT(refusal("values { rows: 1 cols: 1 }"), IsAbout(reasons::kInvalidMatrix, "values"));
}

TEST(DecodeLookupTest, TakesEveryServedField) {
  const auto request = FromText<v1::LookupRequest>(R"(
      store: "s" queries { rows: 1 cols: 2 values: [1, 2] } source: SOURCE_ROWS
      options { score: SCORE_EUCLIDEAN temperature: 0.5 mode: MODE_HARD top_k: 4294967295
        min_score: -1 recency_decay: 0.25 causal: true causal_offset: 18446744073709551615
        weights: WEIGHTS_MODE_TOP top_weights: 7 max_error: 0.125 }
      filter { begin: 1 end: 18446744073709551615 last: 3 } min_revision: 18446744073709551614)");
  DecodedLookup decoded;
  ASSERT_THAT(DecodeLookup(request, "other", decoded), IsOk());
  const LookupRequest& lookup = decoded.request;
  EXPECT_EQ(lookup.store, "s");
  EXPECT_EQ(lookup.queries.data, request.queries().values().data());
  EXPECT_EQ(lookup.options.score, Score::kEuclidean);
  EXPECT_EQ(lookup.options.temperature, 0.5);
  EXPECT_EQ(lookup.options.mode, Mode::kHard);
  EXPECT_EQ(lookup.options.top_k, 4294967295);
  EXPECT_EQ(lookup.options.min_score, -1);
  EXPECT_EQ(lookup.options.recency_decay, 0.25);
  EXPECT_TRUE(lookup.options.causal);
  EXPECT_EQ(lookup.options.causal_offset, 18446744073709551615u);
  EXPECT_EQ(lookup.options.weights, WeightsMode::kTop);
  EXPECT_EQ(lookup.options.top_weights, 7u);
  EXPECT_EQ(lookup.options.max_error, 0.125);
  EXPECT_EQ(lookup.filter.begin, 1u);
  EXPECT_EQ(lookup.filter.end, 18446744073709551615u);
  EXPECT_EQ(lookup.filter.last, 3u);
  EXPECT_EQ(lookup.min_revision, 18446744073709551614u);
}

TEST(DecodeLookupTest, WhatIsUnsetStaysUnset) {
  DecodedLookup decoded;
  ASSERT_THAT(DecodeLookup(v1::LookupRequest(), "first", decoded), IsOk());
  const LookupRequest& lookup = decoded.request;
  EXPECT_EQ(lookup.store, "first");
  EXPECT_EQ(lookup.options.score, Score::kUnspecified);
  EXPECT_EQ(lookup.options.mode, Mode::kUnspecified);
  EXPECT_EQ(lookup.options.weights, WeightsMode::kUnspecified);
  EXPECT_FALSE(lookup.options.temperature || lookup.options.min_score ||
               lookup.options.recency_decay || lookup.options.max_error);
  EXPECT_FALSE(lookup.filter.begin || lookup.filter.end || lookup.filter.last);
  // Set to 0 is not unset: an empty range, no newest rows, a temperature that is refused.
  ASSERT_THAT(DecodeLookup(FromText<v1::LookupRequest>(
                               "filter { end: 0 last: 0 } options { temperature: 0 }"),
                           "first", decoded),
              IsOk());
  EXPECT_EQ(lookup.filter.end, 0u);
  EXPECT_EQ(lookup.filter.last, 0u);
  EXPECT_EQ(lookup.options.temperature, 0);
}

TEST(DecodeLookupTest, RefusesWhatItDoesNotServe) {
  const auto refusal = [](const char* text) {
    DecodedLookup decoded;
    return DecodeLookup(FromText<v1::LookupRequest>(text), "s", decoded);
  };
  EXPECT_THAT(refusal("inputs {} queries {}"), IsAbout(reasons::kInvalidMatrix, "inputs"));
  EXPECT_THAT(refusal("source: 4"), IsAbout(reasons::kInvalidOption, "source"));
  EXPECT_THAT(refusal("queries { rows: 1 cols: 1 }"), IsAbout(reasons::kInvalidMatrix, "queries"));
}

TEST(DecodeLookupTest, RefusesUnknownEnumNumbers) {
  const auto refusal = [](const std::string& text) {
    DecodedLookup decoded;
    return DecodeLookup(FromText<v1::LookupRequest>(text), "s", decoded);
  };
  for (const std::string number : {"99", "-1", "2147483647", "-2147483648"}) {
    for (const std::string field : {"score", "mode", "weights"}) {
      EXPECT_THAT(refusal("options { " + field + ": " + number + " }"),
                  IsAbout(reasons::kInvalidOption, "options." + field))
          << number;
    }
    EXPECT_THAT(refusal("source: " + number), IsAbout(reasons::kInvalidOption, "source"));
  }
}

TEST(DecodeLookupTest, TakesEveryEnumValueOfTheWire) {
  v1::LookupRequest request;
  v1::AttentionOptions& options = *request.mutable_options();
  DecodedLookup decoded;
  const AttentionOptions& taken = decoded.request.options;
  for (int number = 0; v1::Score_IsValid(number); ++number) {
    options.set_score(static_cast<v1::Score>(number));
    ASSERT_THAT(DecodeLookup(request, "s", decoded), IsOk());
    EXPECT_EQ(taken.score, static_cast<Score>(number));
  }
  for (int number = 0; v1::Mode_IsValid(number); ++number) {
    options.set_mode(static_cast<v1::Mode>(number));
    ASSERT_THAT(DecodeLookup(request, "s", decoded), IsOk());
    EXPECT_EQ(taken.mode, static_cast<Mode>(number));
  }
  for (int number = 0; v1::WeightsMode_IsValid(number); ++number) {
    options.set_weights(static_cast<v1::WeightsMode>(number));
    ASSERT_THAT(DecodeLookup(request, "s", decoded), IsOk());
    EXPECT_EQ(taken.weights, static_cast<WeightsMode>(number));
  }
}

// Core's enumerators are made from the wire's numbers.
TEST(EnumTest, CoreHasTheNumbersOfTheWire) {
  static_assert(int{v1::SCORE_DOT} == static_cast<int>(Score::kDot));
  static_assert(int{v1::SCORE_SCALED_DOT} == static_cast<int>(Score::kScaledDot));
  static_assert(int{v1::SCORE_COSINE} == static_cast<int>(Score::kCosine));
  static_assert(int{v1::SCORE_EUCLIDEAN} == static_cast<int>(Score::kEuclidean));
  static_assert(int{v1::SCORE_SQUARED_EUCLIDEAN} == static_cast<int>(Score::kSquaredEuclidean));
  static_assert(int{v1::MODE_SOFT} == static_cast<int>(Mode::kSoft));
  static_assert(int{v1::MODE_HARD} == static_cast<int>(Mode::kHard));
  static_assert(int{v1::MODE_LINEAR} == static_cast<int>(Mode::kLinear));
  static_assert(int{v1::WEIGHTS_MODE_NONE} == static_cast<int>(WeightsMode::kNone));
  static_assert(int{v1::WEIGHTS_MODE_TOP} == static_cast<int>(WeightsMode::kTop));
  static_assert(int{v1::WEIGHTS_MODE_ALL} == static_cast<int>(WeightsMode::kAll));
  static_assert(int{v1::MEMORY_KIND_AVERAGE} == static_cast<int>(MemoryKind::kAverage));
  static_assert(int{v1::MEMORY_KIND_DECAYED_SUM} == static_cast<int>(MemoryKind::kDecayedSum));
  static_assert(int{v1::MEMORY_KIND_DECAYED_AVERAGE} ==
                static_cast<int>(MemoryKind::kDecayedAverage));
  static_assert(int{v1::MEMORY_KIND_GATED} == static_cast<int>(MemoryKind::kGated));
  static_assert(int{v1::MEMORY_KIND_GATED_AVERAGE} == static_cast<int>(MemoryKind::kGatedAverage));
}

LookupResult TwoAnswers() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return {.values = {1, 2, 3, 4, 5, 6},
          .query_count = 2,
          .value_dim = 3,
          .stats = {{.log_sum_exp = 0.5,
                     .max_logit = 0.25,
                     .counted_rows = 2,
                     .entropy = 0.125,
                     .error_bound = 0.375,
                     .summed_rows = 1},
                    {.log_sum_exp = -kInf, .max_logit = -kInf}},
          .weights = {{.rows = {{.position = 7, .weight = 0.75, .score = 9},
                                {.position = 3, .weight = 0.25, .score = 8}},
                       .remaining_weight = 0.0625},
                      {}},
          .revision = 11,
          .row_count = 10};
}

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

TEST(EncodeLookupTest, FillsInTheWholeAnswerAndEchoesTheTag) {
  const auto request = FromText<v1::LookupRequest>("queries { rows: 2 } tag: 42");
  v1::LookupResponse response;
  ASSERT_THAT(EncodeLookup(request, TwoAnswers(), kNoLimit, response), IsOk());
  EXPECT_EQ(response.tag(), 42u);
  EXPECT_EQ(response.revision(), 11u);
  EXPECT_EQ(response.row_count(), 10u);
  EXPECT_FALSE(response.has_error());

  ASSERT_EQ(response.stats_size(), 2);
  EXPECT_EQ(response.stats(0).log_sum_exp(), 0.5);
  EXPECT_EQ(response.stats(0).max_logit(), 0.25);
  EXPECT_EQ(response.stats(0).counted_rows(), 2u);
  EXPECT_EQ(response.stats(0).entropy(), 0.125);
  EXPECT_FALSE(response.stats(0).empty());
  EXPECT_EQ(response.stats(0).error_bound(), 0.375);
  EXPECT_EQ(response.stats(0).summed_rows(), 1u);
  EXPECT_EQ(response.stats(1).log_sum_exp(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(response.stats(1).empty());

  ASSERT_EQ(response.weights_size(), 2);
  EXPECT_THAT(response.weights(0).positions(), ElementsAre(7, 3));
  EXPECT_THAT(response.weights(0).weights(), ElementsAre(0.75, 0.25));
  EXPECT_THAT(response.weights(0).scores(), ElementsAre(9, 8));
  EXPECT_THAT(response.weights(0).ids(), IsEmpty());
  EXPECT_EQ(response.weights(0).remaining_weight(), 0.0625);
  EXPECT_THAT(response.weights(1).positions(), IsEmpty());
}

TEST(EncodeLookupTest, ListsAnIdForEachPositionIfAnyRowHasOne) {
  LookupResult result = TwoAnswers();
  result.weights[0].rows[1].id = 12;
  v1::LookupResponse response;
  ASSERT_THAT(
      EncodeLookup(FromText<v1::LookupRequest>("queries { rows: 2 }"), result, kNoLimit, response),
      IsOk());
  EXPECT_THAT(response.weights(0).ids(), ElementsAre(0, 12));
  EXPECT_THAT(response.weights(0).has_ids(), ElementsAre(false, true));
  EXPECT_THAT(response.weights(1).ids(), IsEmpty());
  EXPECT_THAT(response.weights(1).has_ids(), IsEmpty());

  result.weights[0].rows[0].id = 0;
  response.Clear();
  ASSERT_THAT(
      EncodeLookup(FromText<v1::LookupRequest>("queries { rows: 2 }"), result, kNoLimit, response),
      IsOk());
  EXPECT_THAT(response.weights(0).ids(), ElementsAre(0, 12));
  EXPECT_THAT(response.weights(0).has_ids(), IsEmpty());
}

TEST(EncodeLookupTest, AnswersInTheFormInWhichItWasAsked) {
  v1::LookupRequest request;
  *request.mutable_queries() = MatrixOf<float>(2, 1, 0, {1, 2});
  v1::LookupResponse in_data;
  ASSERT_THAT(EncodeLookup(request, TwoAnswers(), kNoLimit, in_data), IsOk());
  EXPECT_EQ(in_data.values().rows(), 2u);
  EXPECT_EQ(in_data.values().cols(), 3u);
  EXPECT_EQ(in_data.values().element_type(), v1::ELEMENT_TYPE_FLOAT32);
  EXPECT_EQ(in_data.values().values_size(), 0);
  const auto decoded = DecodeMatrix("values", in_data.values());
  ASSERT_THAT(decoded, IsOk());
  EXPECT_THAT(Floats(decoded->view()), ElementsAre(1, 2, 3, 4, 5, 6));

  request = FromText<v1::LookupRequest>("queries { rows: 2 cols: 1 values: [1, 2] }");
  v1::LookupResponse in_values;
  ASSERT_THAT(EncodeLookup(request, TwoAnswers(), kNoLimit, in_values), IsOk());
  EXPECT_THAT(in_values.values().data(), IsEmpty());
  EXPECT_THAT(in_values.values().values(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(EncodeLookupTest, NoQueriesAreAnAnswerWithoutRows) {
  v1::LookupResponse response;
  ASSERT_THAT(EncodeLookup(v1::LookupRequest(), {.value_dim = 3}, kNoLimit, response), IsOk());
  EXPECT_EQ(response.values().rows(), 0u);
  EXPECT_EQ(response.values().cols(), 3u);
  EXPECT_THAT(DecodeMatrix("values", response.values()), IsOk());
}

TEST(EncodeLookupTest, AnAnswerOverTheLimitSaysHowManyBytesItNeeds) {
  const auto request = FromText<v1::LookupRequest>("queries { rows: 2 }");
  v1::LookupResponse response;
  ASSERT_THAT(EncodeLookup(request, TwoAnswers(), kNoLimit, response), IsOk());
  const auto bytes = static_cast<std::int64_t>(response.ByteSizeLong());
  const auto encode = [&](std::int64_t bytes_max) {
    v1::LookupResponse fresh;
    return EncodeLookup(request, TwoAnswers(), bytes_max, fresh);
  };
  EXPECT_THAT(encode(bytes), IsOk());
  const absl::Status refusal = encode(bytes - 1);
  EXPECT_THAT(refusal, StatusIs(absl::StatusCode::kResourceExhausted, std::to_string(bytes)));
  EXPECT_EQ(ReasonOf(refusal), "ANSWER_TOO_LARGE");
  EXPECT_THAT(MetadataOf(refusal), ElementsAre(Pair("bytes", std::to_string(bytes)),
                                               Pair("limit", std::to_string(bytes - 1))));
}

TEST(CheckMessageBytesTest, TheLimitItselfIsAllowed) {
  const auto message = FromText<v1::LookupRequest>("store: 's' tag: 1");
  const auto bytes = static_cast<std::int64_t>(message.ByteSizeLong());
  EXPECT_THAT(CheckMessageBytes(bytes, bytes), IsOk());
  const absl::Status refusal = CheckMessageBytes(bytes, bytes - 1);
  EXPECT_THAT(refusal, StatusIs(absl::StatusCode::kResourceExhausted, std::to_string(bytes)));
  EXPECT_EQ(ReasonOf(refusal), "MESSAGE_TOO_LARGE");
  EXPECT_THAT(MetadataOf(refusal), Contains(Key("limit")));
}

// Bit for bit: a memory is kept in float64.
TEST(EncodeMemoryTest, KeepsEveryBitOfKeyAndValue) {
  const std::vector<double> value = {1e300, -0.0, 0x1p-1074};
  v1::Memory message;
  EncodeMemory({.name = "average",
                .memory = {.key = {1.0 / 3}, .value = value, .weight = 3},
                .begin = 2,
                .end = 5,
                .revision = 7},
               message);
  EXPECT_EQ(message.name(), "average");
  EXPECT_EQ(message.begin(), 2u);
  EXPECT_EQ(message.end(), 5u);
  EXPECT_EQ(message.weight(), 3);
  EXPECT_EQ(message.revision(), 7u);
  EXPECT_EQ(message.key().rows(), 1u);
  EXPECT_EQ(message.key().cols(), 1u);
  EXPECT_EQ(message.value().rows(), 1u);
  EXPECT_EQ(message.value().cols(), 3u);
  EXPECT_EQ(message.value().element_type(), v1::ELEMENT_TYPE_FLOAT64);
  EXPECT_EQ(message.key().data(), std::string("\x55\x55\x55\x55\x55\x55\xd5\x3f"));
  EXPECT_EQ(message.value().data(),
            std::string(reinterpret_cast<const char*>(value.data()), 3 * sizeof(double)));
}

TEST(EncodeAppendTest, FillsInEveryFieldAndTheMemoriesInOrder) {
  v1::AppendResponse response;
  EncodeAppend(9,
               {.first_position = 4,
                .appended_count = 2,
                .row_count = 6,
                .revision = 3,
                .memories = {{.name = "average", .end = 6}, {.name = "b"}}},
               response);
  EXPECT_EQ(response.first_position(), 4u);
  EXPECT_EQ(response.appended_count(), 2u);
  EXPECT_EQ(response.row_count(), 6u);
  EXPECT_EQ(response.revision(), 3u);
  EXPECT_EQ(response.sequence(), 9u);
  EXPECT_FALSE(response.duplicate());
  ASSERT_EQ(response.memories_size(), 2);
  EXPECT_EQ(response.memories(0).name(), "average");
  EXPECT_EQ(response.memories(0).end(), 6u);
  EXPECT_EQ(response.memories(1).name(), "b");
}

TEST(EncodeAppendTest, SaysThatItWasADuplicate) {
  v1::AppendResponse response;
  EncodeAppend(9, {.first_position = 4, .appended_count = 2, .duplicate = true}, response);
  EXPECT_TRUE(response.duplicate());
  EXPECT_EQ(response.sequence(), 9u);
  EXPECT_EQ(response.first_position(), 4u);
}

}  // namespace
}  // namespace softlookup::server
