// Stores that leave a server as files and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "tests/client/tool/server_tool_test.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

std::string BytesOf(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// The four files of a store.
struct StoreFiles {
  const TemporaryFile keys{"keys.npy"};
  const TemporaryFile values{"values.npy"};
  const TemporaryFile ids{"ids.txt"};
  const TemporaryFile labels{"labels.txt"};

  Arguments Flags() const {
    return {"--keys", keys.path(), "--values", values.path(),
            "--ids",  ids.path(),  "--labels", labels.path()};
  }
  // All bytes of all files.
  std::vector<std::string> Bytes() const {
    return {BytesOf(keys.path()), BytesOf(values.path()), BytesOf(ids.path()),
            BytesOf(labels.path())};
  }
};

class ImportExportTest : public ServerToolTest {
 protected:
  static Arguments Join(Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // Makes `store` of two files and `more`.
  Outcome Import(const std::string& store, const Arguments& more = {}) {
    return Run(Join({"import", store, "--keys", keys_.path(), "--values", values_.path()}, more));
  }
  Outcome Export(const std::string& store, const StoreFiles& files, const Arguments& more = {}) {
    return Run(Join(Join({"export", store}, files.Flags()), more));
  }

  // What there is to see of a store but its name, its times and its revision.
  nlohmann::json Seen(const std::string& store) {
    nlohmann::json rows = RunJson({"rows", store})["rows"];
    nlohmann::json memory = RunJson({"memory", store});
    return {rows, memory["key"], memory["value"], memory["weight"]};
  }

  const NpyFile keys_{2, {1, -0.0f, 0.1f, 1e-45f, 3.4e38f, 7, 8, 9, 10, 11}};
  const NpyFile values_{1, {1.0f / 3, 2, 3, 4, 5}};
  const TemporaryFile ids_{"ids.txt", "7\n-\n18446744073709551615\n-\n0\n"};
  const TemporaryFile labels_{"labels.txt",
                              "red,big\n\n\"a,b\",\"c\\nd\",\" e\"\n\"\\\"f\\\"\"\nred\n"};
};

TEST_F(ImportExportTest, AnExportIsImportedAsTheSameStore) {
  ASSERT_EQ(Import("a", {"--ids", ids_.path(), "--labels", labels_.path()}).error, "");
  const StoreFiles first;
  const StoreFiles second;
  ASSERT_EQ(Export("a", first).error, "");
  ASSERT_EQ(Run(Join({"import", "b"}, first.Flags())).error, "");
  ASSERT_EQ(Export("b", second).error, "");

  EXPECT_EQ(Seen("a"), Seen("b"));
  EXPECT_EQ(first.Bytes(), second.Bytes());
  EXPECT_EQ(first.Bytes(),
            (std::vector<std::string>{BytesOf(keys_.path()), BytesOf(values_.path()),
                                      BytesOf(ids_.path()), BytesOf(labels_.path())}));
}

TEST_F(ImportExportTest, BatchesDoNotShow) {
  ASSERT_EQ(Import("a", {"--ids", ids_.path(), "--labels", labels_.path()}).error, "");
  for (const char* rows : {"1", "2", "3"}) {
    const std::string store = std::string("b") + rows;
    ASSERT_EQ(
        Import(store, {"--ids", ids_.path(), "--labels", labels_.path(), "--batch-rows", rows})
            .error,
        "");
    EXPECT_EQ(Seen(store), Seen("a"));
  }
}

TEST_F(ImportExportTest, RowsThatAreDeletedOrFilteredOutAreNotExported) {
  ASSERT_EQ(Import("a", {"--ids", ids_.path(), "--labels", labels_.path()}).error, "");
  ASSERT_EQ(Run({"delete-rows", "a", "--id", "7"}).error, "");
  const StoreFiles files;
  EXPECT_THAT(Export("a", files, {"--end", "4"}).out, HasSubstr("exported 3 rows"));
  EXPECT_EQ(BytesOf(files.ids.path()), "-\n18446744073709551615\n-\n");
  EXPECT_EQ(RunJson(Join({"import", "b"}, files.Flags()))["row_count"], 3);
}

TEST_F(ImportExportTest, IdsAloneOrLabelsAloneMayBeExported) {
  ASSERT_EQ(Import("a", {"--ids", ids_.path(), "--labels", labels_.path()}).error, "");
  const StoreFiles files;
  const Arguments arrays = {"export",          "a",        "--keys",
                            files.keys.path(), "--values", files.values.path()};
  EXPECT_EQ(Run(Join(arrays, {"--ids", files.ids.path()})).error, "");
  EXPECT_EQ(BytesOf(files.ids.path()), BytesOf(ids_.path()));
  EXPECT_THAT(BytesOf(files.labels.path()), IsEmpty());
  EXPECT_EQ(Run(Join(arrays, {"--labels", files.labels.path()})).error, "");
  EXPECT_EQ(BytesOf(files.labels.path()), BytesOf(labels_.path()));
}

TEST_F(ImportExportTest, StoreWithoutRowsComesBackAsOne) {
  ASSERT_EQ(Run({"store", "create", "a", "--key-dim", "3", "--value-dim", "2"}).error, "");
  const StoreFiles files;
  ASSERT_EQ(Export("a", files).error, "");
  const auto json = RunJson(Join({"import", "b"}, files.Flags()));
  EXPECT_EQ(json["created"], true);
  EXPECT_EQ(json["rows"], 0);
  EXPECT_EQ(json["revision"], 1);
  EXPECT_EQ(RunJson({"store", "get", "b"})["value_dim"], 2);
}

TEST_F(ImportExportTest, ImportSaysWhatItMade) {
  const Outcome outcome = Import("a");
  EXPECT_THAT(outcome.out,
              HasSubstr("created a with key_dim 2 and value_dim 1\nappended 5 rows in"));
  EXPECT_THAT(outcome.out, EndsWith("; a has 5 rows at revision 2\n"));
}

TEST_F(ImportExportTest, ImportTakesTheSettingsOfANewStore) {
  const NpyFile values(2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const NpyFile map(3, {1, 2, 3, 4, 5, 6});
  ASSERT_EQ(Run({"import",
                 "a",
                 "--keys",
                 keys_.path(),
                 "--values",
                 values.path(),
                 "--heads",
                 "2",
                 "--score",
                 "cosine",
                 "--temperature",
                 "0.5",
                 "--memory",
                 "slow=decayed-sum:0.5",
                 "--label",
                 "team=x",
                 "--projection-query",
                 map.path(),
                 "--projection-key",
                 map.path(),
                 "--projection-value",
                 map.path()})
                .error,
            "");
  const auto store = RunJson({"store", "get", "a"});
  EXPECT_EQ(store["num_heads"], 2);
  EXPECT_EQ(store["score"], "cosine");
  EXPECT_EQ(store["temperature"], 0.5);
  EXPECT_EQ(store["memories"][0]["name"], "slow");
  EXPECT_EQ(store["labels"]["team"], "x");
  EXPECT_EQ(store["projection"]["input_dim"], 3);
  EXPECT_EQ(RunJson({"memory", "a", "slow"})["end"], 5);
}

TEST_F(ImportExportTest, ImportTakesTextToo) {
  const TemporaryFile keys("k.csv", "x,y\n1,2\n3,4\n");
  const TemporaryFile values("v.csv", "5\n6\n");
  ASSERT_EQ(Run({"import", "a", "--keys", keys.path(), "--values", values.path()}).error, "");
  const auto rows = RunJson({"rows", "a"})["rows"];
  EXPECT_EQ(rows[1]["key"], (std::vector<float>{3, 4}));
  EXPECT_EQ(rows[1]["value"], (std::vector<float>{6}));
}

TEST_F(ImportExportTest, ImportIntoAStoreThatIsThere) {
  ASSERT_EQ(Run({"store", "create", "a", "--key-dim", "2", "--value-dim", "1"}).error, "");
  EXPECT_EQ(Import("a", {"--score", "dot"}).error,
            "a exists, so import makes no store and takes no settings of one, such as --score; "
            "`softlookup store update` changes them");
  EXPECT_EQ(Import("a").error, "");
  const Outcome again = Import("a");
  EXPECT_EQ(again.exit_code, ExitCode::kUsage);
  EXPECT_EQ(again.error, "a has 5 rows already; --append adds to them");
  EXPECT_THAT(Import("a", {"--append"}).out, EndsWith("; a has 10 rows at revision 3\n"));

  ASSERT_EQ(Run({"store", "create", "wide", "--key-dim", "3", "--value-dim", "1"}).error, "");
  const Outcome wide = Import("wide");
  EXPECT_EQ(wide.exit_code, ExitCode::kInput);
  EXPECT_EQ(wide.error, keys_.path() + ": has 2 columns, but key_dim of wide is 3");
  EXPECT_EQ(RunJson({"store", "get", "wide"})["row_count"], 0);
}

TEST_F(ImportExportTest, FailureInAStoreThatIsThereKeepsItAndSaysHowFarItGot) {
  ASSERT_EQ(Import("a").error, "");
  const TemporaryFile wrong_ids("ids.txt", "1\n2\nthree\n4\n5\n");
  EXPECT_THAT(Import("a", {"--append", "--ids", wrong_ids.path(), "--batch-rows", "2"}).error,
              EndsWith("; rows appended before: 2; correct the file; then --skip-rows 2 appends "
                       "the rest"));
  EXPECT_EQ(RunJson({"store", "get", "a"})["row_count"], 7);

  const TemporaryFile all_ids("ids.txt", "1\n2\n3\n4\n5\n");
  EXPECT_THAT(Import("a", {"--append", "--ids", all_ids.path(), "--skip-rows", "2"}).out,
              AllOf(StartsWith("skipped 2 rows\nappended 3 rows in"),
                    EndsWith("; a has 10 rows at revision 4\n")));
  EXPECT_EQ(RunJson({"rows", "a", "--begin", "7"})["rows"][0]["id"], 3);
  // A line that is wrong, among those that are left out: they are in, whatever is.
  EXPECT_THAT(
      Import("a", {"--append", "--ids", wrong_ids.path(), "--skip-rows", "4", "--batch-rows", "1"})
          .error,
      EndsWith("; rows appended before: 0; correct the file; then --skip-rows 4 appends the rest"));
  // A store that was empty needs --append from then on.
  ASSERT_EQ(Run({"store", "create", "empty", "--key-dim", "2", "--value-dim", "1"}).error, "");
  EXPECT_THAT(Import("empty", {"--ids", wrong_ids.path(), "--batch-rows", "2"}).error,
              EndsWith("; correct the file; then --append --skip-rows 2 appends the rest"));
  const Outcome beyond = Import("a", {"--append", "--skip-rows", "6"});
  EXPECT_EQ(beyond.exit_code, ExitCode::kUsage);
  EXPECT_THAT(beyond.error, StartsWith("--skip-rows is 6, but the input has 5 rows"));
}

TEST_F(ImportExportTest, IdsAndLabelsAreCountedBeforeTheFirstRow) {
  ASSERT_EQ(Import("a").error, "");
  const TemporaryFile header("labels.txt", "label\na\nb\nc\nd\ne\n");
  const TemporaryFile four("four.txt", "1\n2\n3\n4\n");
  for (const Arguments& writer : {Arguments(), Arguments{"--writer", "w"}}) {
    const Arguments more = Join({"--append", "--batch-rows", "2"}, writer);
    const Outcome outcome = Import("a", Join(more, {"--labels", header.path()}));
    EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
    EXPECT_EQ(outcome.error,
              header.path() +
                  ": has 6 lines of labels, but the input has 5 rows; its first line, "
                  "\"label\", looks like a header, which must go");
    for (const std::string flag : {"--ids", "--labels"}) {
      EXPECT_EQ(Import("a", Join(more, {flag, four.path()})).error,
                four.path() + ": has 4 lines of " + flag.substr(2) +
                    ", but the input has 5 rows; it must have a line for each row");
    }
  }
  EXPECT_EQ(Run({"append", "a", "--keys", keys_.path(), "--values", values_.path(), "--labels",
                 four.path(), "--batch-rows", "2"})
                .exit_code,
            ExitCode::kInput);
  EXPECT_EQ(RunJson({"store", "get", "a"})["row_count"], 5);
}

TEST_F(ImportExportTest, ServersErrorIsGivenTheRowOfTheFile) {
  const TemporaryFile ids("ids.txt", "1\n2\n3\n4\n2\n");
  const Outcome outcome = Import("a", {"--ids", ids.path(), "--batch-rows", "2"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kAlreadyExists);
  EXPECT_THAT(outcome.error, HasSubstr("a live row has the id 2"));
  EXPECT_THAT(
      outcome.error,
      HasSubstr("; that is row 4 (from 0) of the input, line 5 of " + ids.path() +
                "; --on-conflict can skip such rows, or replace the old ones and their labels"));

  const TemporaryFile labels("labels.txt", "\n\n\n" + std::string(65, 'x') + "\n\n");
  EXPECT_THAT(Import("a", {"--labels", labels.path()}).error,
              HasSubstr("; that is row 3 (from 0) of the input"));
}

TEST_F(ImportExportTest, RowsWhoseIdStoodEarlierInTheInputAreCounted) {
  const TemporaryFile ids("ids.txt", "1\n2\n1\n2\n1\n");
  const Arguments flags = {"--ids", ids.path(), "--batch-rows", "2", "--on-conflict"};
  const Outcome replaced = Import("a", Join(flags, {"replace"}));
  EXPECT_EQ(replaced.error, "");
  EXPECT_EQ(replaced.notes,
            "softlookup: 3 rows replaced earlier rows of the input, which had their ids\n");
  EXPECT_EQ(RunJson({"rows", "a"})["rows"].size(), 2u);
  EXPECT_EQ(Import("b", Join(flags, {"skip"})).notes,
            "softlookup: 3 rows left out: earlier rows have their ids\n");

  const Arguments import = {"import",     "a",        "--append",    "--keys",
                            keys_.path(), "--values", values_.path()};
  // Of the rows that are not sent, none counts, but their ids are known.
  EXPECT_EQ(RunJson(Join(import, Join(flags, {"replace", "--skip-rows", "3"})))["repeated_ids"], 2);
  const TemporaryFile unlike("ids.txt", "1\n2\n3\n-\n-\n");
  const Outcome none = Run(Join(import, {"--ids", unlike.path(), "--on-conflict", "replace"}));
  EXPECT_EQ(none.error, "");
  EXPECT_EQ(none.notes, "");
  EXPECT_THAT(none.out, HasSubstr("\nreplaced 2 rows\n"));  // None of the input.
  const auto json = RunJson(Join(import, {"--ids", unlike.path(), "--on-conflict", "skip"}));
  EXPECT_EQ(json["left_out_rows"], 3);
  EXPECT_EQ(json["rows"], 2);
  EXPECT_FALSE(json.contains("replaced_rows"));
  EXPECT_FALSE(RunJson(import).contains("repeated_ids"));
}

// A .npy file of 5 x 2 elements of a kind that the tool does not read, or not so.
std::string Npy(const std::string& type, const std::string& fortran_order, std::size_t bytes) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + fortran_order + ", 'shape': (5, 2), }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         std::string(bytes, '\0');
}

TEST_F(ImportExportTest, ImportThatFailsLeavesNoStore) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const NpyFile four(1, {1, 2, 3, 4});
  const NpyFile nan_last(1, {1, 2, 3, 4, kNan});
  const NpyFile nan_first(1, {kNan, 2, 3, 4, 5});
  const TemporaryFile flat("flat.npy", std::string("\x93NUMPY\x01\x00\x3b\x00", 10) +
                                           "{'descr': '<f4', 'fortran_order': False, 'shape': "
                                           "(5,), }\n" +
                                           std::string(20, '\0'));
  const TemporaryFile complex("complex.npy", Npy("<c8", "False", 80));
  const TemporaryFile fortran("fortran.npy", Npy("<f4", "True", 36));
  const TemporaryFile ragged("ragged.csv", "1,2\n3\n");
  const TemporaryFile empty("empty.csv");
  const TemporaryFile text("text.npy", "1,2\n");
  const TemporaryFile three("three.txt", "1\n2\n3\n");
  const TemporaryFile five("five.csv", "1\n2\n3\n4\n5\n");
  const TemporaryFile six("six.txt", "1\n2\n3\n4\n5\n6\n");
  const TemporaryFile words("words.txt", "1\ntwo\n3\n4\n5\n");
  const TemporaryFile quotes("quotes.txt", "a\n\n\"b\n\n\n");
  const std::string missing = empty.path() + ".npy";
  const std::string undone = "; a, which import had made, is deleted again";

  struct Bad {
    Arguments arguments;  // Later ones win.
    std::string message;
  };
  const std::vector<Bad> all = {
      {{"--keys", missing}, missing + ": No such file or directory"},
      {{"--ids", missing}, missing + ": No such file or directory"},
      {{"--keys", text.path()}, text.path() + ": not a .npy file, as numpy.save writes it"},
      {{"--keys", complex.path()},
       complex.path() + ": holds elements of type <c8; save it as little-endian float32, for "
                        "example with array.astype('<f4')"},
      {{"--keys", fortran.path()}, fortran.path() + ": ends in column 1 (from 0) of 2"},
      {{"--values", flat.path()},
       flat.path() + ": has 1 dimension, which may be a row or a column; save it with 2, for "
                     "example with array.reshape(-1, 1)"},
      {{"--values", four.path()}, four.path() + ": has 4 rows, but " + keys_.path() + " has 5"},
      {{"--keys", ragged.path()},
       ragged.path() + ": line 2: 1 column, but the first row has 2; rows appended before: 0" +
           undone},
      {{"--keys", empty.path(), "--values", empty.path()},
       empty.path() + ": has no row to take the store's dimensions from"},
      {{"--values", nan_first.path()},
       nan_first.path() + ": row 0, column 0 (from 0): not a finite float32"},
      {{"--values", nan_last.path()},
       nan_last.path() +
           ": row 4, column 0 (from 0): not a finite float32; rows appended before: 0" + undone},
      {{"--ids", three.path()},
       three.path() +
           ": has 3 lines of ids, but the input has 5 rows; it must have a line for each row"},
      {{"--labels", six.path()},
       six.path() +
           ": has 6 lines of labels, but the input has 5 rows; it must have a line for each row"},
      {{"--keys", five.path(), "--values", five.path(), "--labels", six.path()},
       six.path() + ": line 6: goes on after the last of 5 rows; rows appended before: 5" + undone},
      {{"--ids", words.path()},
       words.path() +
           ": line 2: \"two\" is not an id: a whole number below 2^64, or - for a row "
           "without; rows appended before: 0" +
           undone},
      {{"--labels", quotes.path()},
       quotes.path() +
           ": line 3: a label that starts with a quote must be a JSON string, such as "
           "\"10,000\" or \"\\\"so\\\" named\"; rows appended before: 0" +
           undone},
      {{"--keys", "-", "--ids", "-"}, "only one file can be standard input"},
      {{"--heads", "2"}, "INVALID_OPTION: store.value_dim: 1 is not divisible by num_heads, 2"},
      {{"--label", "x"}, "--label takes KEY=VALUE, not \"x\""}};
  for (const Bad& bad : all) {
    Arguments arguments = {"import", "a"};
    for (const auto& [flag, path] :
         {std::pair<std::string, std::string>("--keys", keys_.path()),
          std::pair<std::string, std::string>("--values", values_.path())}) {
      if (std::find(bad.arguments.begin(), bad.arguments.end(), flag) == bad.arguments.end()) {
        arguments.insert(arguments.end(), {flag, path});
      }
    }
    EXPECT_EQ(Run(Join(arguments, bad.arguments)).error, bad.message);
    EXPECT_THAT(RunJson({"store", "list"})["stores"], IsEmpty()) << bad.message;
  }
}

TEST_F(ImportExportTest, ExportRefusesFilesThatItCannotWrite) {
  ASSERT_EQ(Import("a").error, "");
  const StoreFiles files;
  const Arguments arrays = {"export",          "a",        "--keys",
                            files.keys.path(), "--values", files.values.path()};
  const Outcome same = Run(Join(arrays, {"--ids", files.ids.path(), "--labels", files.ids.path()}));
  EXPECT_EQ(same.exit_code, ExitCode::kUsage);
  EXPECT_EQ(same.error, "two of the options name the same file, " + files.ids.path());
  EXPECT_EQ(Run(Join(arrays, {"--ids", "-"})).exit_code, ExitCode::kUsage);
  std::ofstream(files.keys.path()) << "old";
  const Outcome folder = Run(Join(arrays, {"--labels", "/no/such/folder/labels.txt"}));
  EXPECT_EQ(folder.exit_code, ExitCode::kInput);
  EXPECT_EQ(folder.error,
            "/no/such/folder/labels.txt: cannot be written: No such file or directory");
  EXPECT_EQ(Run(Join(arrays, {"--end", "6"})).exit_code, ExitCode::kRefused);
  EXPECT_EQ(files.keys.bytes(), "old");
}

}  // namespace
}  // namespace softlookup::tool
