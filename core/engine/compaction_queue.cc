#include "core/engine/compaction_queue.h"

#include <utility>

#include "core/base/check.h"

namespace softlookup {
namespace {

// Returns how many blocks have a row.
std::int64_t BlockCountOf(const Snapshot& snapshot) {
  const StoredBlocks& blocks = snapshot.stored_blocks();
  return (blocks.row_count() + blocks.block_rows() - 1) / blocks.block_rows();
}

}  // namespace

bool MayDropMore(const Snapshot& before, const Snapshot& after) {
  if (after.deleted_row_count() == 0) return false;
  // The last block loses no rows until there is another one behind it.
  return after.deleted_row_count() > before.deleted_row_count() ||
         BlockCountOf(after) > BlockCountOf(before);
}

void CompactionQueue::Open() {
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_CHECK(state_ == State::kNew) << "opened twice";
  state_ = State::kOpen;
}

void CompactionQueue::Close() {
  absl::MutexLock lock(&mutex_);
  state_ = State::kClosed;
  numbers_.clear();
  stores_.clear();
}

void CompactionQueue::Add(const std::shared_ptr<Store>& store) {
  absl::MutexLock lock(&mutex_);
  if (state_ != State::kOpen) return;
  const bool is_new = stores_.insert_or_assign(store->number(), store).second;
  if (is_new) numbers_.push_back(store->number());
}

std::shared_ptr<Store> CompactionQueue::Take() {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    mutex_.Await(absl::Condition(this, &CompactionQueue::HasNews));
    if (state_ == State::kClosed) return nullptr;
    const auto found = stores_.find(numbers_.front());
    SOFTLOOKUP_CHECK(found != stores_.end()) << "store " << numbers_.front() << " is lost";
    std::shared_ptr<Store> store = found->second.lock();
    stores_.erase(found);
    numbers_.pop_front();
    if (store != nullptr) return store;
  }
}

}  // namespace softlookup
