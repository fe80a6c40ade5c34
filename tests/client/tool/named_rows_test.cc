// Rows by their names, and stores of words, by the tool against the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "client/tool/exit_code.h"
#include "tests/client/tool/server_tool_test.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A store of three rows, whose keys are their values. Their names are labels and lines of a file.
class NamedRowsTest : public ServerToolTest {
 protected:
  NamedRowsTest() {
    Succeed({"store", "create", "glove", "--key-dim", "2", "--value-dim", "2"});
    AppendRows();
  }

  void Succeed(const std::vector<std::string>& arguments) {
    EXPECT_EQ(Run(arguments).exit_code, ExitCode::kOk) << Run(arguments).error;
  }
  void AppendRows() {
    Succeed({"append", "glove", "--keys", rows_.path(), "--values", rows_.path(), "--labels",
             names_.path()});
  }
  Outcome Lookup(const std::string& name, bool with_file) { return LookupAll({name}, with_file); }
  Outcome LookupAll(const std::vector<std::string>& names, bool with_file) {
    std::vector<std::string> arguments = {"lookup", "glove", "--mode", "hard"};
    for (const std::string& name : names) arguments.insert(arguments.end(), {"--name", name});
    if (with_file) arguments.insert(arguments.end(), {"--names", names_.path()});
    return Run(arguments);
  }

  const TemporaryFile names_{"names.txt", "king\nqueen\napple\n"};
  const NpyFile rows_{2, {3, 0, 2, 2, 0, 3}};
};

TEST_F(NamedRowsTest, TheKeysOfNamedRowsAreTheQueries) {
  for (const bool with_file : {false, true}) {
    const Outcome outcome = LookupAll({"apple", "king"}, with_file);
    ASSERT_EQ(outcome.error, "");
    // Of these rows each is nearest to itself.
    const std::size_t king = outcome.out.find("query 1, king");
    ASSERT_NE(king, std::string::npos) << outcome.out;
    EXPECT_THAT(outcome.out.substr(0, king),
                AllOf(HasSubstr("query 0, apple"), HasSubstr("answer [0 3]")));
    EXPECT_THAT(outcome.out.substr(king), HasSubstr("answer [3 0]"));
  }
}

TEST_F(NamedRowsTest, ANameMustStandForOneRow) {
  Outcome outcome = Lookup("quen", true);
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_EQ(outcome.error, names_.path() + ": has no name quen; did you mean queen?");
  outcome = Lookup("quen", false);
  EXPECT_EQ(outcome.exit_code, ExitCode::kNotFound);
  EXPECT_THAT(outcome.error, HasSubstr("no row of glove has the label quen"));

  Succeed({"delete-rows", "glove", "--label", "king"});
  outcome = Lookup("king", true);
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr("names position 0 king, but glove has no such row"));
  EXPECT_EQ(Lookup("king", false).exit_code, ExitCode::kNotFound);

  AppendRows();
  EXPECT_EQ(Lookup("king", false).error, "");
  outcome = Lookup("apple", false);
  EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
  EXPECT_THAT(outcome.error, HasSubstr("the rows at positions 2 and 5 of glove have that label"));

  const TemporaryFile twice("twice.txt", "king\nqueen\nking\n");
  outcome = Run({"lookup", "glove", "--name", "king", "--names", twice.path()});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr("gives the name king to positions 0 and 2"));
}

TEST_F(NamedRowsTest, ANameMayHoldACommaAndIsNotEmpty) {
  const TemporaryFile labels("labels.txt", "\"a,b\"\n");
  const NpyFile row(2, {1, 7});
  Succeed(
      {"append", "glove", "--keys", row.path(), "--values", row.path(), "--labels", labels.path()});
  EXPECT_THAT(Lookup("a,b", false).out, HasSubstr("query 0, a,b\n"));
  EXPECT_EQ(Lookup("", false).exit_code, ExitCode::kUsage);
  EXPECT_THAT(Lookup("", false).error, HasSubstr("--name must not be empty"));
}

TEST_F(NamedRowsTest, ABlankLineIsARowWithoutAName) {
  const TemporaryFile gap("gap.txt", "\nqueen\n \napple\n\n");
  AppendRows();  // Positions 3 to 5.
  const std::vector<std::string> lookup = {"lookup", "glove",   "--query",
                                           "1,1",    "--names", gap.path()};
  const Outcome printed = Run(lookup);
  EXPECT_EQ(printed.notes,
            "softlookup: " + gap.path() +
                " names 5 rows, but glove has 6: the rows after those have no name\n");
  const auto answer = RunJson(lookup);
  for (const auto& row : answer["answers"][0]["heads"][0]["weights"]) {
    const int position = row["position"];
    EXPECT_EQ(row.value("name", ""), position == 1 ? "queen" : position == 3 ? "apple" : "");
  }
  const Outcome named =
      Run({"lookup", "glove", "--name", "apple", "--names", gap.path(), "--mode", "hard"});
  EXPECT_THAT(named.out, HasSubstr("answer [3 0]"));  // Of position 3, a king.
}

