#include "server/rpc/codec.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/time/clock.h"
#include "core/base/error.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIn;
using ::softlookup::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// It has this reason and its metadata name this field.
MATCHER_P2(IsAbout, reason, field, "") {
  const absl::Status& status = StatusIn(arg);
  *result_listener << status.ToString();
  return ReasonOf(status) == reason.name && status.code() == reason.code &&
         ::testing::Value(MetadataOf(status), Contains(Pair("field", field)));
}

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

template <typename Element>
v1::Matrix MatrixOf(std::uint32_t rows, std::uint32_t cols, int element_type,
                    const std::vector<Element>& elements) {
  v1::Matrix matrix;
  matrix.set_rows(rows);
  matrix.set_cols(cols);
  matrix.set_element_type(static_cast<v1::ElementType>(element_type));
  matrix.set_data(elements.data(), elements.size() * sizeof(Element));
  return matrix;
}

std::vector<float> Floats(const MatrixView& view) {
  return std::vector<float>(view.data, view.data + view.rows * view.cols);
}

absl::Status Refusal(const v1::Matrix& matrix) { return DecodeMatrix("keys", matrix).status(); }

TEST(DecodeMatrixTest, ReadsFloat32DataWhereItLies) {
  for (const int type : {v1::ELEMENT_TYPE_UNSPECIFIED, v1::ELEMENT_TYPE_FLOAT32}) {
    const v1::Matrix matrix = MatrixOf<float>(2, 3, type, {1, -2, 3, 4, 5, 6e-45f});
    const auto decoded = DecodeMatrix("keys", matrix);
    ASSERT_THAT(decoded, IsOk());
    const MatrixView view = decoded->view();
    EXPECT_EQ(view.rows, 2);
    EXPECT_EQ(view.cols, 3);
    EXPECT_THAT(Floats(view), ElementsAre(1, -2, 3, 4, 5, 6e-45f));
    EXPECT_EQ(static_cast<const void*>(view.data), matrix.data().data()) << "copied";
  }
}

TEST(DecodeMatrixTest, ReadsValuesWhateverTheElementType) {
  for (const char* type : {"0", "FLOAT64", "INT8", "99"}) {
    const std::string name = std::isdigit(*type) ? type : std::string("ELEMENT_TYPE_") + type;
    const auto matrix =
        FromText<v1::Matrix>("rows: 1 cols: 2 values: [1, -2] element_type: " + name);
    const auto decoded = DecodeMatrix("keys", matrix);
    ASSERT_THAT(decoded, IsOk()) << type;
    EXPECT_THAT(Floats(decoded->view()), ElementsAre(1, -2));
    EXPECT_EQ(decoded->view().data, matrix.values().data()) << "copied";
  }
}

TEST(DecodeMatrixTest, RefusesBothAndNeitherOfDataAndValues) {
  v1::Matrix matrix = MatrixOf<float>(1, 1, 0, {1});
  matrix.add_values(1);
  EXPECT_THAT(Refusal(matrix), IsAbout(reasons::kInvalidMatrix, "keys"));
  EXPECT_THAT(Refusal(matrix), StatusIs(kInvalid, "both set"));
  EXPECT_THAT(Refusal(FromText<v1::Matrix>("rows: 2 cols: 3")),
              IsAbout(reasons::kInvalidMatrix, "keys"));
  EXPECT_THAT(Refusal(FromText<v1::Matrix>("rows: 2 cols: 3")), StatusIs(kInvalid, "neither"));
}

TEST(DecodeMatrixTest, RefusesEveryOtherLength) {
  for (const int type :
       {v1::ELEMENT_TYPE_FLOAT32, v1::ELEMENT_TYPE_FLOAT64, v1::ELEMENT_TYPE_BFLOAT16}) {
    const int needed = 6 * (type == v1::ELEMENT_TYPE_FLOAT32   ? 4
                            : type == v1::ELEMENT_TYPE_FLOAT64 ? 8
                                                               : 2);
    for (int bytes = 1; bytes <= 2 * needed; ++bytes) {
      const v1::Matrix matrix = MatrixOf(2, 3, type, std::vector<char>(bytes));
      if (bytes == needed) {
        EXPECT_THAT(Refusal(matrix), IsOk());
      } else {
        EXPECT_THAT(Refusal(matrix), IsAbout(reasons::kInvalidMatrix, "keys")) << bytes;
      }
    }
  }
  for (const char* values : {"[1, 2, 3, 4, 5]", "[1, 2, 3, 4, 5, 6, 7]"}) {
    EXPECT_THAT(Refusal(FromText<v1::Matrix>(std::string("rows: 2 cols: 3 values: ") + values)),
                IsAbout(reasons::kInvalidMatrix, "keys"));
  }
}

TEST(DecodeMatrixTest, RoundsFloat64ToTheNearestFloat32) {
  const v1::Matrix matrix =
      MatrixOf<double>(2, 2, v1::ELEMENT_TYPE_FLOAT64, {0.1, -1e-50, 1 + 0x1p-25, 0x1p-149});
  const auto decoded = DecodeMatrix("keys", matrix);
  ASSERT_THAT(decoded, IsOk());
  EXPECT_THAT(Floats(decoded->view()), ElementsAre(0.1f, 0, 1, 0x1p-149f));
  EXPECT_TRUE(std::signbit(decoded->view().data[1]));
}

