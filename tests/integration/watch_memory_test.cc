// Streams of a memory as it changes.
#include <signal.h>

#include <map>
#include <thread>

#include "absl/time/clock.h"
#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

class WatchMemoryTest : public IntegrationTest {};

TEST_F(WatchMemoryTest, AWatchSendsTheMemoryNowThenAfterChangesAndEndsWithItsStore) {
  v1::Store store = StoreMessage("s", 1, 1);
  v1::MemorySpec* spec = store.add_memories();
  spec->set_name("total");
  spec->set_kind(v1::MEMORY_KIND_DECAYED_SUM);
  spec->set_decay(0.5);
  ASSERT_THAT(CreateStore(store), IsGrpcOk());
  ASSERT_THAT(Append(RowsWithIds(0, 1, 8)), IsGrpcOk());
  for (const std::string name : {"", "total"}) {
    SCOPED_TRACE(name);
    CallContext context;
    v1::WatchMemoryRequest request;
    request.set_store("s");
    request.set_name(name);
    const auto reader = stub_->WatchMemory(&context, request);
    v1::Memory memory;
    ASSERT_TRUE(reader->Read(&memory));
    std::uint64_t row_count = GetStore("s").row_count();
    EXPECT_EQ(memory.name(), name.empty() ? "average" : name);
    EXPECT_EQ(memory.end(), row_count);
    for (int i = 0; i < 5; ++i) {
      v1::AppendResponse appended;
      ASSERT_THAT(Append(RowsWithIds(row_count, 1, 8), &appended), IsGrpcOk());
      ++row_count;
      ASSERT_TRUE(reader->Read(&memory));
      EXPECT_EQ(memory.end(), row_count);
      EXPECT_EQ(memory.revision(), appended.revision());
      v1::Memory expected;
      ASSERT_THAT(GetMemory("s", name, {}, {}, &expected), IsGrpcOk());
      EXPECT_EQ(memory.value().data(), expected.value().data());
      EXPECT_EQ(memory.weight(), expected.weight());
    }
    if (name.empty()) {
      context.TryCancel();
      EXPECT_THAT(reader->Finish(), IsGrpcError(grpc::StatusCode::CANCELLED, ""));
      continue;
    }
    ASSERT_THAT(DeleteStore("s"), IsGrpcOk());
    EXPECT_FALSE(reader->Read(&memory));
    const grpc::Status status = reader->Finish();
    EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::NOT_FOUND, "\"s\""));
    EXPECT_EQ(ReasonOf(status), "STORE_NOT_FOUND");
  }
}

TEST_F(WatchMemoryTest, AWatchSendsAtMostOneMemoryAnInterval) {
  Create("s", 1, 1);
  constexpr int kAppends = 50, kIntervalMs = 200;
  CallContext context;
  v1::WatchMemoryRequest request;
  request.set_store("s");
  request.set_min_interval_ms(kIntervalMs);
  const absl::Time start = absl::Now();
  const auto reader = stub_->WatchMemory(&context, request);
  v1::Memory memory;
  ASSERT_TRUE(reader->Read(&memory));
  EXPECT_EQ(memory.end(), 0u);
  EXPECT_EQ(memory.weight(), 0);
  std::thread writer([&] {
    for (int i = 0; i < kAppends; ++i) ASSERT_THAT(Append(RowsWithIds(i, 1, 1)), IsGrpcOk());
  });
  int messages = 1;
  std::uint64_t before = 0;
  while (before < kAppends && reader->Read(&memory)) {
    EXPECT_GT(memory.end(), before);
    before = memory.end();
    ++messages;
  }
  writer.join();
  EXPECT_EQ(before, static_cast<std::uint64_t>(kAppends));  // The newest comes in any case.
  // The n-th message is not sent before n - 1 intervals have passed.
  EXPECT_GE(absl::Now() - start, (messages - 1) * absl::Milliseconds(kIntervalMs));
  context.TryCancel();
  reader->Finish();
}

TEST_F(WatchMemoryTest, AWatchInsideItsIntervalEndsWhenItsStoreIsDeletedEvenIfItIsCreatedAnew) {
  constexpr int kIntervalMs = 2000;
  Create("s", 1, 1);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
  v1::WatchMemoryRequest request;
  request.set_store("s");
  request.set_min_interval_ms(kIntervalMs);
  const auto reader = stub_->WatchMemory(&context, request);
  v1::Memory memory;
  ASSERT_TRUE(reader->Read(&memory));
  ASSERT_THAT(Append(RowsWithIds(0, 1, 1)), IsGrpcOk());
  ASSERT_THAT(DeleteStore("s"), IsGrpcOk());
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(0, 7, 1)), IsGrpcOk());
  while (reader->Read(&memory)) {
    EXPECT_LT(memory.end(), 7u) << "the memory of another store";
    if (memory.end() == 7) context.TryCancel();
  }
  EXPECT_THAT(reader->Finish(), IsGrpcError(grpc::StatusCode::NOT_FOUND, "\"s\""));
}

// The alarm of its interval once kept it, and every stop then took the whole grace period.
TEST_F(WatchMemoryTest, AWatchThatHasSeenAChangeHearsThatTheServerStops) {
  Create("s", 1, 1);
  CallContext context;
  v1::WatchMemoryRequest request;
  request.set_store("s");
  const auto reader = stub_->WatchMemory(&context, request);
  v1::Memory memory;
  ASSERT_TRUE(reader->Read(&memory));
  ASSERT_THAT(Append(RowsWithIds(0, 1, 8)), IsGrpcOk());
  ASSERT_TRUE(reader->Read(&memory));
  EXPECT_EQ(server_.Stop(SIGTERM), 0);
  EXPECT_FALSE(reader->Read(&memory));
  EXPECT_EQ(ReasonOf(reader->Finish()), "SHUTTING_DOWN");
}

TEST_F(WatchMemoryTest, AWatchOfWhatIsNotThereEndsAtOnce) {
  Create("s", 1, 1);
  for (const auto& [store, name] : std::map<std::string, std::string>{{"s", "m"}, {"t", ""}}) {
    CallContext context;
    v1::WatchMemoryRequest request;
    request.set_store(store);
    request.set_name(name);
    const auto reader = stub_->WatchMemory(&context, request);
    v1::Memory memory;
    EXPECT_FALSE(reader->Read(&memory));
    const grpc::Status status = reader->Finish();
    EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::NOT_FOUND, store == "s" ? "\"m\"" : "\"t\""));
    EXPECT_EQ(ReasonOf(status), store == "s" ? "MEMORY_NOT_FOUND" : "STORE_NOT_FOUND");
  }
}

}  // namespace
}  // namespace softlookup::testing
