// Stores that lose their deleted rows, over real sockets: who consents to what, what lookups and
// memories are afterwards, also after a restart, and who may do it.
#include <signal.h>

#include <atomic>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/integration/integration_test.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

// A store of rows of 1 + 1 components has blocks of kBlockRows rows: here three full ones and a
// last one. The deletion leaves 100 rows of the first block, none of the second, and more than a
// quarter of the third.
constexpr std::uint64_t kBlockRows = 1024, kStoredRows = 3 * kBlockRows + 428;
constexpr std::uint64_t kDeletedBegin = 100, kDeletedEnd = 2 * kBlockRows + 452;
constexpr std::uint64_t kLiveRows = kStoredRows - (kDeletedEnd - kDeletedBegin);
constexpr std::uint64_t kDroppedRows = 2 * kBlockRows - kDeletedBegin;

v1::AppendRequest AllRows() {
  v1::AppendRequest request;
  request.set_store("s");
  *request.mutable_keys() = Message(NormalFloats(kStoredRows, 1), 1);
  *request.mutable_values() = Message(NormalFloats(kStoredRows, 2), 1);
  for (std::uint64_t i = 0; i < kStoredRows; ++i) request.add_ids(1000 + i);
  return request;
}

v1::RowFilter DeletedRows() {
  v1::RowFilter filter;
  filter.set_begin(kDeletedBegin);
  filter.set_end(kDeletedEnd);
  return filter;
}

// A server with a directory. Its store "s" has AllRows() without DeletedRows().
class CompactStoreTest : public ::testing::Test {
 protected:
  CompactStoreTest() {
    Start();
    EXPECT_THAT(client_->CreateStore(StoreMessage("s", 1, 1)), IsOk());
    EXPECT_THAT(client_->Append(AllRows()), IsOk());
    EXPECT_THAT(client_->DeleteRows("s", DeletedRows()), IsOk());
  }

  void Start() {
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--data-dir", directory_.path() + "/data"});
    client_ = std::make_unique<Client>(*Client::Connect(server_->grpc_address(), PatientOptions()));
  }
  CommandResult Tool(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {ToolBinary(), "--server", server_->grpc_address()});
    return RunCommand(arguments);
  }

  // What lookups and exports say of the store, to the bit.
  std::vector<std::string> Answers() {
    std::vector<std::string> answers;
    const std::vector<float> queries = {-1, 0.5, 2};
    for (const bool last_only : {false, true}) {
      LookupOptions options;
      options.attention.set_weights(v1::WEIGHTS_MODE_ALL);
      if (last_only) options.filter.set_last(1500);
      const auto answer = client_->Lookup("s", View(queries, 1), options);
      EXPECT_THAT(answer, IsOk());
      if (!answer.ok()) continue;
      answers.push_back(Message(answer->values.data, 1).SerializeAsString());
      for (const v1::QueryStats& stats : answer->stats) {
        answers.push_back(stats.SerializeAsString());
      }
      for (const v1::QueryWeights& weights : answer->weights) {
        answers.push_back(weights.SerializeAsString());
      }
    }
    EXPECT_THAT(client_->ReadRows("s", {},
                                  [&](const v1::ReadRowsResponse& page) {
                                    for (const v1::Row& row : page.rows()) {
                                      answers.push_back(row.SerializeAsString());
                                    }
                                    return true;
                                  }),
                IsOk());
    return answers;
  }
  absl::StatusOr<v1::Memory> MemoryOf(std::uint64_t begin, std::uint64_t end) {
    v1::GetMemoryRequest request;
    request.set_store("s");
    request.set_begin(begin);
    request.set_end(end);
    return client_->GetMemory(request);
  }
  // The memories that no compaction ends, to the bit.
  std::vector<std::string> LastingMemories() {
    std::vector<std::string> memories;
    for (const auto& [begin, end] : {std::pair<std::uint64_t, std::uint64_t>(0, kBlockRows),
                                     {kBlockRows, 2 * kBlockRows},
                                     {kBlockRows, 2 * kBlockRows + 500},
                                     {2 * kBlockRows + 7, kStoredRows},
                                     {0, kStoredRows}}) {
      absl::StatusOr<v1::Memory> memory = MemoryOf(begin, end);
      EXPECT_THAT(memory, IsOk()) << begin << " " << end;
      if (!memory.ok()) continue;
      memory->clear_revision();
      memories.push_back(memory->SerializeAsString());
    }
    return memories;
  }
  // The memories inside the blocks that lost rows are gone, for all who would use them.
  void ExpectMemoriesInsideAreGone() {
    for (const std::uint64_t index : {std::uint64_t{1}, kBlockRows - 1, kBlockRows + 500}) {
      const std::uint64_t begin = index / kBlockRows * kBlockRows;
      const std::uint64_t end = begin + kBlockRows;
      LookupOptions lookup;
      lookup.source = v1::SOURCE_MEMORY;
      lookup.filter.set_end(index);
      const std::vector<float> query = {1};
      for (const absl::Status& status :
           {MemoryOf(0, index).status(), MemoryOf(index, kStoredRows).status(),
            client_->Lookup("s", View(query, 1), lookup).status()}) {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                     absl::StrCat(begin, " and ", end)))
            << index;
        EXPECT_EQ(ErrorReason(status), "ROWS_COMPACTED");
        EXPECT_THAT(ErrorMetadata(status), AllOf(Contains(Pair("position", absl::StrCat(index))),
                                                 Contains(Pair("begin", absl::StrCat(begin))),
                                                 Contains(Pair("end", absl::StrCat(end)))));
      }
    }
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(CompactStoreTest, WithoutConsentNothingChanges) {
  const v1::Store before = *client_->GetStore("s");
  const auto refused = client_->CompactStore("s");
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition,
                                absl::StrCat(kDroppedRows, " deleted rows of 2 blocks")));
  EXPECT_EQ(ErrorReason(refused.status()), "COMPACTION_ENDS_MEMORIES");
  const CommandResult tool = Tool({"store", "compact", "s"});
  EXPECT_EQ(tool.exit_code, 4);
  EXPECT_THAT(tool.err, AllOf(HasSubstr("COMPACTION_ENDS_MEMORIES"),
                              HasSubstr(absl::StrCat(kDroppedRows, " deleted rows")),
                              HasSubstr("--end-memories")));
  EXPECT_THAT(*client_->GetStore("s"), IsMessage(before));
  EXPECT_THAT(MemoryOf(0, 1), IsOk());
}

