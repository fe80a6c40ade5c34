// What a client of a router sees of a group of one node: the same answers and errors as at the
// node. With real servers and a real etcd.
#include <signal.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "tests/integration/router_cluster.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Path(const std::string& method) { return "/softlookup.v1.SoftLookup/" + method; }
std::string AdminPath(const std::string& method) { return "/softlookup.admin.v1.Admin/" + method; }

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    std::filesystem::create_directory(cluster_.Path("backups"));
    cluster_.Found("g", "n", {"--backup-dir", cluster_.Path("backups"), "--max-queries", "64"});
    cluster_.StartRouter();
    stub_ = StubOf(cluster_.router());
    direct_ = StubOf(cluster_.node("n"));
  }

  // The answer of the router, which must be that of the node.
  RawAnswer SameAnswer(const std::string& path, const std::string& request) {
    RawAnswer routed = CallRaw(ChannelTo(cluster_.router()), path, request, "");
    const RawAnswer direct = CallRaw(ChannelTo(cluster_.node("n")), path, request, "");
    ExpectSameAnswer(routed, direct, path);
    return routed;
  }
  template <typename Request>
  void ExpectSame(const std::string& path, const Request& request, const std::string& reason = "") {
    const RawAnswer answer = SameAnswer(path, request.SerializeAsString());
    EXPECT_EQ(ReasonOf(answer.status), reason) << path << ": " << answer.status.error_message();
    EXPECT_EQ(answer.messages.empty(), !reason.empty()) << path;
  }

  RouterCluster cluster_;
  std::unique_ptr<v1::SoftLookup::Stub> stub_, direct_;
};

TEST_F(RouterTest, EveryMethodAnswersAsTheNodeDoes) {
  v1::CreateStoreRequest create;
  *create.mutable_store() = StoreMessage("acme/s", 1, 1);
  v1::MemorySpec& memory = *create.mutable_store()->add_memories();
  memory.set_name("sum");
  memory.set_kind(v1::MEMORY_KIND_DECAYED_SUM);
  memory.set_decay(0.5);
  CallContext context;
  v1::Store store;
  ASSERT_THAT(stub_->CreateStore(&context, create, &store), IsGrpcOk());
  for (int i = 1; i <= 50; ++i) {
    v1::AppendRequest row = OneRow("acme/s", static_cast<float>(i));
    row.add_ids(i);
    row.set_writer("w");
    row.set_sequence(i);
    v1::AppendResponse response;
    ASSERT_THAT(Append(*stub_, row, &response), IsGrpcOk());
    ASSERT_EQ(response.row_count(), i);
  }
  v1::GetStoreRequest get;
  get.set_name("acme/s");
  ExpectSame(Path("GetStore"), get);
  v1::ListStoresRequest list;
  ExpectSame(Path("ListStores"), list);
  list.set_prefix("acme/");
  ExpectSame(Path("ListStores"), list);
  v1::ReadRowsRequest read;
  read.set_store("acme/s");
  read.set_page_rows(1);
  ExpectSame(Path("ReadRows"), read);
  EXPECT_EQ(SameAnswer(Path("ReadRows"), read.SerializeAsString()).messages.size(), 50u);
  v1::LookupRequest lookup = OneLookup("acme/s");
  lookup.mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
  lookup.set_tag(77);
  ExpectSame(Path("Lookup"), lookup);
  ExpectSame(Path("StreamLookup"), lookup);
  v1::AttendRequest attend;
  *attend.mutable_queries() = Message({1, 2}, 1);
  *attend.mutable_keys() = Message({1, 2, 3}, 1);
  *attend.mutable_values() = Message({4, 5, 6}, 1);
  ExpectSame(Path("Attend"), attend);
  v1::GetMemoryRequest get_memory;
  get_memory.set_store("acme/s");
  get_memory.set_name("sum");
  ExpectSame(Path("GetMemory"), get_memory);
  v1::GetWriterRequest get_writer;
  get_writer.set_store("acme/s");
  get_writer.set_writer("w");
  ExpectSame(Path("GetWriter"), get_writer);
  Client client = ClientOf(cluster_.router());
  ASSERT_THAT(client.CreateBackup("b"), IsOk());
  ExpectSame(AdminPath("ListBackups"), admin::v1::ListBackupsRequest());
  cluster_.AwaitEqual("n");
  ExpectSame(AdminPath("GetGroup"), admin::v1::GetGroupRequest());
  ASSERT_THAT(client.RestoreStore("b", "acme/s", "acme/t"), IsOk());
  get.set_name("acme/t");
  ExpectSame(Path("GetStore"), get);
  read.set_store("acme/t");
  ExpectSame(Path("ReadRows"), read);
}

