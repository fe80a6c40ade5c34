// Stores that get another name, over real sockets: what the answer says, who may do it, and what
// calls in progress see of it.
#include <signal.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/integration/integration_test.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

using grpc::StatusCode;

v1::RenameStoreRequest RenameRequest(const std::string& store, const std::string& new_name,
                                     bool replace = false) {
  v1::RenameStoreRequest request;
  request.set_store(store);
  request.set_new_name(new_name);
  request.set_replace(replace);
  return request;
}

class RenameStoreTest : public IntegrationTest {
 protected:
  grpc::Status Rename(const std::string& store, const std::string& new_name, bool replace = false,
                      v1::RenameStoreResponse* response = nullptr) {
    v1::RenameStoreResponse unread;
    return Call(&v1::SoftLookup::Stub::RenameStore, RenameRequest(store, new_name, replace),
                response == nullptr ? &unread : response);
  }
  // Makes a store of one row, whose value is `value`.
  void MakeStoreOf(const std::string& name, float value) {
    Create(name, 1, 1);
    v1::AppendRequest append = RowsWithIds(1, 1, value);
    append.set_store(name);
    ASSERT_THAT(Append(append), IsGrpcOk());
  }
  float ValueOf(const std::string& name) {
    const std::vector<float> query = {1};
    const auto answer = client_.Lookup(name, View(query, 1));
    EXPECT_THAT(answer, IsOk());
    return answer.ok() ? answer->values.data.at(0) : NAN;
  }
};

TEST_F(RenameStoreTest, AStoreIsAnsweredUnderItsNewNameAlone) {
  v1::Store store = StoreMessage("people", 1, 1);
  store.set_score(v1::SCORE_COSINE);
  (*store.mutable_labels())["team"] = "search";
  ASSERT_THAT(CreateStore(store), IsGrpcOk());
  v1::Store expected = GetStore("people");
  v1::RenameStoreResponse renamed;
  ASSERT_THAT(Rename("people", "acme/people", false, &renamed), IsGrpcOk());
  EXPECT_FALSE(renamed.has_replaced());
  EXPECT_THAT(GetStore("acme/people"), IsMessage(renamed.store()));
  expected.set_name("acme/people");
  expected.set_revision(2);
  expected.set_byte_size(renamed.store().byte_size());  // The name's bytes are the store's.
  EXPECT_THAT(renamed.store(), IsMessage(expected));
  EXPECT_THAT(client_.GetStore("people"), StatusIs(absl::StatusCode::kNotFound, "\"people\""));
  EXPECT_THAT(CreateStore(StoreMessage("people", 2, 2)), IsGrpcOk());
}

TEST_F(RenameStoreTest, AnotherStoreIsReplacedOnlyIfThatIsAskedFor) {
  MakeStoreOf("new", 1);
  MakeStoreOf("old", 2);
  const v1::Store old = GetStore("old");
  const grpc::Status taken = Rename("new", "old");
  EXPECT_THAT(taken, IsGrpcError(StatusCode::ALREADY_EXISTS, "\"old\""));
  EXPECT_EQ(ReasonOf(taken), "STORE_EXISTS");
  EXPECT_EQ(ValueOf("old"), 2);
  v1::RenameStoreResponse renamed;
  ASSERT_THAT(Rename("new", "old", true, &renamed), IsGrpcOk());
  EXPECT_EQ(ValueOf("old"), 1);
  EXPECT_EQ(renamed.store().revision(), 3u);
  EXPECT_EQ(renamed.replaced().revision(), old.revision());
  EXPECT_EQ(renamed.replaced().row_count(), 1u);
  EXPECT_EQ(renamed.replaced().live_row_count(), 1u);
  EXPECT_THAT(renamed.replaced().create_time(), IsMessage(old.create_time()));
  EXPECT_THAT(client_.GetStore("new"), StatusIs(absl::StatusCode::kNotFound, "\"new\""));
}