TEST_F(CompactStoreTest, DropsRowsAndEndsMemoriesInsideTheirBlocksAndNothingElse) {
  const v1::Store before = *client_->GetStore("s");
  const std::vector<std::string> answers = Answers(), memories = LastingMemories();
  const auto compacted = client_->CompactStore("s", {.end_memories = true});
  ASSERT_THAT(compacted, IsOk());
  EXPECT_EQ(compacted->dropped_rows(), kDroppedRows);
  EXPECT_EQ(compacted->compacted_blocks(), 2u);
  const v1::Store after = *client_->GetStore("s");
  EXPECT_THAT(compacted->store(), IsMessage(after));
  EXPECT_EQ(after.row_count(), kStoredRows);
  EXPECT_EQ(after.live_row_count(), kLiveRows);
  EXPECT_LT(after.byte_size(), before.byte_size());
  EXPECT_GT(after.revision(), before.revision());
  EXPECT_EQ(Answers(), answers);
  EXPECT_EQ(LastingMemories(), memories);
  ExpectMemoriesInsideAreGone();

  const auto again = client_->CompactStore("s");
  ASSERT_THAT(again, IsOk()) << "there is nothing to consent to";
  EXPECT_EQ(again->dropped_rows(), 0u);
  EXPECT_EQ(again->compacted_blocks(), 0u);
  EXPECT_THAT(again->store(), IsMessage(after));
}

TEST_F(CompactStoreTest, WhatItDroppedIsGoneAfterARestartToo) {
  const std::vector<std::string> answers = Answers(), memories = LastingMemories();
  const CommandResult tool = Tool({"store", "compact", "s", "--end-memories"});
  ASSERT_EQ(tool.exit_code, 0) << tool.err;
  EXPECT_THAT(tool.out,
              HasSubstr(absl::StrCat("dropped ", kDroppedRows, " rows from 2 blocks of s; size ")));
  const v1::Store before = *client_->GetStore("s");
  ASSERT_EQ(server_->Stop(SIGTERM), 0);
  Start();
  const v1::Store after = *client_->GetStore("s");
  EXPECT_EQ(after.revision(), before.revision());
  EXPECT_EQ(after.row_count(), kStoredRows);
  EXPECT_EQ(after.live_row_count(), kLiveRows);
  EXPECT_EQ(Answers(), answers);
  EXPECT_EQ(LastingMemories(), memories);
  ExpectMemoriesInsideAreGone();
  EXPECT_EQ(client_->CompactStore("s", {.end_memories = true})->dropped_rows(), 0u);
}