TEST(DecodeMatrixTest, Float64BeyondFloat32NamesFieldAndRow) {
  // Half a unit above the largest float32: the least that rounds to infinity.
  constexpr double kTooLarge = 0x1p128 - 0x1p103;
  const auto refusal = [](double element) {
    return Refusal(MatrixOf<double>(3, 2, v1::ELEMENT_TYPE_FLOAT64, {1, 2, 3, 4, 5, element}));
  };
  for (const double element : {kTooLarge, -kTooLarge, std::numeric_limits<double>::max()}) {
    EXPECT_THAT(refusal(element), IsAbout(reasons::kNonFiniteValue, "keys"));
    EXPECT_THAT(refusal(element), StatusIs(kInvalid, "keys: row 2, column 1"));
    EXPECT_THAT(MetadataOf(refusal(element)),
                ElementsAre(Pair("column", "1"), Pair("field", "keys"), Pair("row", "2")));
  }
  EXPECT_THAT(refusal(std::nextafter(kTooLarge, 0)), IsOk());
  EXPECT_THAT(refusal(-std::nextafter(kTooLarge, 0)), IsOk());
}

TEST(DecodeMatrixTest, LeavesNonFiniteElementsToTheEngineInEveryEncoding) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const v1::Matrix float64 = MatrixOf<double>(1, 2, v1::ELEMENT_TYPE_FLOAT64, {-kInf, NAN});
  const v1::Matrix bfloat16 =
      MatrixOf<std::uint16_t>(1, 2, v1::ELEMENT_TYPE_BFLOAT16, {0xff80, 0x7fc0});
  for (const v1::Matrix& matrix : {float64, bfloat16}) {
    const auto decoded = DecodeMatrix("keys", matrix);
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(decoded->view().data[0], -kInf);
    EXPECT_TRUE(std::isnan(decoded->view().data[1]));
  }
}

TEST(DecodeMatrixTest, ReadsBfloat16AsTheUpperHalfOfFloat32) {
  const v1::Matrix matrix =
      MatrixOf<std::uint16_t>(4, 1, v1::ELEMENT_TYPE_BFLOAT16, {0x3f80, 0xc020, 0x0001, 0x7f7f});
  const auto decoded = DecodeMatrix("keys", matrix);
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(decoded->view().rows, 4);
  EXPECT_EQ(decoded->view().cols, 1);
  EXPECT_THAT(Floats(decoded->view()), ElementsAre(1, -2.5f, 0x1p-133f, 0x1.fep127f));
}

TEST(DecodeMatrixTest, RefusesInt8AndUnknownElementTypes) {
  for (const int type : {int{v1::ELEMENT_TYPE_INT8}, v1::ElementType_MAX + 1, 99, -1}) {
    EXPECT_THAT(Refusal(MatrixOf<char>(2, 2, type, {1, 2, 3, 4})),
                IsAbout(reasons::kInvalidMatrix, "keys"))
        << type;
    EXPECT_THAT(Refusal(MatrixOf<char>(0, 2, type, {})), StatusIs(kInvalid, "element_type"))
        << type;
  }
}

TEST(DecodeMatrixTest, AMatrixWithoutElementsNeedsNeither) {
  for (const char* shape : {"", "cols: 3", "rows: 3", "rows: 4294967295"}) {
    for (const char* type : {"FLOAT32", "FLOAT64", "BFLOAT16"}) {
      const auto matrix =
          FromText<v1::Matrix>(std::string(shape) + " element_type: ELEMENT_TYPE_" + type);
      const auto decoded = DecodeMatrix("keys", matrix);
      ASSERT_THAT(decoded, IsOk()) << shape << " " << type;
      EXPECT_EQ(decoded->view().rows, matrix.rows());
      EXPECT_EQ(decoded->view().cols, matrix.cols());
    }
    EXPECT_THAT(Refusal(FromText<v1::Matrix>(std::string(shape) + " values: 1")),
                IsAbout(reasons::kInvalidMatrix, "keys"));
    EXPECT_THAT(Refusal(FromText<v1::Matrix>(std::string(shape) + " data: '0123'")),
                IsAbout(reasons::kInvalidMatrix, "keys"));
  }
}

TEST(DecodeMatrixTest, ShapesThatWrapAroundAreRefused) {
  // 4 * rows * cols = 2^64 + 4.
  EXPECT_THAT(Refusal(MatrixOf<float>(2147418113, 2147549185, v1::ELEMENT_TYPE_FLOAT32, {1})),
              IsAbout(reasons::kInvalidMatrix, "keys"));
  // rows * cols = 2^32 + 1.
  EXPECT_THAT(Refusal(MatrixOf<float>(641, 6700417, v1::ELEMENT_TYPE_FLOAT32, {1})),
              IsAbout(reasons::kInvalidMatrix, "keys"));
  EXPECT_THAT(Refusal(FromText<v1::Matrix>("rows: 641 cols: 6700417 values: 1")),
              IsAbout(reasons::kInvalidMatrix, "keys"));
  // rows * cols = 2^62, so that 4 and 8 bytes an element wrap around to 0.
  EXPECT_THAT(Refusal(FromText<v1::Matrix>("rows: 2147483648 cols: 2147483648")),
              IsAbout(reasons::kInvalidMatrix, "keys"));
  constexpr std::uint32_t kMax = std::numeric_limits<std::uint32_t>::max();
  for (const int type :
       {v1::ELEMENT_TYPE_FLOAT32, v1::ELEMENT_TYPE_FLOAT64, v1::ELEMENT_TYPE_BFLOAT16}) {
    for (const std::size_t bytes : {0, 8}) {
      EXPECT_THAT(Refusal(MatrixOf(kMax, kMax, type, std::vector<char>(bytes))),
                  IsAbout(reasons::kInvalidMatrix, "keys"))
          << type << " " << bytes;
    }
  }
}

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
        weights: WEIGHTS_MODE_TOP top_weights: 7 }
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
               lookup.options.recency_decay);
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
          .stats = {{.log_sum_exp = 0.5, .max_logit = 0.25, .counted_rows = 2, .entropy = 0.125},
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
