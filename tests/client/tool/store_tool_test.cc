// The commands of stores, from the command line to the output, against a scripted server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "client/tool/command.h"
#include "tests/client/tool/scripted_tool_test.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::TemporaryFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using StoreToolTest = ScriptedToolTest;

TEST_F(StoreToolTest, StoreCreateSendsItsFlagsAndShowsTheStore) {
  v1::Store sent;
  service_.create_store = [&](grpc::ServerContext*, const v1::CreateStoreRequest& request,
                              v1::Store* store) {
    sent = request.store();
    *store = sent;
    store->set_revision(1);
    return grpc::Status::OK;
  };
  const auto json = RunJson({"store", "create", "a/b", "--key-dim", "8", "--value-dim", "4",
                             "--heads", "2", "--score", "squared-euclidean", "--temperature", "0.5",
                             "--storage", "bfloat16", "--label", "team=x", "--label", "note=a=b"});
  EXPECT_EQ(sent.score(), v1::SCORE_SQUARED_EUCLIDEAN);
  EXPECT_EQ(sent.storage_type(), v1::ELEMENT_TYPE_BFLOAT16);
  EXPECT_EQ(sent.labels().at("note"), "a=b");
  EXPECT_EQ(json["name"], "a/b");
  EXPECT_EQ(json["num_heads"], 2);
  EXPECT_EQ(json["score"], "squared-euclidean");
  EXPECT_EQ(json["temperature"], 0.5);
  EXPECT_EQ(json["labels"]["team"], "x");
  EXPECT_EQ(json["revision"], 1);
}

TEST_F(StoreToolTest, StoreUpdateSendsOnlyWhatIsNamed) {
  std::vector<std::string> mask;
  service_.update_store = [&](grpc::ServerContext*, const v1::UpdateStoreRequest& request,
                              v1::Store*) {
    mask.assign(request.update_mask().paths().begin(), request.update_mask().paths().end());
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"store", "update", "people", "--temperature", "2"}).exit_code, ExitCode::kOk);
  EXPECT_THAT(mask, ElementsAre("temperature"));
  EXPECT_EQ(Run({"store", "update", "people"}).exit_code, ExitCode::kUsage);
}

TEST_F(StoreToolTest, StoreRenameSaysWhatBecameOfWhichStores) {
  v1::RenameStoreRequest sent;
  std::uint64_t new_rows = 7, old_rows = 5;
  service_.rename_store = [&](grpc::ServerContext*, const v1::RenameStoreRequest& request,
                              v1::RenameStoreResponse* response) {
    sent = request;
    *response->mutable_store() = store_;
    response->mutable_store()->set_name(request.new_name());
    response->mutable_store()->set_row_count(new_rows);
    response->mutable_store()->set_revision(3);
    if (!request.replace()) return grpc::Status::OK;
    response->mutable_replaced()->set_row_count(old_rows);
    response->mutable_replaced()->set_live_row_count(4);
    response->mutable_replaced()->set_revision(9);
    response->mutable_replaced()->mutable_create_time()->set_seconds(86400);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"store", "rename", "next", "people"}).out,
            "renamed next to people, which has 7 rows at revision 3\n");
  EXPECT_EQ(sent.store(), "next");
  EXPECT_FALSE(sent.replace());
  EXPECT_EQ(Run({"store", "mv", "next", "people", "--replace"}).out,
            "renamed next to people, which has 7 rows at revision 3\n"
            "replaced a store of 5 rows at revision 9, created 1970-01-02T00:00:00.000Z; its "
            "writers are gone with it\n");
  new_rows = old_rows = 1;
  EXPECT_EQ(Run({"store", "rename", "next", "people", "--replace"}).out,
            "renamed next to people, which has 1 row at revision 3\n"
            "replaced a store of 1 row at revision 9, created 1970-01-02T00:00:00.000Z; its "
            "writers are gone with it\n");
  new_rows = 7;
  const auto json = RunJson({"store", "rename", "next", "people", "--replace"});
  EXPECT_EQ(json["renamed"], "next");
  EXPECT_EQ(json["store"]["name"], "people");
  EXPECT_EQ(json["store"]["row_count"], 7);
  EXPECT_EQ(json["replaced"]["revision"], 9);
  EXPECT_EQ(json["replaced"]["live_row_count"], 4);
  EXPECT_FALSE(RunJson({"store", "rename", "next", "people"}).contains("replaced"));
  EXPECT_EQ(Run({"store", "rename", "next"}).exit_code, ExitCode::kUsage);
}

