#include "client/output/table.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <sstream>
#include <string>

namespace softlookup::output {
namespace {

Table Stores() {
  Table table(
      {{"name"}, {"dim", Align::kRight, 1}, {"heads", Align::kRight, 2}, {"rows", Align::kRight}});
  table.AddRow({"people", "128", "1", "5"});
  table.AddRow({"naïve", "64", "2", "1000000"});
  return table;
}

std::string Printed(std::size_t width, std::size_t hidden) {
  Table table = Stores();
  EXPECT_EQ(table.HideColumns(width), hidden) << width;
  std::ostringstream out;
  table.Print(&out);
  return out.str();
}

TEST(TableTest, AColumnIsAsWideAsItsWidestCell) {
  EXPECT_EQ(Printed(100, 0),
            "name    dim  heads     rows\n"
            "people  128      1        5\n"
            "naïve    64      2  1000000\n");
}

TEST(TableTest, EastAsianTextTakesTwoColumnsACharacter) {
  Table table({{"name"}, {"rows", Align::kRight}});
  table.AddRow({"日本語", "5"});
  table.AddRow({"people", "12"});
  std::ostringstream out;
  table.Print(&out);
  EXPECT_EQ(out.str(),
            "name    rows\n"
            "日本語     5\n"
            "people    12\n");
  EXPECT_EQ(table.HideColumns(12), 0u);
}

TEST(TableTest, HidesTheColumnsOfTheHighestRankUntilALineFits) {
  EXPECT_EQ(Printed(27, 0), Printed(100, 0));
  EXPECT_EQ(Printed(26, 1),
            "name    dim     rows\n"
            "people  128        5\n"
            "naïve    64  1000000\n");
  EXPECT_EQ(Printed(20, 1), Printed(26, 1));
  EXPECT_EQ(Printed(19, 2),
            "name       rows\n"
            "people        5\n"
            "naïve   1000000\n");
  // Columns of rank 0 stay.
  EXPECT_EQ(Printed(3, 2), Printed(19, 2));
}

TEST(TableTest, CellsHaveNoControlCharacters) {
  Table table({{"name"}, {"label"}});
  table.AddRow({"a\nb", "\x1b]0;title\x07"});
  std::ostringstream out;
  table.Print(&out);
  EXPECT_EQ(out.str(), "name  label\na\\nb  \\x1b]0;title\\x07\n");
}

}  // namespace
}  // namespace softlookup::output
