#include "client/output/xml_text.h"

#include <gtest/gtest.h>

namespace softlookup::output {
namespace {

TEST(XmlTextTest, EscapesMarkupControlCharactersAndWhatIsNotUtf8) {
  EXPECT_EQ(XmlText("<a href=\"x\">&</a>"), "&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;");
  EXPECT_EQ(XmlText("a\x1b\x7f\xc2\x9b"
                    "b"),
            "a   b");
  EXPECT_EQ(XmlText("a\u202Eb"), "a b");
  EXPECT_EQ(XmlText("caf\xc3\xa9\xff"), "caf\xc3\xa9\xef\xbf\xbd");
}

}  // namespace
}  // namespace softlookup::output
