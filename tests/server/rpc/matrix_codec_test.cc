#include "server/rpc/matrix_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "tests/server/rpc/codec_helpers.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::Pair;

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

}  // namespace
}  // namespace softlookup::server
