#include "client/cli/utf8.h"

#include <gtest/gtest.h>

namespace softlookup::cli {
namespace {

TEST(Utf8Test, ACharacterHasItsLengthAndItsCodePoint) {
  EXPECT_EQ(Utf8Length(""), 0u);
  EXPECT_EQ(Utf8Length("\xff"), 0u);
  EXPECT_EQ(Utf8Length("\xe6\x97"), 0u);
  struct Character {
    const char* text;
    std::size_t length;
    char32_t code_point;
  };
  for (const Character& each :
       {Character{"az", 1, U'a'}, Character{"\x7fz", 1, 0x7f}, Character{"\u0080z", 2, 0x80},
        Character{"\u07FFz", 2, 0x7ff}, Character{"\u0800z", 3, 0x800},
        Character{"\uFFFDz", 3, 0xfffd}, Character{"\U00010000z", 4, 0x10000},
        Character{"\U0010FFFFz", 4, 0x10ffff}}) {
    EXPECT_EQ(Utf8Length(each.text), each.length);
    EXPECT_EQ(FirstCodePoint(each.text), each.code_point);
  }
}

}  // namespace
}  // namespace softlookup::cli
