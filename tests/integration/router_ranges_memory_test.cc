// Stores that are larger than the RAM of a node, and what comes back of a store in ranges from a
// backup. With real servers and a real etcd.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/integration/router_ranges.h"
#include "tests/integration/scrape.h"
#include "tests/testing/passing_time.h"

namespace softlookup::testing {
namespace {

class RouterRangesMemoryTest : public RouterRangesTest {
 protected:
  static constexpr std::int64_t kMemory = std::int64_t{32} << 20;

  RouterRangesMemoryTest() : RouterRangesTest({"--memory-limit", absl::StrCat(kMemory)}) {}

  // Bytes of the stores of a node in RAM.
  double Memory(const std::string& node) {
    return MetricOf(cluster_.node(node), "softlookup_store_bytes");
  }
};

TEST_F(RouterRangesMemoryTest, AStoreOfTwiceTheMemoryOfANodeIsFilledAndMovedUnderLoad) {
  constexpr std::int64_t kRowBytes = 4 * (kKeyDim + kValueDim) + kKeyDim;  // With its sketch.
  constexpr std::int64_t kRows = (2 * kMemory / kRowBytes / kRowsPerAppend + 1) * kRowsPerAppend;
  Create(StoreMessage(kStore, kKeyDim, kValueDim));
  std::int64_t rows = kRows / 4 / kRowsPerAppend * kRowsPerAppend;
  Fill(rows);
  Split(3);
  Rebalance("n1,n2");
  std::atomic<bool> ends = false;
  std::atomic<int> asked = 0;
  std::thread reader = StartReader(
      ends, asked, [](const v1::LookupResponse& response) { return response.row_count(); });
  // More than two nodes have room for, with their sketches, so the third one is used in time.
  while (rows < kRows && !HasFailure()) {
    const std::int64_t begin = rows;
    rows = std::min(kRows, rows + kRows / 8 / kRowsPerAppend * kRowsPerAppend);
    Fill(rows, begin);
    Split(8);
    Rebalance(rows < kRows / 2 ? "n1,n2" : "n1,n2,n3");
  }
  const int before = asked;
  EXPECT_TRUE(AwaitThat([&] { return asked >= before + 20 || HasFailure(); }));
  ends = true;
  reader.join();
  double sum = 0;
  for (const char* node : {"n1", "n2", "n3"}) {
    EXPECT_LE(Memory(node), kMemory) << node;
    sum += Memory(node);
  }
  EXPECT_GT(sum, 2 * kMemory);

  // A node that starts again loads its own rows alone.
  ASSERT_EQ(cluster_.node("n2").Stop(SIGTERM), 0);
  cluster_.Restart("n2");
  cluster_.AwaitEqual("n1");
  EXPECT_LE(Memory("n2"), kMemory);
  v1::LookupResponse response;
  ASSERT_THAT(LookUpAt(*router_, Request(1), &response), IsGrpcOk());
  EXPECT_EQ(response.stats(0).counted_rows(), kRows);
}

TEST_F(RouterRangesMemoryTest, AStoreOfMoreThanTheMemoryOfANodeComesBackFromABackupWithItsRanges) {
  constexpr std::int64_t kRowBytes = 4 * (kKeyDim + kValueDim);
  constexpr std::int64_t kRows = (kMemory / kRowBytes / kRowsPerAppend + 1) * kRowsPerAppend;
  Create(StoreMessage(kStore, kKeyDim, kValueDim));
  Fill(kRows / 2 / kRowsPerAppend * kRowsPerAppend);
  Split(3);
  Fill(kRows, kRows / 2 / kRowsPerAppend * kRowsPerAppend);
  Split(9);
  Rebalance("n1,n2,n3");
  const v1::LookupRequest all = Request(2);
  v1::LookupResponse before, after;
  ASSERT_THAT(LookUpAt(*router_, all, &before), IsGrpcOk());
  Client client = ClientOf(cluster_.router());
  ASSERT_NO_FATAL_FAILURE(BackUp("b"));
  ASSERT_THAT(client.DeleteStore(kStore), IsOk());
  EXPECT_EQ(ErrorReason(client.RestoreStore("b", kStore).status()), "MEMORY_LIMIT");
  admin::v1::RestoreStoreRequest restore;
  restore.set_backup("b");
  restore.set_store(kStore);
  restore.set_keep_ranges(true);
  ASSERT_THAT(client.RestoreStore(restore), IsOk());
  cluster_.AwaitEqual("n1");
  ASSERT_THAT(LookUpAt(*router_, all, &after), IsGrpcOk());
  EXPECT_THAT(after, IsMessage(before));
  for (const char* node : {"n1", "n2", "n3"}) EXPECT_LE(Memory(node), kMemory) << node;
}

TEST_F(RouterRangesTest, RangesOfANodeThatHasLeftTheGroupAreNotRestored) {
  constexpr std::int64_t kRows = 2 * kRowsPerAppend;
  Create(StoreMessage(kStore, kKeyDim, kValueDim));
  Fill(kRows);
  Split(2);
  Rebalance("n1,n3");
  Client client = ClientOf(cluster_.router());
  ASSERT_NO_FATAL_FAILURE(BackUp("b"));
  ASSERT_THAT(client.DeleteStore(kStore), IsOk());
  cluster_.AwaitEqual("n1");
  const absl::StatusOr<admin::v1::Group> group = client.RemoveReplica("n3");
  ASSERT_THAT(group, IsOk());
  ASSERT_EQ(group->replicas_size(), 2);
  admin::v1::RestoreStoreRequest restore;
  restore.set_backup("b");
  restore.set_store(kStore);
  restore.set_keep_ranges(true);
  const absl::Status refused = client.RestoreStore(restore).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_EQ(ErrorMetadata(refused)["field"], "keep_ranges");
  EXPECT_THAT(refused.message(), HasSubstr("node n3 has the range from position"));
  EXPECT_EQ(ErrorReason(client.GetStore(kStore).status()), "STORE_NOT_FOUND");
  // Without its ranges, the store comes back.
  ASSERT_THAT(client.RestoreStore("b", kStore), IsOk());
  v1::LookupResponse response;
  ASSERT_THAT(LookUpAt(*router_, Request(1), &response), IsGrpcOk());
  EXPECT_EQ(response.stats(0).counted_rows(), kRows);
}

}  // namespace
}  // namespace softlookup::testing
