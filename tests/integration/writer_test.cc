// Appends that are applied once however often they are sent, and what survives a crash.
#include <signal.h>

#include "tests/integration/integration_test.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

// Where the writer `name` of the store "s" stands.
grpc::Status GetWriter(v1::SoftLookup::Stub& stub, const std::string& name, v1::Writer* response,
                       const std::string& store = "s") {
  CallContext context;
  v1::GetWriterRequest request;
  request.set_store(store);
  request.set_writer(name);
  return stub.GetWriter(&context, request, response);
}

v1::AppendRequest TwoRowsOf(v1::AppendRequest rows, const std::string& writer,
                            std::uint64_t sequence) {
  rows.set_writer(writer);
  rows.set_sequence(sequence);
  return rows;
}

class WriterTest : public IntegrationTest {};

TEST_F(WriterTest, ASequenceIsAppliedOnceAndAGapIsAllowed) {
  Create("s", 2, 1);
  v1::AppendResponse appended;
  ASSERT_THAT(Append(TwoRowsOf(TwoRows(), "w", 5), &appended), IsGrpcOk());
  EXPECT_FALSE(appended.duplicate());
  EXPECT_EQ(appended.sequence(), 5u);
  const std::uint64_t revision = appended.revision();
  for (const std::uint64_t sequence : {1, 4, 5}) {
    ASSERT_THAT(Append(TwoRowsOf(TwoRows(), "w", sequence), &appended), IsGrpcOk());
    EXPECT_TRUE(appended.duplicate());
    EXPECT_EQ(appended.sequence(), sequence);
    EXPECT_EQ(appended.appended_count(), 0u);
    EXPECT_EQ(appended.row_count(), 2u);
    EXPECT_EQ(appended.revision(), revision);
  }
  // Another writer's sequences are its own.
  ASSERT_THAT(Append(TwoRowsOf(TwoRows(), "v", 1), &appended), IsGrpcOk());
  EXPECT_FALSE(appended.duplicate());
  ASSERT_THAT(Append(TwoRowsOf(TwoRows(), "w", 900), &appended), IsGrpcOk());
  EXPECT_FALSE(appended.duplicate());
  EXPECT_EQ(appended.row_count(), 6u);

  v1::Writer writer;
  ASSERT_THAT(GetWriter(*stub_, "w", &writer), IsGrpcOk());
  EXPECT_EQ(writer.writer(), "w");
  EXPECT_EQ(writer.last_sequence(), 900u);
  EXPECT_EQ(writer.last_position(), 5u);
  ASSERT_THAT(GetWriter(*stub_, "v", &writer), IsGrpcOk());
  EXPECT_EQ(writer.last_sequence(), 1u);
  EXPECT_EQ(writer.last_position(), 3u);
}

TEST_F(WriterTest, AnAppendThatIsRefusedUsesUpNoSequence) {
  Create("s", 2, 1);
  v1::AppendRequest rows = TwoRowsOf(TwoRows(), "w", 1);
  rows.add_ids(1);
  rows.add_ids(2);
  ASSERT_THAT(Append(rows), IsGrpcOk());
  rows.set_sequence(2);
  EXPECT_THAT(Append(rows), IsGrpcError(grpc::StatusCode::ALREADY_EXISTS, "id 1"));
  v1::Writer writer;
  ASSERT_THAT(GetWriter(*stub_, "w", &writer), IsGrpcOk());
  EXPECT_EQ(writer.last_sequence(), 1u);
  // Rows that are all skipped were still dealt with.
  rows.set_on_conflict(v1::ON_CONFLICT_SKIP);
  v1::AppendResponse appended;
  ASSERT_THAT(Append(rows, &appended), IsGrpcOk());
  EXPECT_EQ(appended.appended_count(), 0u);
  EXPECT_FALSE(appended.duplicate());
  ASSERT_THAT(GetWriter(*stub_, "w", &writer), IsGrpcOk());
  EXPECT_EQ(writer.last_sequence(), 2u);
}

TEST_F(WriterTest, BadWritersAreRefusedByField) {
  Create("s", 2, 1);
  const auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  EXPECT_THAT(Append(TwoRowsOf(TwoRows(), "w", 0)), IsGrpcError(kInvalid, "sequence: must be"));
  EXPECT_THAT(Append(TwoRowsOf(TwoRows(), "", 1)), IsGrpcError(kInvalid, "writer: must have"));
  EXPECT_THAT(Append(TwoRowsOf(TwoRows(), std::string(129, 'w'), 1)),
              IsGrpcError(kInvalid, "writer: must have"));
  EXPECT_EQ(GetStore("s").row_count(), 0u);
  v1::Writer writer;
  EXPECT_THAT(GetWriter(*stub_, "", &writer), IsGrpcError(kInvalid, "writer: must have"));
  const grpc::Status unknown = GetWriter(*stub_, "w", &writer);
  EXPECT_THAT(unknown, IsGrpcError(grpc::StatusCode::NOT_FOUND, "\"w\""));
  EXPECT_EQ(ReasonOf(unknown), "WRITER_NOT_FOUND");
  EXPECT_EQ(ReasonOf(GetWriter(*stub_, "w", &writer, "t")), "STORE_NOT_FOUND");
}

// A server on a directory, which outlives it.
class DirectoryTest : public ::testing::Test {
 protected:
  DirectoryTest() { Start(); }

  void Start() {
    server_ = std::make_unique<ServerProcess>(std::vector<std::string>{"--data-dir", path()});
    stub_ = v1::SoftLookup::NewStub(
        grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials()));
  }
  std::string path() const { return directory_.path() + "/data"; }

  const TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::SoftLookup::Stub> stub_;
};

TEST_F(DirectoryTest, WhatWasAcknowledgedSurvivesACrashAndAStop) {
  v1::AppendRequest rows;
  {
    CallContext context;
    v1::CreateStoreRequest request;
    *request.mutable_store() = StoreMessage("s", 2, 1);
    v1::Store store;
    ASSERT_THAT(stub_->CreateStore(&context, request, &store), IsGrpcOk());
  }
  rows.set_store("s");
  *rows.mutable_keys() = Message({1, 2, 3, 4}, 2);
  *rows.mutable_values() = Message({5, 6}, 1);
  rows.set_writer("w");
  std::uint64_t sequence = 0;
  for (const int signal : {SIGKILL, SIGTERM}) {
    {
      CallContext context;
      v1::AppendResponse appended;
      rows.set_sequence(++sequence);
      ASSERT_THAT(stub_->Append(&context, rows, &appended), IsGrpcOk());
    }
    EXPECT_EQ(server_->Stop(signal), signal == SIGTERM ? 0 : 128 + signal);
    server_.reset();
    Start();
    CallContext context;
    v1::AppendResponse again;
    ASSERT_THAT(stub_->Append(&context, rows, &again), IsGrpcOk());
    EXPECT_TRUE(again.duplicate());
    EXPECT_EQ(again.row_count(), 2 * sequence);
  }
}

TEST_F(DirectoryTest, ASecondServerOnTheSameDirectoryIsRefused) {
  const CommandResult second = RunCommand({ServerBinary(), "--data-dir", path(), "--listen",
                                           "127.0.0.1:0", "--http-listen", "127.0.0.1:0"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, ::testing::HasSubstr("another process has the data directory"));
  EXPECT_THAT(second.err, ::testing::HasSubstr(path()));
}

}  // namespace
}  // namespace softlookup::testing