TEST_F(RouterTest, ErrorsAreThoseOfTheNode) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  v1::AppendRequest row = OneRow("s", 1);
  row.add_ids(1);
  ASSERT_THAT(Append(*stub_, row), IsGrpcOk());
  ExpectSame(Path("Append"), row, "ROW_EXISTS");
  row.clear_ids();
  *row.mutable_keys() = Message({1, 2}, 2);
  ExpectSame(Path("Append"), row, "SHAPE_MISMATCH");
  ExpectSame(Path("StreamAppend"), row, "SHAPE_MISMATCH");
  v1::CreateStoreRequest create;
  *create.mutable_store() = StoreMessage("s", 1, 1);
  ExpectSame(Path("CreateStore"), create, "STORE_EXISTS");
  create.mutable_store()->set_name("../s");
  ExpectSame(Path("CreateStore"), create, "INVALID_NAME");
  create.mutable_store()->set_name(std::string(100'000, 'n'));
  ExpectSame(Path("CreateStore"), create, "INVALID_NAME");
  v1::LookupRequest lookup = OneLookup("s");
  lookup.mutable_queries()->set_rows(65);
  lookup.mutable_queries()->set_data(std::string(65 * 4, '\0'));
  ExpectSame(Path("Lookup"), lookup, "LIMIT_EXCEEDED");
  lookup.set_min_revision(1'000);
  ExpectSame(Path("Lookup"), lookup, "LIMIT_EXCEEDED");
  ExpectSame(
      AdminPath("RemoveReplica"),
      [] {
        admin::v1::RemoveReplicaRequest request;
        request.set_node("n");
        return request;
      }(),
      "GROUP_UNCHANGED");
  // About a store that is not there: the names of all requests are fields 1, or fields 1.1.
  for (const char* method : {"GetStore", "DeleteStore", "GetMemory", "WatchMemory", "ReadRows"}) {
    const RawAnswer answer = SameAnswer(Path(method), "\x0a\x04none");
    EXPECT_EQ(ReasonOf(answer.status), "STORE_NOT_FOUND") << method;
    EXPECT_EQ(InfoOf(answer.status).metadata().at("store"), "none") << method;
  }
  v1::LookupRequest unknown = OneLookup("none");
  ExpectSame(Path("Lookup"), unknown, "STORE_NOT_FOUND");
  ExpectSame(Path("StreamLookup"), unknown);
  ExpectSame(Path("Append"), OneRow("none", 1), "STORE_NOT_FOUND");
  ExpectSame(Path("StreamAppend"), OneRow("none", 1), "STORE_NOT_FOUND");
}

TEST_F(RouterTest, MalformedMessagesAreRefusedOnEveryMethod) {
  ASSERT_TRUE(AwaitThat([&] { return CreateStore(*stub_, "s").ok(); }));
  const std::vector<std::string> kBad = {"\xff",
                                         std::string("\x0a\x05s"),
                                         std::string("\x0a\x01s\x12\x03"),
                                         std::string("\x0c"),
                                         std::string("\x0b"),
                                         std::string("\0", 1),
                                         std::string(1 << 17, '\xff')};
  for (const char* method :
       {"CreateStore", "GetStore", "ListStores", "UpdateStore", "RenameStore", "CompactStore",
        "DeleteStore", "Append", "StreamAppend", "ReadRows", "DeleteRows", "Lookup", "StreamLookup",
        "Attend", "GetMemory", "WatchMemory", "GetWriter"}) {
    for (const std::string& bytes : kBad) {
      const RawAnswer answer = SameAnswer(Path(method), bytes);
      EXPECT_EQ(ReasonOf(answer.status), "MALFORMED_MESSAGE")
          << method << " " << ::testing::PrintToString(bytes.substr(0, 9));
    }
  }
  for (const char* method :
       {"CreateBackup", "ListBackups", "RestoreStore", "GetGroup", "AddReplica", "RemoveReplica",
        "MovePrimary", "SplitStore", "MoveRange", "GetRanges"}) {
    EXPECT_EQ(ReasonOf(SameAnswer(AdminPath(method), "\xff").status), "MALFORMED_MESSAGE")
        << method;
  }
  SameAnswer(Path("NoSuchMethod"), "");
  SameAnswer("/a/b/c", "x");
  std::uint64_t rows = 1;
  EXPECT_THAT(LookUp(*stub_, "s", &rows), IsGrpcOk());
}

// Messages of a lookup stream, with the store named once, and what both servers answer.
TEST_F(RouterTest, ALookupStreamGoesOnAfterErrorsAndRemembersItsStore) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  ASSERT_THAT(CreateStore(*stub_, "t"), IsGrpcOk());
  ASSERT_THAT(Append(*stub_, OneRow("t", 3)), IsGrpcOk());
  std::vector<v1::LookupResponse> answers[2];
  for (const bool is_routed : {false, true}) {
    CallContext context;
    const auto stream = (is_routed ? stub_ : direct_)->StreamLookup(&context);
    std::uint64_t tag = 0;
    for (const char* store : {"s", "", "t", "none", "", "../x", "t"}) {
      v1::LookupRequest request = OneLookup(store);
      request.set_tag(++tag);
      if (tag == 5) *request.mutable_queries() = Message({1, 2}, 2);
      ASSERT_TRUE(stream->Write(request));
    }
    stream->WritesDone();
    v1::LookupResponse response;
    while (stream->Read(&response)) answers[is_routed].push_back(response);
    EXPECT_THAT(stream->Finish(), IsGrpcOk());
  }
  ASSERT_EQ(answers[0].size(), 7u);
  ASSERT_EQ(answers[1].size(), 7u);
  for (int i = 0; i < 7; ++i) EXPECT_THAT(answers[0][i], IsMessage(answers[1][i]));
}

TEST_F(RouterTest, AStreamOfAppendsAnswersInOrderAndEndsWithItsError) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  CallContext context;
  const auto stream = stub_->StreamAppend(&context);
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(stream->Write(OneRow(i == 1 ? "s" : "", static_cast<float>(i))));
  }
  v1::AppendRequest wrong = OneRow("", 1);
  *wrong.mutable_keys() = Message({1, 2}, 2);
  stream->Write(wrong);
  v1::AppendResponse response;
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.row_count(), i);
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(ReasonOf(stream->Finish()), "SHAPE_MISMATCH");
  CallContext empty_context;
  const auto empty = stub_->StreamAppend(&empty_context);
  empty->WritesDone();
  EXPECT_THAT(empty->Finish(), IsGrpcOk());
}

