#include "core/engine/range_residency.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/base/status_macros.h"
#include "core/engine/appender.h"
#include "core/engine/read_blocks.h"
#include "core/store/kept_ranges.h"
#include "core/store/snapshot.h"
#include "core/store/store_editor.h"
#include "softlookup/store_ranges.h"

namespace softlookup {
namespace {

// About how many bytes of rows are loaded at once. Writes wait while their sketches are made.
constexpr std::int64_t kBytesOfOneLoad = std::int64_t{16} << 20;
// How long the thread rests after it has looked at a store, so that a store that is written to all
// the time is looked at for many writes at once.
constexpr absl::Duration kRest = absl::Milliseconds(50);
// How many times as long as a load the rest after it takes, and the longest rest. Lookups have the
// cores and the disk for most of the time.
constexpr int kRestPerLoad = 4;
constexpr absl::Duration kLoadRestMax = absl::Milliseconds(500);
// How long it rests if a store has to be looked at again.
constexpr absl::Duration kRestAfterError = absl::Seconds(1);

// A change of what is in RAM. It changes no revision, and puts no records.
class ResidencyWrite final : public Write {
 public:
  ResidencyWrite(CountedStores& stores, std::shared_ptr<Store> store,
                 absl::FunctionRef<void(StoreEditor&)> change, absl::Notification& done,
                 absl::Status& status)
      : stores_(stores), store_(std::move(store)), change_(change), done_(done), status_(status) {}

  bool alone() const override { return true; }
  bool is_in_log() const override { return true; }
  absl::Status Stage(LogBatch*) override { return absl::OkStatus(); }
  void Publish() override {
    const std::shared_ptr<const Snapshot> shown = store_->snapshot();
    const auto current = stores_.table.Find("store", shown->config().name);
    // It was deleted, or renamed and then queued again.
    if (!current.ok() || *current != store_) return;
    StoreEditor& editor = store_->editor();
    change_(editor);
    stores_.budget.Add(static_cast<std::int64_t>(editor.newest()->byte_size()) -
                       static_cast<std::int64_t>(shown->byte_size()));
    store_->Publish(editor.newest());
  }
  void Rollback() override {}
  void Answer(absl::Status status) override {
    status_ = std::move(status);
    done_.Notify();
  }

 private:
  CountedStores& stores_;
  const std::shared_ptr<Store> store_;
  const absl::FunctionRef<void(StoreEditor&)> change_;
  absl::Notification& done_;
  absl::Status& status_;
};

// Which blocks of a snapshot are to be evicted, and which to be loaded.
class BlockPlan {
 public:
  BlockPlan(const Snapshot& snapshot, const std::string& node)
      : blocks_(snapshot.stored_blocks()),
        kept_(snapshot.config(), node),
        step_(static_cast<std::int64_t>(RangeStep(snapshot.config())) / blocks_.block_rows()) {}

  // Full blocks.
  std::int64_t block_count() const { return blocks_.row_count() / blocks_.block_rows(); }
  // Only whole steps of ranges are evicted, so that not each block that fills up is a change of its
  // own.
  bool Evicts(std::int64_t index) const {
    return index < block_count() / step_ * step_ && blocks_.IsResident(index) && !IsKept(index);
  }
  bool EvictsAny() const {
    for (std::int64_t index = 0; !kept_.has_all() && index < block_count(); ++index) {
      if (Evicts(index)) return true;
    }
    return false;
  }
  bool Loads(std::int64_t index) const { return !blocks_.IsResident(index) && IsKept(index); }
  // Returns the end of the blocks that are loaded at once from block `begin` on. The blocks of a
  // step share the balls of their keys, so they are loaded together.
  std::int64_t EndOfLoad(std::int64_t begin) const {
    const std::int64_t step_bytes = step_ * blocks_.block_rows() * blocks_.shape().row_bytes();
    const std::int64_t steps = std::max<std::int64_t>(1, kBytesOfOneLoad / step_bytes);
    return std::min(block_count(), (begin / step_ + steps) * step_);
  }

 private:
  bool IsKept(std::int64_t index) const {
    return kept_.Has(static_cast<std::uint64_t>(index * blocks_.block_rows()));
  }