TEST_F(NamedRowsTest, AFileThatNamesOtherRowsThanThereAreIsWarnedOf) {
  const auto lookup = [&](const std::string& names, const std::string& name = "") {
    const TemporaryFile file("names.txt", names);
    std::vector<std::string> arguments = {"lookup", "glove", "--names", file.path()};
    if (name.empty()) {
      arguments.insert(arguments.end(), {"--query", "1,1"});
    } else {
      arguments.insert(arguments.end(), {"--name", name});
    }
    Outcome outcome = Run(arguments);
    for (std::string* text : {&outcome.notes, &outcome.error}) {
      const std::size_t at = text->find(file.path());
      if (at != std::string::npos) text->replace(at, file.path().size(), "FILE");
    }
    return outcome;
  };
  EXPECT_EQ(lookup("king\nqueen\napple").notes, "");
  EXPECT_EQ(lookup("king\nqueen\napple\n\n\n").notes, "");
  EXPECT_EQ(lookup("king\nqueen\n\n").notes, "");
  EXPECT_EQ(lookup("king\nqueen\n").notes,
            "softlookup: FILE names 2 rows, but glove has 3: the rows after those have no name\n");
  EXPECT_EQ(lookup("word\nking\nqueen\napple\n").notes,
            "softlookup: FILE names 4 rows, but glove has 3: it is of other rows, so names may be "
            "wrong\n");
  // The row of any name may be another.
  for (const char* name : {"king", "apple"}) {
    const Outcome other = lookup("word\nking\nqueen\napple\n", name);
    EXPECT_EQ(other.exit_code, ExitCode::kInput);
    EXPECT_EQ(other.error,
              "FILE: names 4 rows, but glove has 3: it is of other rows; without --names, a name "
              "is a row's label");
  }
}

TEST_F(NamedRowsTest, ALookupSaysThatNoRowHasTheLabel) {
  const auto notes = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"lookup", "glove", "--query", "1,1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments).notes;
  };
  EXPECT_EQ(notes({"--label", "quen"}), "softlookup: no row of glove has the label \"quen\"\n");
  EXPECT_EQ(notes({"--label", "queen"}), "");
  // Another condition leaves no row.
  EXPECT_EQ(notes({"--label", "queen", "--min-score", "1000"}), "");
  EXPECT_EQ(notes({"--min-score", "1000"}), "");
}

TEST_F(NamedRowsTest, ALookupPrintsTheLabelsOfTheRowsThatItLists) {
  // Positions 3 to 602, further apart than one call reads, and one with labels at the end.
  const NpyFile many(2, std::vector<float>(2 * 600));
  Succeed({"append", "glove", "--keys", many.path(), "--values", many.path()});
  const NpyFile last(2, {4, 4});
  const TemporaryFile labels("labels.txt", "\"a,b\",c\n");
  Succeed({"append", "glove", "--keys", last.path(), "--values", last.path(), "--labels",
           labels.path()});
  const std::vector<std::string> lookup = {"lookup", "glove", "--query", "4,1",     "--query",
                                           "1,1",    "--top", "3",       "--labels"};
  EXPECT_THAT(Run(lookup).out, AllOf(HasSubstr("\n  position  labels   "),
                                     HasSubstr("\n       603  \"a,b\",c  14.1421  "),
                                     HasSubstr("\n         0  king     8.48528  ")));
  const auto weights = RunJson(lookup)["answers"][0]["heads"][0]["weights"];
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_EQ(weights[0]["labels"], nlohmann::json::array({"a,b", "c"}));
  EXPECT_EQ(weights[1]["labels"], nlohmann::json::array({"king"}));
  EXPECT_EQ(weights[2]["labels"], nlohmann::json::array({"queen"}));
  EXPECT_EQ(Run({"lookup", "glove", "--query", "1,1", "--source", "memory", "--labels"}).exit_code,
            ExitCode::kUsage);
}

TEST_F(NamedRowsTest, WordsAreForStoresThatWereMadeForThem) {
  const std::vector<std::string> append = {"append", "glove", "--words", names_.path()};
  const std::vector<std::string> lookup = {"lookup", "glove", "--words", "king"};
  for (std::vector<std::string> arguments : {lookup, append}) {
    const Outcome refused = Run(arguments);
    EXPECT_EQ(refused.exit_code, ExitCode::kUsage);
    EXPECT_THAT(refused.error, AllOf(HasSubstr("glove has not the label encoding=words"),
                                     HasSubstr("knows nothing of the word's meaning")));
    EXPECT_EQ(RunJson({"store", "get", "glove"})["row_count"], 3);
    arguments.push_back("--any-store");
    EXPECT_EQ(Run(arguments).error, "");
  }
  Succeed({"store", "create", "words", "--key-dim", "64", "--value-dim", "64", "--words"});
  Succeed({"append", "words", "--words", names_.path()});
  const Outcome other = Run({"store", "create", "other", "--key-dim", "2", "--value-dim", "2",
                             "--words", "--label", "encoding=utf8"});
  EXPECT_EQ(other.exit_code, ExitCode::kUsage);
  EXPECT_THAT(other.error, HasSubstr("but --label encoding=utf8 is given"));
  const auto json = RunJson({"lookup", "words", "--words", "queen"});
  EXPECT_EQ(json["answers"][0]["heads"][0]["weights"][0]["position"], 1);
}

}  // namespace
}  // namespace softlookup::tool