TEST_F(RenameStoreTest, BadRenamesAreRefusedByField) {
  Create("s", 1, 1);
  const auto expect_refused = [&](const std::string& store, const std::string& new_name,
                                  const std::string& reason, const std::string& field) {
    SCOPED_TRACE(store + " to " + new_name);
    const grpc::Status status = Rename(store, new_name, true);
    EXPECT_THAT(status, IsGrpcError(StatusCode::INVALID_ARGUMENT, field + ": "));
    EXPECT_EQ(ReasonOf(status), reason);
    EXPECT_EQ(InfoOf(status).metadata().at("field"), field);
  };
  expect_refused("", "t", "INVALID_NAME", "store");
  expect_refused("-s", "t", "INVALID_NAME", "store");
  for (const std::string& bad : {std::string(), std::string("../t"), std::string("a\0b", 3),
                                 std::string(129, 'a'), std::string(100'000, 'a')}) {
    expect_refused("s", bad, "INVALID_NAME", "new_name");
  }
  expect_refused("s", "s", "INVALID_OPTION", "new_name");
  const grpc::Status unknown = Rename("none", "s", true);
  EXPECT_THAT(unknown, IsGrpcError(StatusCode::NOT_FOUND, "\"none\""));
  EXPECT_EQ(ReasonOf(unknown), "STORE_NOT_FOUND");
  EXPECT_EQ(GetStore("s").revision(), 1u);
}

TEST_F(RenameStoreTest, LookupsNeverMissTheStoreThatIsReplaced) {
  constexpr int kGenerations = 50;
  MakeStoreOf("served", 0);
  std::atomic<bool> done{false};
  const std::vector<float> query = {1};
  std::thread unary([&] {
    long seen = 0;
    while (!done) {
      const auto answer = client_.Lookup("served", View(query, 1));
      ASSERT_THAT(answer, IsOk());
      const long generation = std::lround(answer->values.data.at(0));
      ASSERT_GE(generation, seen);
      seen = generation;
    }
  });
  std::thread streamed([&] {
    CallContext context;
    const auto stream = stub_->StreamLookup(&context);
    v1::LookupRequest request;
    request.set_store("served");
    *request.mutable_queries() = Message(query, 1);
    v1::LookupResponse answer;
    while (!done) {
      ASSERT_TRUE(stream->Write(request) && stream->Read(&answer));
      ASSERT_FALSE(answer.has_error()) << answer.error().message();
    }
    stream->WritesDone();
    EXPECT_FALSE(stream->Read(&answer));
    EXPECT_THAT(stream->Finish(), IsGrpcOk());
  });
  for (int generation = 1; generation <= kGenerations; ++generation) {
    MakeStoreOf("next", static_cast<float>(generation));
    EXPECT_THAT(Rename("next", "served", true), IsGrpcOk());
  }
  done = true;
  unary.join();
  streamed.join();
  EXPECT_EQ(ValueOf("served"), kGenerations);
}

TEST_F(RenameStoreTest, AStreamOfAppendsAndAWatchEndWithTheirNameOrTheirStore) {
  MakeStoreOf("built", 1);
  MakeStoreOf("served", 2);
  std::uint64_t id = 10;
  for (const std::string name : {"built", "served"}) {
    SCOPED_TRACE(name);
    CallContext append_context, watch_context;
    const auto appending = stub_->StreamAppend(&append_context);
    v1::AppendRequest append = RowsWithIds(id++, 1, 3);
    append.set_store(name);
    v1::AppendResponse appended;
    ASSERT_TRUE(appending->Write(append) && appending->Read(&appended));
    v1::WatchMemoryRequest watch;
    watch.set_store(name);
    const auto watching = stub_->WatchMemory(&watch_context, watch);
    v1::Memory memory;
    ASSERT_TRUE(watching->Read(&memory));

    const std::uint64_t rows = GetStore("built").row_count();
    ASSERT_THAT(Rename("built", "served", true), IsGrpcOk());
    EXPECT_EQ(GetStore("served").row_count(), rows) << "what was acknowledged is there";
    EXPECT_FALSE(watching->Read(&memory));
    EXPECT_EQ(watching->Finish().error_code(), StatusCode::NOT_FOUND);
    append = RowsWithIds(id++, 1, 3);
    append.set_store(name);
    appending->Write(append);
    EXPECT_FALSE(appending->Read(&appended));
    const grpc::Status ended = appending->Finish();
    EXPECT_THAT(ended, IsGrpcError(StatusCode::NOT_FOUND, "\"" + name + "\""));
    EXPECT_EQ(ReasonOf(ended), "STORE_NOT_FOUND");
    EXPECT_EQ(GetStore("served").row_count(), rows);
    MakeStoreOf("built", 1);
  }
}

// Whether the lookup comes before the rename or after it.
TEST_F(RenameStoreTest, ALookupThatWaitsInTheOldNameEnds) {
  Create("s", 1, 1);
  grpc::Status waited;
  std::thread waiting([&] {
    v1::LookupRequest request = OneQuery();
    request.set_min_revision(1000);
    v1::LookupResponse answer;
    waited = Lookup(request, &answer);
  });
  EXPECT_THAT(Rename("s", "t"), IsGrpcOk());
  waiting.join();
  EXPECT_THAT(waited, IsGrpcError(StatusCode::NOT_FOUND, "\"s\""));
}

// Calls over one connection to a server with an auth file and an audit log.
class RenameRightsTest : public ::testing::Test {
 protected:
  RenameRightsTest() {
    std::vector<std::string> flags = files_.Flags(Transport::kPlaintext);
    flags.insert(flags.end(), {"--audit-log", files_.Path("audit.log"), "--log-format", "json"});
    admin_ = files_.AddIdentity("o", "admin", "*");
    mine_ = files_.AddIdentity("mine", "manage", "a/*");
    const CommandResult added =
        RunCommand({ToolBinary(), "auth", "add", files_.auth(), "writes-there", "--role", "manage",
                    "--stores", "a/*", "--role", "write", "--stores", "b/*"});
    EXPECT_EQ(added.exit_code, 0) << added.err;
    writes_there_ = added.out.substr(0, added.out.size() - 1);
    server_ = std::make_unique<ServerProcess>(flags);
    channel_ = grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials());
    for (const char* name : {"a/1", "b/1"}) {
      v1::CreateStoreRequest create;
      *create.mutable_store() = StoreMessage(name, 1, 1);
      EXPECT_THAT(CallRaw(channel_, "/softlookup.v1.SoftLookup/CreateStore",
                          create.SerializeAsString(), admin_)
                      .status,
                  IsGrpcOk());
    }
  }

  grpc::Status Rename(const std::string& token, const std::string& store,
                      const std::string& new_name, bool replace) {
    return CallRaw(channel_, "/softlookup.v1.SoftLookup/RenameStore",
                   RenameRequest(store, new_name, replace).SerializeAsString(), token)
        .status;
  }
  std::vector<std::string> StoreNames() {
    const RawAnswer answer = CallRaw(channel_, "/softlookup.v1.SoftLookup/ListStores", "", admin_);
    v1::ListStoresResponse stores;
    EXPECT_TRUE(answer.status.ok() && stores.ParseFromString(answer.messages.at(0)));
    std::vector<std::string> names;
    for (const v1::Store& store : stores.stores()) names.push_back(store.name());
    return names;
  }

  const SecurityFiles files_;
  std::string admin_, mine_, writes_there_;
  std::unique_ptr<ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(RenameRightsTest, ARenameTakesManageForBothNamesAndTellsNothing) {
  for (const std::string& token : {mine_, writes_there_}) {
    for (const bool replace : {false, true}) {
      // Out of the caller's names, onto a store or not; and into them.
      for (const auto& [there, nowhere] :
           {std::pair("b/1", "b/none"), std::pair("c/1", "c/none")}) {
        const grpc::Status onto = Rename(token, "a/1", there, replace);
        const grpc::Status beside = Rename(token, "a/1", nowhere, replace);
        const grpc::Status stolen = Rename(token, there, "a/2", replace);
        const grpc::Status unknown = Rename(token, nowhere, "a/2", replace);
        for (const grpc::Status& status : {onto, beside, stolen, unknown}) {
          EXPECT_EQ(status.error_code(), StatusCode::PERMISSION_DENIED) << status.error_message();
        }
        EXPECT_EQ(onto.error_message(),
                  absl::StrReplaceAll(beside.error_message(), {{nowhere, there}}));
        EXPECT_EQ(stolen.error_message(),
                  absl::StrReplaceAll(unknown.error_message(), {{nowhere, there}}));
      }
    }
  }
  EXPECT_THAT(StoreNames(), ::testing::ElementsAre("a/1", "b/1"));
  EXPECT_THAT(Rename(mine_, "a/1", "a/2", false), IsGrpcOk());
  EXPECT_THAT(Rename(admin_, "a/2", "b/1", true), IsGrpcOk());
  EXPECT_THAT(StoreNames(), ::testing::ElementsAre("b/1"));
}

TEST_F(RenameRightsTest, AnAuditLineHasBothNamesAndWhetherAStoreWasReplaced) {
  Rename(admin_, "a/1", "a/2", false);
  Rename(admin_, "a/2", "b/1", true);
  Rename(mine_, "a/1", "b/1", true);
  ASSERT_EQ(server_->Stop(SIGTERM), 0);
  std::vector<std::string> lines =
      absl::StrSplit(Contents(files_.Path("audit.log")), '\n', absl::SkipEmpty());
  lines.erase(lines.begin(), lines.begin() + 2);  // Of the stores that were made.
  using ::testing::HasSubstr;
  using ::testing::Not;
  EXPECT_THAT(
      lines, ::testing::ElementsAre(
                 ::testing::AllOf(HasSubstr(R"("store":"a/1","new_name":"a/2","result":"OK")"),
                                  Not(HasSubstr("replaced"))),
                 HasSubstr(R"("store":"a/2","new_name":"b/1","result":"OK","replaced":true)"),
                 ::testing::AllOf(
                     HasSubstr(R"("event":"denial","identity":"mine")"),
                     HasSubstr(R"("store":"a/1","new_name":"b/1","result":"PERMISSION_DENIED")"))));
}

}  // namespace
}  // namespace softlookup::testing