TEST_F(CompactStoreTest, OfManyAtOnceEachRowIsDroppedOnce) {
  const std::vector<std::string> answers = Answers();
  std::atomic<std::uint64_t> dropped = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      const auto compacted = client_->CompactStore("s", {.end_memories = true});
      if (compacted.ok()) {
        dropped += compacted->dropped_rows();
      } else {
        EXPECT_EQ(ErrorReason(compacted.status()), "COMPACTION_IN_PROGRESS") << compacted.status();
        EXPECT_TRUE(RetryDelay(compacted.status()).has_value());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(dropped, kDroppedRows);
  EXPECT_EQ(Answers(), answers);
}

// The grace of this server is an hour, so a stop that waits for a whole compaction would show.
TEST_F(CompactStoreTest, AStopOfTheServerEndsItAndLosesNothing) {
  const std::vector<std::string> answers = Answers();
  absl::Status status;
  std::thread caller([&] { status = client_->CompactStore("s", {.end_memories = true}).status(); });
  EXPECT_EQ(server_->Stop(SIGTERM), 0);
  caller.join();
  // A call that comes while gRPC shuts down is cancelled.
  EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsCancelled(status)) << status;
  Start();
  EXPECT_EQ(Answers(), answers);
  EXPECT_THAT(client_->CompactStore("s", {.end_memories = true}), IsOk());
  EXPECT_EQ(Answers(), answers);
}

TEST_F(CompactStoreTest, AStoreThatIsNotThereIsNotCompacted) {
  const auto unknown = client_->CompactStore("none", {.end_memories = true});
  EXPECT_THAT(unknown, StatusIs(absl::StatusCode::kNotFound, "\"none\""));
  EXPECT_EQ(ErrorReason(unknown.status()), "STORE_NOT_FOUND");
}

TEST(CompactStoreRightsTest, TakesManageAndLeavesALineWithItsRows) {
  const SecurityFiles files;
  const std::string manage = files.AddIdentity("m", "manage", "*");
  const std::string write = files.AddIdentity("w", "write", "*");
  std::vector<std::string> flags = files.Flags(Transport::kPlaintext);
  flags.insert(flags.end(), {"--audit-log", files.Path("audit.log"), "--log-format", "json"});
  ServerProcess server(flags);
  const auto channel =
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials());
  const auto call = [&](const std::string& method, const auto& request, const std::string& token) {
    return CallRaw(channel, "/softlookup.v1.SoftLookup/" + method, request.SerializeAsString(),
                   token);
  };
  v1::CreateStoreRequest create;
  *create.mutable_store() = StoreMessage("s", 1, 1);
  ASSERT_THAT(call("CreateStore", create, manage).status, IsGrpcOk());
  ASSERT_THAT(call("Append", AllRows(), manage).status, IsGrpcOk());
  v1::DeleteRowsRequest remove;
  remove.set_store("s");
  *remove.mutable_filter() = DeletedRows();
  ASSERT_THAT(call("DeleteRows", remove, manage).status, IsGrpcOk());

  v1::CompactStoreRequest compact;
  compact.set_end_memories(true);
  for (const char* name : {"s", "none"}) {
    compact.set_name(name);
    const grpc::Status denied = call("CompactStore", compact, write).status;
    EXPECT_THAT(denied, IsGrpcError(grpc::StatusCode::PERMISSION_DENIED, "")) << name;
    EXPECT_EQ(ReasonOf(denied), "PERMISSION_DENIED");
  }
  compact.set_name("s");
  const RawAnswer answer = call("CompactStore", compact, manage);
  ASSERT_THAT(answer.status, IsGrpcOk());
  v1::CompactStoreResponse compacted;
  ASSERT_TRUE(compacted.ParseFromString(answer.messages.at(0)));
  EXPECT_EQ(compacted.dropped_rows(), kDroppedRows);
  ASSERT_EQ(server.Stop(SIGTERM), 0);
  const std::vector<std::string> lines =
      absl::StrSplit(Contents(files.Path("audit.log")), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines.back(),
              AllOf(HasSubstr("\"event\":\"change\",\"identity\":\"m\""),
                    HasSubstr("\"method\":\"CompactStore\",\"store\":\"s\",\"result\":\"OK\""),
                    HasSubstr(absl::StrCat("\"changes\":1,\"rows\":", kDroppedRows))));
}

}  // namespace
}  // namespace softlookup::testing
