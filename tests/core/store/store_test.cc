#include "core/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

// A new store, which wakes those who wait on the thread that writes, or as `executor` says.
Store NewStore(
    StoreConfig config, Store::Executor executor = [](auto task) { task(); }) {
  return Store(1, std::make_unique<StoreEditor>(std::move(config)), absl::UnixEpoch(),
               std::move(executor));
}

// Appends `count` rows whose components are their positions, and shows them.
void AppendNumbered(Store& store, std::int64_t count) {
  const Snapshot& before = *store.editor().newest();
  std::vector<float> keys, values;
  for (std::int64_t j = 0; j < count; ++j) {
    const float number = static_cast<float>(before.row_count() + static_cast<std::uint64_t>(j));
    keys.insert(keys.end(), before.config().key_dim, number);
    values.insert(values.end(), before.config().value_dim, number);
  }
  const auto appended = store.editor().Append(
      {.keys = {.data = keys.data(), .rows = count, .cols = before.config().key_dim},
       .values = {.data = values.data(), .rows = count, .cols = before.config().value_dim}});
  ASSERT_THAT(appended, IsOk());
  store.Publish(appended->snapshot);
}

TEST(StoreTest, ReadersBesideAWriterSeePrefixes) {
  Store store = NewStore({.name = "s", .key_dim = 4, .value_dim = 3});
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::uint64_t seen = 0;
    while (!done) {
      const std::shared_ptr<const Snapshot> snapshot = store.snapshot();
      ASSERT_GE(snapshot->row_count(), seen);
      seen = snapshot->row_count();
      for (const PositionedBlock& block : snapshot->BlocksOf(0, seen)) {
        for (std::int64_t r = 0; r < block.view.row_count; ++r) {
          const Row row = snapshot->RowOf(block, r);
          const float number = static_cast<float>(row.position);
          ASSERT_THAT(row.key, ::testing::Each(number));
          ASSERT_THAT(row.value, ::testing::Each(number));
        }
      }
    }
  });
  for (int batch = 0; batch < 430; ++batch) AppendNumbered(store, 7);
  done = true;
  reader.join();
}

TEST(StoreTest, AWriteIsNotSeenBeforeItIsPublished) {
  Store store = NewStore({.name = "s", .key_dim = 1, .value_dim = 1});
  const float number = 1;
  const MatrixView one{.data = &number, .rows = 1, .cols = 1};
  const auto appended = store.editor().Append({.keys = one, .values = one});
  ASSERT_THAT(appended, IsOk());
  EXPECT_EQ(store.snapshot()->row_count(), 0u);
  store.Publish(appended->snapshot);
  EXPECT_EQ(store.snapshot()->row_count(), 1u);
}

TEST(StoreTest, WhoeverWaitsForARevisionHearsOfItOnce) {
  Store store = NewStore({.name = "s", .key_dim = 1, .value_dim = 1});
  std::vector<absl::Status> heard;
  const auto hear = [&heard](absl::Status status) { heard.push_back(status); };
  const auto cancel = std::make_shared<CancelToken>();
  store.WhenRevision(1, cancel, hear);
  EXPECT_THAT(heard, ::testing::SizeIs(1)) << "reached already";
  store.WhenRevision(3, cancel, hear);
  AppendNumbered(store, 1);
  EXPECT_THAT(heard, ::testing::SizeIs(1));
  AppendNumbered(store, 1);
  ASSERT_THAT(heard, ::testing::SizeIs(2));
  EXPECT_THAT(heard[1], IsOk());
  cancel->Cancel();
  EXPECT_THAT(heard, ::testing::SizeIs(2));
}

TEST(StoreTest, AWriteHandsAllWhoWaitedForItOverInOneTask) {
  std::vector<absl::AnyInvocable<void()>> tasks;
  Store store = NewStore({.name = "s", .key_dim = 1, .value_dim = 1},
                         [&](auto task) { tasks.push_back(std::move(task)); });
  int heard = 0;
  for (int i = 0; i < 100; ++i) {
    store.WhenRevision(2, std::make_shared<CancelToken>(), [&](const auto&) { ++heard; });
    store.WhenRevision(9, std::make_shared<CancelToken>(), [&](const auto&) { ++heard; });
  }
  AppendNumbered(store, 1);
  EXPECT_EQ(heard, 0);
  ASSERT_THAT(tasks, ::testing::SizeIs(1));
  tasks.front()();
  EXPECT_EQ(heard, 100);
  store.Close(absl::NotFoundError("gone"));
  EXPECT_EQ(heard, 100);
  ASSERT_THAT(tasks, ::testing::SizeIs(2));
  tasks.back()();
  EXPECT_EQ(heard, 200);
}

TEST(StoreTest, AStoreUnderItsNewNameGoesOnWhereTheOldOneEnds) {
  Store store = NewStore({.name = "old", .key_dim = 1, .value_dim = 1});
  AppendNumbered(store, 3);
  store.editor().Update([](StoreConfig& config) { config.name = "new"; });
  const std::shared_ptr<Store> renamed = store.HandOver();
  EXPECT_EQ(renamed->number(), store.number());
  EXPECT_EQ(renamed->create_time(), store.create_time());
  EXPECT_EQ(renamed->snapshot()->config().name, "new");
  EXPECT_EQ(renamed->snapshot()->revision(), 3u);
  AppendNumbered(*renamed, 1);
  EXPECT_EQ(renamed->snapshot()->row_count(), 4u);
  EXPECT_EQ(store.snapshot()->config().name, "old");
  EXPECT_EQ(store.snapshot()->row_count(), 3u);
  renamed->editor().Rollback();
  EXPECT_EQ(renamed->editor().newest(), renamed->snapshot()) << "what was handed over is final";
}

TEST(StoreTest, WaitingEndsWithCancellationAndWithTheStore) {
  Store store = NewStore({.name = "s", .key_dim = 1, .value_dim = 1});
  std::vector<absl::Status> heard;
  const auto hear = [&heard](absl::Status status) { heard.push_back(status); };
  const auto cancelled = std::make_shared<CancelToken>(), patient = std::make_shared<CancelToken>();
  store.WhenRevision(9, cancelled, hear);
  store.WhenRevision(9, patient, hear);
  cancelled->Cancel();
  ASSERT_THAT(heard, ::testing::SizeIs(1));
  EXPECT_THAT(heard[0], StatusIs(absl::StatusCode::kCancelled, ""));
  store.Close(absl::NotFoundError("gone"));
  ASSERT_THAT(heard, ::testing::SizeIs(2));
  EXPECT_THAT(heard[1], StatusIs(absl::StatusCode::kNotFound, "gone"));
  store.WhenRevision(9, patient, hear);
  EXPECT_THAT(heard, ::testing::SizeIs(3));
}

}  // namespace
}  // namespace softlookup