TEST_F(RouterTest, AWatchShowsChangesUntilItsStoreIsGone) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  CallContext context;
  v1::WatchMemoryRequest request;
  request.set_store("s");
  const auto watch = stub_->WatchMemory(&context, request);
  v1::Memory memory;
  ASSERT_TRUE(watch->Read(&memory));
  EXPECT_EQ(memory.end(), 0u);
  ASSERT_THAT(Append(*stub_, OneRow("s", 3)), IsGrpcOk());
  ASSERT_TRUE(watch->Read(&memory));
  EXPECT_EQ(memory.end(), 1u);
  ASSERT_THAT(DeleteStore(*stub_, "s"), IsGrpcOk());
  while (watch->Read(&memory)) {
  }
  EXPECT_EQ(ReasonOf(watch->Finish()), "STORE_NOT_FOUND");
}

TEST_F(RouterTest, TheClientLibraryWorks) {
  Client client = ClientOf(cluster_.router());
  std::vector<std::string> names;
  for (int i = 0; i < 25; ++i) {
    ASSERT_THAT(client.CreateStore(StoreMessage(absl::StrCat("t", i, "/s"), 1, 1)), IsOk());
  }
  CallContext context;
  v1::ListStoresRequest list;
  list.set_page_size(7);
  v1::ListStoresResponse page;
  do {
    CallContext page_context;
    ASSERT_THAT(stub_->ListStores(&page_context, list, &page), IsGrpcOk());
    EXPECT_LE(page.stores_size(), 7);
    for (const v1::Store& store : page.stores()) names.push_back(store.name());
    list.set_page_token(page.next_page_token());
  } while (!page.next_page_token().empty());
  EXPECT_EQ(names.size(), 25u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  auto stream = client.OpenAppendStream("t1/s", {.writer = "w"});
  ASSERT_THAT(stream, IsOk());
  const std::vector<float> ones(1'000, 1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_THAT(stream->Append(View(ones, 1), View(ones, 1)), IsOk());
  }
  ASSERT_THAT(stream->Finish(), IsOk());
  const auto answer = client.Lookup("t1/s", View({1}, 1));
  ASSERT_THAT(answer, IsOk());
  std::size_t rows = 0;
  EXPECT_THAT(client.ReadRows("t1/s", {},
                              [&rows](const v1::ReadRowsResponse& page) {
                                rows += page.rows_size();
                                return true;
                              }),
              IsOk());
  EXPECT_EQ(rows, 20'000u);
  EXPECT_THAT(client.RenameStore("t1/s", "t1/r"), IsOk());
  EXPECT_THAT(client.GetStore("t1/r"), IsOk());
  EXPECT_THAT(client.DeleteStore("t1/r"), IsOk());
  EXPECT_TRUE(absl::IsNotFound(client.GetStore("t1/r").status()));
}

// gRPC ends a process that sends metadata that no header may have.
TEST_F(RouterTest, StrangeMetadataDoNoHarm) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  for (const std::string& value :
       {std::string("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        std::string("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what"),
        std::string("x"), std::string(500, 'x'), std::string("a b")}) {
    for (const char* key : {"traceparent", "identity", "client", "revision-wait-ms"}) {
      CallContext context;
      context.AddMetadata(key, value);
      context.AddMetadata(key, value);
      v1::LookupResponse response;
      EXPECT_THAT(stub_->Lookup(&context, OneLookup("s"), &response), IsGrpcOk()) << value;
    }
  }
}

// While etcd is away, the map stays as it was.
TEST_F(RouterTest, WithoutEtcdLookupsGoOnAndWritesAreRefused) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  ASSERT_THAT(Append(*stub_, OneRow("s", 1)), IsGrpcOk());
  cluster_.etcd().Freeze(0);
  std::uint64_t rows = 0;
  // The first has an outcome that is not known; the next are refused at once.
  for (int i = 0; i < 3; ++i) {
    const grpc::Status status = Append(*stub_, OneRow("s", 2));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(ReasonOf(status), "STORAGE_FAILED");
    EXPECT_THAT(LookUp(*stub_, "s", &rows), IsGrpcOk());
    EXPECT_EQ(rows, 1u);
    if (i > 0) {
      EXPECT_EQ(InfoOf(status).metadata().at("written"), "no");
    }
  }
  CallContext context;
  v1::AppendResponse response;
  const grpc::Status refused = stub_->Append(&context, OneRow("s", 2), &response);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  CallContext direct_context;
  const grpc::Status direct = direct_->Append(&direct_context, OneRow("s", 2), &response);
  ExpectSameAnswer({.status = refused}, {.status = direct}, "Append");
  cluster_.etcd().Thaw(0);
  grpc::Status status;
  EXPECT_TRUE(AwaitThat([&] {
    status = Append(*stub_, OneRow("s", 3));
    return status.error_code() != grpc::StatusCode::UNAVAILABLE;
  }));
  EXPECT_THAT(status, IsGrpcOk());
  EXPECT_THAT(LookUp(*stub_, "s", &rows), IsGrpcOk());
  EXPECT_GE(rows, 2u);
  EXPECT_LE(rows, 3u);
}

TEST_F(RouterTest, ACallInProgressEndsBeforeTheRouterStops) {
  ASSERT_THAT(CreateStore(*stub_, "s"), IsGrpcOk());
  CallContext context;
  const auto stream = stub_->StreamAppend(&context);
  ASSERT_TRUE(stream->Write(OneRow("s", 1)));
  v1::AppendResponse response;
  ASSERT_TRUE(stream->Read(&response));
  CallContext lookup_context;
  const auto lookups = stub_->StreamLookup(&lookup_context);
  ASSERT_TRUE(lookups->Write(OneLookup("s")));
  v1::LookupResponse answer;
  ASSERT_TRUE(lookups->Read(&answer));
  CallContext watch_context;
  v1::WatchMemoryRequest watched;
  watched.set_store("s");
  const auto watch = stub_->WatchMemory(&watch_context, watched);
  v1::Memory memory;
  ASSERT_TRUE(watch->Read(&memory));
  // The grace is an hour, so a stop that waits for a stream would show.
  EXPECT_EQ(cluster_.router().Stop(SIGTERM), 0);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(ReasonOf(stream->Finish()), "SHUTTING_DOWN");
  EXPECT_FALSE(lookups->Read(&answer));
  EXPECT_EQ(ReasonOf(lookups->Finish()), "SHUTTING_DOWN");
  EXPECT_FALSE(watch->Read(&memory));
  EXPECT_EQ(ReasonOf(watch->Finish()), "SHUTTING_DOWN");
  std::uint64_t rows = 0;
  EXPECT_THAT(LookUp(*direct_, "s", &rows), IsGrpcOk());
  EXPECT_EQ(rows, 1u);
}

}  // namespace
}  // namespace softlookup::testing
