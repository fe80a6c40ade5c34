// Matrices: every way to write one.
#include <bit>

#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;

// The elements as they are in memory.
template <typename T>
v1::Matrix Encoded(v1::ElementType type, const std::vector<T>& elements, std::int64_t cols) {
  v1::Matrix matrix;
  matrix.set_rows(static_cast<std::uint32_t>(static_cast<std::int64_t>(elements.size()) / cols));
  matrix.set_cols(static_cast<std::uint32_t>(cols));
  matrix.set_element_type(type);
  matrix.set_data(elements.data(), elements.size() * sizeof(T));
  return matrix;
}

// Its upper half.
std::uint16_t Bfloat16(float number) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
}

class MatrixTest : public IntegrationTest {
 protected:
  grpc::Status AppendKeys(const v1::Matrix& keys) {
    v1::AppendRequest append = TwoRows();
    *append.mutable_keys() = keys;
    return Append(append);
  }
};

TEST_F(MatrixTest, EveryEncodingOfTheSameNumbersMakesTheSameRows) {
  Create("s", 2, 1);
  const std::vector<float> floats = {1.5f, -2, 0.25f, 384};  // All are bfloat16, too.
  std::vector<std::uint16_t> halves;
  v1::Matrix numbers;
  numbers.set_rows(2);
  numbers.set_cols(2);
  for (const float number : floats) {
    halves.push_back(Bfloat16(number));
    numbers.add_values(number);
  }
  const std::vector<v1::Matrix> encodings = {
      Encoded(v1::ELEMENT_TYPE_UNSPECIFIED, floats, 2),
      Encoded(v1::ELEMENT_TYPE_FLOAT32, floats, 2),
      Encoded(v1::ELEMENT_TYPE_FLOAT64, std::vector<double>(floats.begin(), floats.end()), 2),
      Encoded(v1::ELEMENT_TYPE_BFLOAT16, halves, 2), numbers};
  for (const v1::Matrix& keys : encodings) {
    SCOPED_TRACE(keys.ShortDebugString());
    ASSERT_THAT(AppendKeys(keys), IsGrpcOk());
    v1::RowFilter newest;
    newest.set_last(2);
    const std::vector<v1::Row> rows = RowsOf("s", newest);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_THAT(Floats(rows[0].key()), ElementsAre(1.5f, -2));
    EXPECT_THAT(Floats(rows[1].key()), ElementsAre(0.25f, 384));
    EXPECT_EQ(rows[0].key().element_type(), v1::ELEMENT_TYPE_FLOAT32);
    EXPECT_EQ(rows[0].key().rows(), 1u);
    EXPECT_EQ(rows[0].key().cols(), 2u);
  }
}

TEST_F(MatrixTest, Float64IsRoundedAndRefusedBeyondFloat32) {
  Create("s", 1, 1);
  ASSERT_THAT(AppendKeys(Encoded<double>(v1::ELEMENT_TYPE_FLOAT64, {0.1, -1e-300}, 1)), IsGrpcOk());
  const std::vector<v1::Row> rows = RowsOf("s");
  EXPECT_THAT(Floats(rows[0].key()), ElementsAre(0.1f));
  EXPECT_THAT(Floats(rows[1].key()), ElementsAre(0));
  EXPECT_THAT(AppendKeys(Encoded<double>(v1::ELEMENT_TYPE_FLOAT64, {1, 1e300}, 1)),
              IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, "keys: row 1, column 0"));
}

TEST_F(MatrixTest, NoOtherElementIsTaken) {
  Create("s", 1, 1);
  for (const auto type : {v1::ELEMENT_TYPE_INT8, static_cast<v1::ElementType>(99)}) {
    EXPECT_THAT(AppendKeys(Encoded<std::int8_t>(type, {1, 2}, 1)),
                IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, "keys: element_type"));
  }
}

}  // namespace
}  // namespace softlookup::testing
