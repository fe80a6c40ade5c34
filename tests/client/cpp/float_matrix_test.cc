#include "softlookup/float_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace softlookup {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::string Bytes(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

v1::Matrix TwoByTwo(v1::ElementType type, std::string data) {
  v1::Matrix matrix;
  matrix.set_rows(2);
  matrix.set_cols(2);
  matrix.set_element_type(type);
  matrix.set_data(std::move(data));
  return matrix;
}

TEST(FloatMatrixTest, TravelsAsFloat32DataAndComesBackTheSame) {
  const FloatMatrix matrix{.rows = 2, .cols = 3, .data = {1, -2, 0.1f, 1e-45f, 3e38f, 0}};
  v1::Matrix wire;
  ASSERT_TRUE(FloatMatrixView(matrix).ToProto(&wire).ok());
  EXPECT_EQ(wire.element_type(), v1::ELEMENT_TYPE_FLOAT32);
  EXPECT_EQ(wire.data(), Bytes(matrix.data));
  const auto back = FloatMatrix::FromProto(wire);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->rows, 2u);
  EXPECT_EQ(back->cols, 3u);
  EXPECT_EQ(back->data, matrix.data);
  EXPECT_THAT(back->Row(1), ElementsAre(1e-45f, 3e38f, 0));
}

TEST(FloatMatrixTest, ViewOfTheWrongSizeIsRefused) {
  const std::vector<float> data(5);
  v1::Matrix wire;
  EXPECT_TRUE(absl::IsInvalidArgument(FloatMatrixView(data, 2, 3).ToProto(&wire)));
}

TEST(FloatMatrixTest, ShapeWhoseProductExceeds32BitsIsRefused) {
  v1::Matrix wire;
  EXPECT_TRUE(absl::IsInvalidArgument(FloatMatrixView({}, 1u << 16, 1u << 16).ToProto(&wire)));
  wire.set_rows(1u << 16);
  wire.set_cols(1u << 16);
  EXPECT_TRUE(absl::IsInvalidArgument(FloatMatrix::FromProto(wire).status()));
}

TEST(FloatMatrixTest, EmptyMatrixKeepsItsShape) {
  v1::Matrix wire;
  wire.set_cols(7);
  const auto matrix = FloatMatrix::FromProto(wire);
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->cols, 7u);
  EXPECT_TRUE(matrix->data.empty());
}

TEST(FloatMatrixTest, ReadsValuesAndFloat64) {
  v1::Matrix values;
  values.set_rows(1);
  values.set_cols(2);
  values.add_values(3);
  values.add_values(4);
  EXPECT_THAT(FloatMatrix::FromProto(values)->data, ElementsAre(3, 4));
  const auto wire = TwoByTwo(v1::ELEMENT_TYPE_FLOAT64, Bytes<double>({1.0 / 3, 2, 3, -1e-300}));
  EXPECT_THAT(FloatMatrix::FromProto(wire)->data, ElementsAre(1.0f / 3, 2, 3, 0));
  EXPECT_THAT(*DoublesFromProto(wire), ElementsAre(1.0 / 3, 2, 3, -1e-300));
}

TEST(FloatMatrixTest, DataOfTheWrongSizeOrTypeIsRefused) {
  const std::vector<v1::Matrix> bad = {
      TwoByTwo(v1::ELEMENT_TYPE_FLOAT32, std::string(15, '\0')),
      TwoByTwo(v1::ELEMENT_TYPE_FLOAT32, std::string(17, '\0')),
      TwoByTwo(v1::ELEMENT_TYPE_FLOAT64, std::string(16, '\0')),
      TwoByTwo(v1::ELEMENT_TYPE_BFLOAT16, std::string(8, '\0')),
      TwoByTwo(v1::ELEMENT_TYPE_UNSPECIFIED, ""),
  };
  for (const v1::Matrix& matrix : bad) {
    EXPECT_TRUE(absl::IsInvalidArgument(FloatMatrix::FromProto(matrix).status()))
        << matrix.ShortDebugString();
  }
}

}  // namespace
}  // namespace softlookup
