#include "client/output/progress_line.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <optional>
#include <string>

namespace softlookup::output {
namespace {

TEST(WorkTextTest, SaysHowFarHowFastAndHowLong) {
  EXPECT_EQ(WorkText("row", 127'552, 127'552, 341'479, 25.52),
            "127,552 of 341,479 rows, 4,998/s, 43 s left");
  EXPECT_EQ(WorkText("row", 500, 500, 100'000, 5), "500 of 100,000 rows, 100/s, 17 min left");
  EXPECT_EQ(WorkText("row", 1, 1, 100'000, 1), "1 of 100,000 rows, 1.00/s, 27.8 h left");
  EXPECT_EQ(WorkText("query", 10, 10, 10, 2), "10 of 10 queries, 5.00/s, 0 s left");
}

TEST(WorkTextTest, WhatWasDoneBeforeIsNoPartOfTheRate) {
  EXPECT_EQ(WorkText("row", 600, 100, 800, 10), "600 of 800 rows, 10.0/s, 20 s left");
}

TEST(WorkTextTest, WhatIsUnknownIsLeftOut) {
  EXPECT_EQ(WorkText("row", 50, 50, std::nullopt, 1), "50 rows, 50.0/s");
  EXPECT_EQ(WorkText("row", 1, 1, std::nullopt, 0), "1 row");
  EXPECT_EQ(WorkText("row", 0, 0, 1, 1), "0 of 1 row");
  EXPECT_EQ(WorkText("row", 0, 0, 10, 1), "0 of 10 rows");
  EXPECT_EQ(WorkText("row", 5, 5, 10, 0), "5 of 10 rows");
  EXPECT_EQ(WorkText("row", 12, 12, 10, 1), "12 of 10 rows, 12.0/s");  // A file that grew.
}

// What a ProgressLine writes to a file that is no terminal.
TEST(ProgressLineTest, ElsewhereThanOnATerminalEachTextIsALine) {
  std::FILE* const file = std::tmpfile();
  {
    ProgressLine shown(file, true), hidden(file, false);
    shown.Show("one");
    hidden.Show("not shown");
    shown.Show("two");
    shown.Clear();
  }
  std::rewind(file);
  char text[100] = {};
  EXPECT_EQ(std::fread(text, 1, sizeof text, file), 8u);
  EXPECT_STREQ(text, "one\ntwo\n");
  std::fclose(file);
}

}  // namespace
}  // namespace softlookup::output
