// Deletion, and what is seen of it meanwhile.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;

class DeleteRowsTest : public IntegrationTest {};

TEST_F(DeleteRowsTest, DeletingLeavesPositionsAndMemoriesAsTheyWere) {
  v1::Store store = StoreMessage("s", 1, 1);
  v1::MemorySpec* spec = store.add_memories();
  spec->set_name("fading");
  spec->set_kind(v1::MEMORY_KIND_DECAYED_AVERAGE);
  spec->set_decay(0.9);
  ASSERT_THAT(CreateStore(store), IsGrpcOk());
  constexpr int kRows = 3000;  // Several blocks.
  const std::vector<float> values = NormalFloats(kRows, 3);
  v1::AppendRequest append = RowsWithIds(0, kRows, 0);
  *append.mutable_values() = Message(values, 1);
  ASSERT_THAT(Append(append), IsGrpcOk());
  v1::Memory average, fading, memory;
  ASSERT_THAT(GetMemory("s", "average", 7, 2500, &average), IsGrpcOk());
  ASSERT_THAT(GetMemory("s", "fading", {}, 2500, &fading), IsGrpcOk());

  v1::RowFilter filter;
  v1::DeleteRowsResponse deleted;
  const grpc::Status refused = DeleteRows("s", filter, &deleted);
  EXPECT_THAT(refused, IsGrpcError(grpc::StatusCode::INVALID_ARGUMENT, "filter"));
  EXPECT_EQ(ReasonOf(refused), "INVALID_OPTION");
  EXPECT_EQ(GetStore("s").revision(), 2u);

  filter.set_begin(10);
  filter.set_end(2900);
  ASSERT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
  EXPECT_EQ(deleted.deleted_count(), 2890u);
  EXPECT_EQ(deleted.revision(), 3u);
  EXPECT_EQ(GetStore("s").row_count(), static_cast<std::uint64_t>(kRows));
  EXPECT_EQ(GetStore("s").live_row_count(), 110u);
  // What is gone is gone, and that is no error.
  ASSERT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
  EXPECT_EQ(deleted.deleted_count(), 0u);
  filter.Clear();
  filter.add_ids(20);
  ASSERT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
  EXPECT_EQ(deleted.deleted_count(), 0u);

  for (const v1::Row& row : RowsOf("s")) {
    EXPECT_TRUE(row.position() < 10 || row.position() >= 2900);
    EXPECT_EQ(row.id(), row.position());
    EXPECT_THAT(Floats(row.value()), ElementsAre(values[row.position()]));
  }
  EXPECT_EQ(RowsOf("s").size(), 110u);
  ASSERT_THAT(GetMemory("s", "average", 7, 2500, &memory), IsGrpcOk());
  EXPECT_EQ(memory.value().data(), average.value().data());
  EXPECT_EQ(memory.weight(), 2493);
  ASSERT_THAT(GetMemory("s", "fading", {}, 2500, &memory), IsGrpcOk());
  EXPECT_EQ(memory.value().data(), fading.value().data());
  // The next row goes behind all rows ever appended.
  v1::AppendResponse appended;
  ASSERT_THAT(Append(RowsWithIds(kRows, 1, 1), &appended), IsGrpcOk());
  EXPECT_EQ(appended.first_position(), static_cast<std::uint64_t>(kRows));
}

TEST_F(DeleteRowsTest, LookupsBesideReplaceAndDeleteSeeOneStateOrTheOther) {
  constexpr int kRows = 1500, kRounds = 150;  // More than a block, so that both change two.
  Create("s", 1, 1);
  std::map<std::uint64_t, float> value_of;          // Every revision's, NaN where it has no rows.
  std::map<std::uint64_t, std::uint64_t> first_of;  // And its first position.
  std::atomic<bool> done = false;
  std::atomic<int> answered = 0;
  struct Seen {
    std::uint64_t revision, counted, first, last;
    float value;
  };
  std::vector<std::vector<Seen>> seen(2);
  std::vector<std::thread> readers;
  value_of[1] = NAN;
  v1::AppendResponse appended;
  ASSERT_THAT(Append(RowsWithIds(0, kRows, 1), &appended), IsGrpcOk());
  value_of[appended.revision()] = 1;
  first_of[appended.revision()] = 0;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&, r] {
      v1::LookupRequest request = OneQuery();
      request.mutable_options()->set_score(v1::SCORE_COSINE);  // All rows weigh the same, nearly.
      while (!done) {
        v1::LookupResponse answer;
        const grpc::Status status = Lookup(request, &answer);
        ++answered;
        answered.notify_all();
        EXPECT_THAT(status, IsGrpcOk());
        if (!status.ok()) continue;
        const auto& positions = answer.weights(0).positions();
        const auto [first, last] = std::minmax_element(positions.begin(), positions.end());
        seen[r].push_back({answer.revision(), answer.stats(0).counted_rows(),
                           positions.empty() ? 0 : *first, positions.empty() ? 0 : *last,
                           Floats(answer.values()).at(0)});
      }
    });
  }
  for (int round = 2; round < kRounds; ++round) {
    const float value = static_cast<float>(round);
    const int answered_before = answered;
    if (round % 3 == 0) {
      v1::RowFilter filter;
      filter.set_begin(0);
      v1::DeleteRowsResponse deleted;
      EXPECT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
      EXPECT_EQ(deleted.deleted_count(), static_cast<std::uint64_t>(kRows));
      value_of[deleted.revision()] = NAN;
    }
    EXPECT_THAT(Append(RowsWithIds(0, kRows, value, v1::ON_CONFLICT_REPLACE), &appended),
                IsGrpcOk());
    value_of[appended.revision()] = value;
    first_of[appended.revision()] = appended.first_position();
    answered.wait(answered_before);  // Some lookup ends in every round.
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  std::set<std::uint64_t> revisions;
  for (const auto& list : seen) {
    for (const Seen& answer : list) {
      revisions.insert(answer.revision);
      SCOPED_TRACE("revision " + std::to_string(answer.revision));
      ASSERT_TRUE(value_of.contains(answer.revision));
      const float value = value_of.at(answer.revision);
      if (std::isnan(value)) {
        ASSERT_EQ(answer.counted, 0u);
        ASSERT_EQ(answer.value, 0);
      } else {
        ASSERT_EQ(answer.counted, static_cast<std::uint64_t>(kRows));
        ASSERT_NEAR(answer.value, value, 1e-4 * value);
        ASSERT_EQ(answer.first, first_of.at(answer.revision));
        ASSERT_EQ(answer.last, first_of.at(answer.revision) + kRows - 1);
      }
    }
  }
  EXPECT_GT(revisions.size(), 20u);
}

}  // namespace
}  // namespace softlookup::testing
