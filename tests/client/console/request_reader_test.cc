#include "client/console/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace softlookup::console {
namespace {

using output::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RequestReaderTest, ReadsWhatIsThereAndHasDefaultsForTheRest) {
  const Json json = Json::parse(
      R"({"text":"a","flag":true,"number":-0.5,"count":7,"texts":["x"],"ids":["18446744073709551615"],
          "counts":[1,2],"numbers":[1,2.5],"null":null})");
  RequestReader reader(json);
  EXPECT_EQ(reader.Text("text"), "a");
  EXPECT_EQ(reader.Text("null", "absent"), "absent");
  EXPECT_TRUE(reader.Flag("flag"));
  EXPECT_EQ(reader.Number("number"), -0.5);
  EXPECT_EQ(reader.Number("null"), std::nullopt);
  EXPECT_EQ(reader.Count("count"), 7u);
  EXPECT_EQ(reader.Count("missing"), std::nullopt);
  EXPECT_THAT(reader.Texts("texts"), ElementsAre("x"));
  EXPECT_THAT(reader.Ids("ids"), ElementsAre(18446744073709551615u));
  EXPECT_THAT(reader.Counts("counts"), ElementsAre(1, 2));
  EXPECT_THAT(reader.Numbers("numbers"), ElementsAre(1, 2.5));
  EXPECT_TRUE(reader.status().ok());
}

TEST(RequestReaderTest, NamesTheFirstFieldThatIsWrong) {
  const auto message = [](const char* field, const auto& read) {
    const Json json = Json::parse(std::string("{\"f\":") + field + "}");
    RequestReader reader(json);
    read(&reader);
    return std::string(reader.status().message());
  };
  const auto text = [](RequestReader* reader) { reader->Text("f"); };
  const auto count = [](RequestReader* reader) { reader->Count("f", 10); };
  EXPECT_THAT(message("7", text), HasSubstr("f must be a text"));
  EXPECT_THAT(message(("\"" + std::string(5000, 'x') + "\"").c_str(), text), HasSubstr("4096"));
  for (const char* field : {"-1", "1.5", "11", "\"1\"", "[]", "{}", "true"}) {
    EXPECT_EQ(message(field, count), "f must be a whole number from 0 to 10") << field;
  }
  EXPECT_EQ(message("\"x\"", [](RequestReader* reader) { reader->Number("f"); }),
            "f must be a number");
  EXPECT_THAT(message("[1]", [](RequestReader* reader) { reader->Texts("f"); }),
              HasSubstr("a list of texts"));
  EXPECT_THAT(message("[\"-1\"]", [](RequestReader* reader) { reader->Ids("f"); }),
              HasSubstr("a list of ids"));
  EXPECT_THAT(message("[-1]", [](RequestReader* reader) { reader->Counts("f"); }),
              HasSubstr("a list of whole numbers"));
  EXPECT_THAT(message("[null]", [](RequestReader* reader) { reader->Numbers("f"); }),
              HasSubstr("a list of numbers"));
}

TEST(RequestReaderTest, AListIsBounded) {
  const Json json = {{"f", std::vector<int>(RequestReader::kListMax + 1, 1)}};
  RequestReader reader(json);
  EXPECT_TRUE(reader.Counts("f").empty());
  EXPECT_THAT(std::string(reader.status().message()), HasSubstr("at most 4096"));
}

TEST(RequestReaderTest, AMatrixComesBackBitForBit) {
  const std::vector<float> floats = {0.1f, -0.0f, 3e38f, 1e-45f};
  const Json json = {{"f", FloatsText(floats)}};
  RequestReader reader(json);
  const FloatMatrix matrix = reader.Matrix("f", 2);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_EQ(matrix.rows, 2u);
  EXPECT_EQ(matrix.data, floats);
  EXPECT_TRUE(std::signbit(matrix.data[1]));
}

TEST(RequestReaderTest, AMatrixOfOtherShapeIsRefused) {
  for (const auto& [text, cols] :
       std::vector<std::pair<std::string, std::uint32_t>>{{FloatsText(std::vector<float>(3)), 2},
                                                          {FloatsText(std::vector<float>(3)), 0},
                                                          {"AAA=", 1},
                                                          {"!", 1}}) {
    const Json json = {{"f", text}};
    RequestReader reader(json);
    EXPECT_EQ(reader.Matrix("f", cols).rows, 0u);
    EXPECT_FALSE(reader.status().ok()) << text;
  }
}

TEST(RequestReaderTest, AListMayNestDeeply) {
  constexpr std::size_t kDepth = 500000;
  const Json request =
      Json::parse(R"({"list":)" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}");
  RequestReader reader(request);
  EXPECT_TRUE(reader.Texts("list").empty());
  EXPECT_FALSE(reader.status().ok());
}

}  // namespace
}  // namespace softlookup::console