TEST_F(StoreToolTest, StoreCreateOfANameThatIsTakenNamesWhatElseThereIsToDo) {
  service_.create_store = [](grpc::ServerContext*, const auto&, auto*) {
    return DetailedStatus(grpc::StatusCode::ALREADY_EXISTS, "taken", "STORE_EXISTS");
  };
  const Outcome outcome = Run({"store", "create", "people", "--key-dim", "1", "--value-dim", "1"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kAlreadyExists);
  EXPECT_EQ(outcome.error,
            "STORE_EXISTS: taken; `softlookup store get` shows it, and `softlookup store update` "
            "changes settings");
}

TEST_F(StoreToolTest, AppendToNoStoreSaysWhatMakesOne) {
  const Outcome outcome = Run({"append", "nobody", "--rows", "rows.csv"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kNotFound);
  EXPECT_EQ(outcome.error,
            "STORE_NOT_FOUND: no store; `softlookup store create` or `softlookup import` makes a "
            "store (`softlookup store list` shows those there are)");
}

TEST_F(StoreToolTest, StoreRenameToANameThatIsTakenNamesTheFlagThatReplaces) {
  service_.rename_store = [](grpc::ServerContext*, const auto&, auto*) {
    return DetailedStatus(grpc::StatusCode::ALREADY_EXISTS, "There already is a store \"people\"",
                          "STORE_EXISTS");
  };
  const Outcome outcome = Run({"store", "rename", "next", "people"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kAlreadyExists);
  EXPECT_EQ(outcome.error,
            "STORE_EXISTS: There already is a store \"people\"; --replace deletes it in the same "
            "step");
}

TEST_F(StoreToolTest, StoreCompactSaysWhatItDroppedAndWhatThatDidToTheSize) {
  store_.set_byte_size(3 << 20);
  v1::CompactStoreRequest sent;
  std::uint64_t dropped = 700, blocks = 2;
  service_.compact_store = [&](grpc::ServerContext*, const v1::CompactStoreRequest& request,
                               v1::CompactStoreResponse* response) {
    sent = request;
    *response->mutable_store() = store_;
    response->mutable_store()->set_byte_size(1 << 20);
    response->set_dropped_rows(dropped);
    response->set_compacted_blocks(blocks);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"store", "compact", "people", "--end-memories"}).out,
            "dropped 700 rows from 2 blocks of people; size 3.00 MiB before, 1.00 MiB after\n");
  EXPECT_EQ(sent.name(), "people");
  EXPECT_TRUE(sent.end_memories());
  dropped = blocks = 1;
  EXPECT_EQ(Run({"store", "compact", "people"}).out,
            "dropped 1 row from 1 block of people; size 3.00 MiB before, 1.00 MiB after\n");
  EXPECT_FALSE(sent.end_memories());
  const auto json = RunJson({"store", "compact", "people", "--end-memories"});
  EXPECT_EQ(json["compacted"], "people");
  EXPECT_EQ(json["dropped_rows"], 1);
  EXPECT_EQ(json["compacted_blocks"], 1);
  EXPECT_EQ(json["byte_size_before"], 3 << 20);
  EXPECT_EQ(json["store"]["byte_size"], 1 << 20);
  EXPECT_EQ(Run({"store", "compact", "nobody"}).exit_code, ExitCode::kNotFound);
  EXPECT_EQ(Run({"store", "compact"}).exit_code, ExitCode::kUsage);
}

TEST_F(StoreToolTest, StoreCompactThatWouldEndMemoriesNamesTheFlagThatConsents) {
  service_.compact_store = [](grpc::ServerContext*, const auto&, auto*) {
    return DetailedStatus(grpc::StatusCode::FAILED_PRECONDITION,
                          "end_memories: compaction would drop 700 rows; set end_memories",
                          "COMPACTION_ENDS_MEMORIES", {{"field", "end_memories"}});
  };
  const Outcome outcome = Run({"store", "compact", "people"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kRefused);
  EXPECT_EQ(outcome.error,
            "COMPACTION_ENDS_MEMORIES: --end-memories: compaction would drop 700 rows; set "
            "--end-memories");
}

TEST_F(StoreToolTest, StoreListPrintsATable) {
  service_.list_stores = [&](grpc::ServerContext*, const v1::ListStoresRequest&,
                             v1::ListStoresResponse* page) {
    *page->add_stores() = store_;
    return grpc::Status::OK;
  };
  const Outcome outcome = Run({"store", "list"});
  EXPECT_THAT(outcome.out, StartsWith("name    key_dim  value_dim"));
  EXPECT_THAT(outcome.out, HasSubstr("\npeople        1          2      1  scaled-dot"));
}

TEST_F(StoreToolTest, StoreListSaysWhichStoresAreDamaged) {
  service_.list_stores = [&](grpc::ServerContext*, const v1::ListStoresRequest&,
                             v1::ListStoresResponse* page) {
    *page->add_stores() = store_;
    page->add_stores()->set_name("torn");
    page->mutable_stores(1)->set_damage("bad block");
    return grpc::Status::OK;
  };
  const std::string out = Run({"store", "list"}).out;
  EXPECT_THAT(out, ::testing::ContainsRegex("^name .* size  state\n"));
  EXPECT_THAT(out, ::testing::ContainsRegex("\npeople .* whole\n"));
  EXPECT_THAT(out, ::testing::ContainsRegex("\ntorn +-  +-  .* -  damaged\n"));
  const auto json = RunJson({"store", "list"});
  EXPECT_FALSE(json["stores"][0].contains("damage"));
  EXPECT_EQ(json["stores"][1]["damage"], "bad block");
}

TEST_F(StoreToolTest, StoreGetSaysWhatIsKnownOfADamagedStore) {
  store_.set_damage("bad block");
  store_.set_row_count(7);
  std::string out = Run({"store", "get", "people"}).out;
  EXPECT_THAT(out, HasSubstr("\ndamaged      bad block\nkey_dim      1\n"));
  EXPECT_THAT(out, HasSubstr("\nrows         7 before the damage\n"));
  EXPECT_EQ(RunJson({"store", "get", "people"})["damage"], "bad block");
  store_.clear_key_dim();
  out = Run({"store", "get", "people"}).out;
  EXPECT_EQ(out, "name         people\ndamaged      bad block\n");
}

TEST_F(StoreToolTest, CommandsThatNeedRowsRefuseADamagedStore) {
  store_.set_damage("bad block");
  const TemporaryFile rows("r.csv", "1,0,0\n");
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"append", "people", "--rows", rows.path()},
           {"import", "people", "--keys", rows.path(), "--values", rows.path()},
           {"export", "people", "--keys", "k.npy", "--values", "v.npy"},
           {"lookup", "people", "--query", "1"},
           {"tune", "people"},
           {"loadtest", "--store", "people"}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, ExitCode::kOther) << ::testing::PrintToString(arguments);
    EXPECT_THAT(outcome.error, HasSubstr("DATA_LOSS: store \"people\" is damaged: bad block; "
                                         "restore a backup, or `softlookup store delete` it"));
  }
}

}  // namespace
}  // namespace softlookup::tool
