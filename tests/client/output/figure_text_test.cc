#include "client/output/figure_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace softlookup::output {
namespace {

TEST(FigureTextTest, SizesHaveThreeDigitsAndABinaryUnit) {
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(1), "1 byte");
  EXPECT_EQ(BytesText(1023), "1023 bytes");
  EXPECT_EQ(BytesText(1024), "1.00 KiB");
  EXPECT_EQ(BytesText(10'230), "9.99 KiB");
  EXPECT_EQ(BytesText(10'240), "10.0 KiB");
  EXPECT_EQ(BytesText(1'047'552), "1023 KiB");
  EXPECT_EQ(BytesText(1'048'575), "1.00 MiB");
  EXPECT_EQ(BytesText(std::uint64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(BytesText(std::uint64_t{5} << 40), "5.00 TiB");
  EXPECT_EQ(BytesText(std::numeric_limits<std::uint64_t>::max()), "16777216 TiB");
}

TEST(FigureTextTest, TimesTakeTheUnitThatSuitsThem) {
  EXPECT_EQ(TimeText(412e-6), "412 µs");
  EXPECT_EQ(TimeText(1.2345e-3), "1.23 ms");
  EXPECT_EQ(TimeText(0.9996), "1.00 s");
  EXPECT_EQ(TimeText(std::numeric_limits<double>::infinity()), "-");
}

TEST(FigureTextTest, CountsAndRatesHaveCommas) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(135'021), "135,021");
  EXPECT_EQ(CountText(1'000'000), "1,000,000");
  EXPECT_EQ(RateText(0.5234), "0.52/s");
  EXPECT_EQ(RateText(4997.6), "4,998/s");
}

TEST(FigureTextTest, NounsAgreeWithTheirCount) {
  EXPECT_EQ(Counted(0, "row"), "0 rows");
  EXPECT_EQ(Counted(1, "row"), "1 row");
  EXPECT_EQ(Counted(135'021, "row"), "135021 rows");
  EXPECT_EQ(Counted(1, "query"), "1 query");
  EXPECT_EQ(Counted(2, "query"), "2 queries");
  EXPECT_EQ(Counted(2, "key"), "2 keys");
  EXPECT_EQ(NounText(1, "call"), "call");
  EXPECT_EQ(NounText(1'000, "call"), "calls");
}

}  // namespace
}  // namespace softlookup::output
