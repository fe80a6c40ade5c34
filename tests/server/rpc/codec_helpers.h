#ifndef SOFTLOOKUP_TESTS_SERVER_RPC_CODEC_HELPERS_H_
#define SOFTLOOKUP_TESTS_SERVER_RPC_CODEC_HELPERS_H_

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/matrix_view.h"
#include "softlookup/v1/row.pb.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {

inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// It has this reason and its metadata name this field.
MATCHER_P2(IsAbout, reason, field, "") {
  const absl::Status& status = testing::StatusIn(arg);
  *result_listener << status.ToString();
  return ReasonOf(status) == reason.name && status.code() == reason.code &&
         ::testing::Value(MetadataOf(status), ::testing::Contains(::testing::Pair("field", field)));
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

inline std::vector<float> Floats(const MatrixView& view) {
  return std::vector<float>(view.data, view.data + view.rows * view.cols);
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_TESTS_SERVER_RPC_CODEC_HELPERS_H_
