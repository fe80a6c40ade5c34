#include "core/engine/waiting_stores.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/engine/compactor.h"
#include "core/store/store_editor.h"

namespace softlookup {
namespace {

constexpr std::int64_t kBlockRows = 1024;  // Of rows as small as these.

std::unique_ptr<StoreEditor> NewEditor() {
  return std::make_unique<StoreEditor>(StoreConfig{.name = "s", .key_dim = 1, .value_dim = 1});
}

std::shared_ptr<Store> NewStore(std::uint64_t number) {
  return std::make_shared<Store>(number, NewEditor(), absl::Now(), nullptr);
}

void AppendRows(StoreEditor& editor, std::int64_t count) {
  const std::vector<float> ones(static_cast<std::size_t>(count), 1);
  const MatrixView rows{.data = ones.data(), .rows = count, .cols = 1};
  ASSERT_TRUE(editor.Append({.keys = rows, .values = rows}).ok());
}

TEST(WaitingStoresTest, StoresComeInTheirOrderAndOnceEach) {
  WaitingStores queue;
  queue.Open();
  const auto a = NewStore(1), b = NewStore(2);
  queue.Add(a);
  queue.Add(b);
  queue.Add(a);
  EXPECT_EQ(queue.Take(), a);
  queue.Add(a);  // It was taken, so this is news.
  EXPECT_EQ(queue.Take(), b);
  EXPECT_EQ(queue.Take(), a);
  queue.Close();
  EXPECT_EQ(queue.Take(), nullptr);
}

TEST(WaitingStoresTest, NothingIsQueuedBeforeItIsOpenAndOnceItIsClosed) {
  WaitingStores queue;
  const auto a = NewStore(1), b = NewStore(2);
  queue.Add(a);
  queue.Open();
  queue.Add(b);
  EXPECT_EQ(queue.Take(), b);
  queue.Add(b);
  queue.Close();
  queue.Add(a);
  EXPECT_EQ(queue.Take(), nullptr);
  EXPECT_EQ(a.use_count() + b.use_count(), 2);
}

TEST(WaitingStoresTest, AStoreThatIsGoneIsSkipped) {
  WaitingStores queue;
  queue.Open();
  queue.Add(NewStore(1));
  const auto b = NewStore(2);
  queue.Add(b);
  EXPECT_EQ(queue.Take(), b);
}

TEST(WaitingStoresTest, ARenamedStoreTakesThePlaceOfItsOldSelf) {
  WaitingStores queue;
  queue.Open();
  const auto before = NewStore(1), other = NewStore(2), after = NewStore(1);
  queue.Add(before);
  queue.Add(other);
  queue.Add(after);
  EXPECT_EQ(queue.Take(), after);
  EXPECT_EQ(queue.Take(), other);
}

TEST(WaitingStoresTest, AddAndCloseEndTheWait) {
  WaitingStores queue;
  queue.Open();
  const auto a = NewStore(1);
  std::vector<std::shared_ptr<Store>> taken;
  std::thread taker([&] {
    do {
      taken.push_back(queue.Take());
    } while (taken.back() != nullptr);
  });
  queue.Add(a);
  queue.Close();
  taker.join();
  ASSERT_FALSE(taken.empty());  // Close() may have come first.
  EXPECT_EQ(taken.back(), nullptr);
}

TEST(MayDropMoreTest, DeletionsAndNewBlocksMay) {
  const std::unique_ptr<StoreEditor> editor = NewEditor();
  std::shared_ptr<const Snapshot> before = editor->newest();
  const auto may = [&] {
    const std::shared_ptr<const Snapshot> last = std::exchange(before, editor->newest());
    return MayDropMore(*last, *before);
  };
  AppendRows(*editor, kBlockRows + 1);
  EXPECT_FALSE(may()) << "no row is deleted";
  ASSERT_TRUE(editor->Delete({.begin = kBlockRows}).ok());
  EXPECT_TRUE(may());
  AppendRows(*editor, kBlockRows - 1);
  EXPECT_FALSE(may()) << "it is full, but still the last block";
  AppendRows(*editor, 1);
  EXPECT_TRUE(may());
  AppendRows(*editor, 1);
  EXPECT_FALSE(may());
  ASSERT_TRUE(editor->Delete({.begin = 1}).ok());
  EXPECT_TRUE(may());
  editor->Compact(0, 2);
  EXPECT_FALSE(may());
}

}  // namespace
}  // namespace softlookup