  const StoredBlocks& blocks_;
  const KeptRanges kept_;
  const std::int64_t step_;
};

}  // namespace

RangeResidency::RangeResidency(CountedStores& stores, const CommitLog& log, Committer& committer,
                               std::shared_ptr<EngineObserver> observer, const Clock& clock)
    : stores_(stores),
      log_(log),
      committer_(committer),
      observer_(std::move(observer)),
      clock_(clock) {
  stores_.residency_queue.Open();
  thread_ = std::thread([this] { Run(); });
}

RangeResidency::~RangeResidency() {
  stores_.residency_queue.Close();
  cancel_.Cancel();
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  thread_.join();
}

void RangeResidency::Run() {
  while (const std::shared_ptr<Store> store = stores_.residency_queue.Take()) {
    const absl::Status status = LookAt(store);
    if (status.ok()) {
      failing_.erase(store->number());
      Rest(kRest);
      continue;
    }
    const bool is_new = failing_.insert(store->number()).second;
    if (is_new && observer_ != nullptr && !absl::IsCancelled(status)) {
      observer_->OnRowsNotLoaded(store->snapshot()->config().name, status);
    }
    Rest(kRestAfterError);
    stores_.residency_queue.Add(store);
  }
}

absl::Status RangeResidency::LookAt(const std::shared_ptr<Store>& store) {
  SOFTLOOKUP_RETURN_IF_ERROR(EvictOthers(store));
  return LoadSome(store);
}

absl::Status RangeResidency::EvictOthers(const std::shared_ptr<Store>& store) {
  {
    // Not held while rows are evicted: it would keep them.
    const std::shared_ptr<const Snapshot> snapshot = store->snapshot();
    const BlockPlan plan(*snapshot, stores_.node);
    if (!plan.EvictsAny()) return absl::OkStatus();
  }
  std::uint64_t revision = 0;
  std::int64_t bytes = 0;
  SOFTLOOKUP_RETURN_IF_ERROR(Change(store, [&](StoreEditor& editor) {
    // The ranges may have changed by now.
    const std::shared_ptr<const Snapshot> snapshot = editor.newest();
    const BlockPlan plan(*snapshot, stores_.node);
    editor.Evict([&plan](std::int64_t index) { return plan.Evicts(index); });
    revision = snapshot->revision();
    bytes = static_cast<std::int64_t>(snapshot->byte_size()) -
            static_cast<std::int64_t>(editor.newest()->byte_size());
  }));
  if (bytes > 0) stores_.kept_snapshots.OnEvicted(*store, revision, bytes);
  return absl::OkStatus();
}

absl::Status RangeResidency::LoadSome(const std::shared_ptr<Store>& store) {
  const absl::Time start = clock_.Now();
  {
    // Not held while the thread rests: it would keep what is evicted and compacted meanwhile.
    const std::shared_ptr<const Snapshot> snapshot = store->snapshot();
    const BlockPlan plan(*snapshot, stores_.node);
    std::int64_t begin = 0;
    while (begin < plan.block_count() && !plan.Loads(begin)) ++begin;
    if (begin == plan.block_count()) return absl::OkStatus();
    std::int64_t end = begin + 1;
    while (end < plan.EndOfLoad(begin) && plan.Loads(end)) ++end;
    SOFTLOOKUP_RETURN_IF_ERROR(Load(store, *snapshot, begin, end));
  }
  Rest(std::min(kRestPerLoad * (clock_.Now() - start), kLoadRestMax));
  stores_.residency_queue.Add(store);
  return absl::OkStatus();
}

absl::Status RangeResidency::Load(const std::shared_ptr<Store>& store, const Snapshot& snapshot,
                                  std::int64_t begin, std::int64_t end) {
  const StoredBlocks& blocks = snapshot.stored_blocks();
  const std::int64_t bytes = (end - begin) * blocks.block_rows() * blocks.shape().row_bytes();
  SOFTLOOKUP_RETURN_IF_ERROR(stores_.CheckRoom(bytes, /*own_reserved_bytes=*/0));
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::vector<StoreEditor::ReadBlock> read,
                              ReadBlocks(log_, store->number(), snapshot, begin, end, cancel_));
  return Change(store, [&](StoreEditor& editor) { editor.Load(std::move(read)); });
}

absl::Status RangeResidency::Change(const std::shared_ptr<Store>& store,
                                    absl::FunctionRef<void(StoreEditor&)> change) {
  absl::Status status;
  absl::Notification done;
  if (!committer_.Post(std::make_unique<ResidencyWrite>(stores_, store, change, done, status),
                       Committer::MayBlock::kYes)) {
    return WriteQueueFull();
  }
  done.WaitForNotification();
  return status;
}

void RangeResidency::Rest(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  clock_.AwaitUntil(mutex_, absl::Condition(&closed_), clock_.Now() + time);
}

}  // namespace softlookup
