#include "softlookup/word_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace softlookup {
namespace {

using ::testing::ElementsAre;

double Dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

std::uint32_t Bits(std::string_view text, std::uint32_t dim, std::size_t component) {
  return std::bit_cast<std::uint32_t>(WordEncoder(dim).Encode(text)[component]);
}

// From an implementation of the header's definition in Python's integers.
TEST(WordEncoderTest, HasTheBitsOfItsDefinition) {
  EXPECT_EQ(Bits("king", 128, 0), 0xbdfdb84c);
  EXPECT_EQ(Bits("king", 128, 1), 0x3d322b5f);
  EXPECT_EQ(Bits("king", 128, 64), 0xbe16572a);
  EXPECT_EQ(Bits("king", 128, 127), 0x3c486ebd);
  EXPECT_EQ(Bits("", 4, 0), 0x3ec1ef14u);
  EXPECT_EQ(Bits("", 4, 3), 0x3d22d09eu);
  EXPECT_EQ(Bits("Stra\xc3\x9f"
                 "e",
                 8, 0),
            0xbee01833);
  EXPECT_EQ(Bits("Stra\xc3\x9f"
                 "e",
                 8, 7),
            0xbdb25db5);
  EXPECT_EQ(Bits("a", 65536, 65535), 0xbab0c165);
}

TEST(WordEncoderTest, HasUnitNormInEveryDimension) {
  for (const std::uint32_t dim : {1, 2, 3, 7, 64, 128, 1000, 65536}) {
    for (const std::string word : {"", "a", "soft lookup"}) {
      const std::vector<float> encoding = WordEncoder(dim).Encode(word);
      ASSERT_EQ(encoding.size(), dim);
      EXPECT_NEAR(Dot(encoding, encoding), 1, 1e-6) << word << " in " << dim;
    }
  }
}

TEST(WordEncoderTest, DistinctWordsAreNearlyOrthogonal) {
  constexpr std::uint32_t kDim = 256;
  const WordEncoder encoder(kDim);
  std::vector<std::vector<float>> encodings;
  for (int i = 0; i < 200; ++i) encodings.push_back(encoder.Encode("word" + std::to_string(i)));
  double square_sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j, ++count) {
      const double cosine = Dot(encodings[i], encodings[j]);
      EXPECT_LT(std::abs(cosine), 6 / std::sqrt(kDim));
      square_sum += cosine * cosine;
    }
  }
  EXPECT_NEAR(std::sqrt(square_sum / count) * std::sqrt(kDim), 1, 0.05);
}

TEST(WordEncoderTest, WritesIntoTheCallersMemory) {
  const WordEncoder encoder(3);
  std::vector<float> out(5, 9);
  encoder.Encode("x", absl::MakeSpan(out).subspan(1, 3));
  const std::vector<float> expected = encoder.Encode("x");
  EXPECT_THAT(out, ElementsAre(9, expected[0], expected[1], expected[2], 9));
}

}  // namespace
}  // namespace softlookup
