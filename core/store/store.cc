#include "core/store/store.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/store/row_selection.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;

constexpr std::int64_t kBlockBytesMax = std::int64_t{512} << 10;

// A sealed block with at most this part of its rows live has them packed, too.
constexpr std::int64_t kPackedPart = 4;

std::uint64_t NextIncarnation() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

std::int64_t BlockRows(const kernels::PanelShape& shape) {
  std::int64_t rows = kernels::kBlockRowsMax;
  while (rows > kPanelRows && rows / kPanelRows * shape.floats() * 4 > kBlockBytesMax) rows /= 2;
  return rows;
}

class Store::Waiter {
 public:
  Waiter(std::uint64_t revision, absl::AnyInvocable<void(absl::Status)> callback)
      : revision_(revision), callback_(std::move(callback)) {}

  std::uint64_t revision() const { return revision_; }
  bool done() const { return done_.load(); }
  void Finish(const absl::Status& status) {
    if (done_.exchange(true)) return;
    std::exchange(callback_, nullptr)(status);
  }

 private:
  const std::uint64_t revision_;
  std::atomic<bool> done_{false};
  absl::AnyInvocable<void(absl::Status)> callback_;  // Belongs to whoever sets done_.
};

Store::Store(StoreConfig config, absl::Time create_time)
    : incarnation_(NextIncarnation()),
      create_time_(create_time),
      shape_{.key_dim = config.key_dim, .value_dim = config.value_dim},
      block_rows_(BlockRows(shape_)) {
  absl::MutexLock lock(&writer_mutex_);
  config_ = std::make_shared<const StoreConfig>(std::move(config));
  std::vector<std::shared_ptr<Waiter>> nobody;
  Publish(nobody);
}

std::shared_ptr<const Snapshot> Store::snapshot() const {
  absl::MutexLock lock(&snapshot_mutex_);
  return snapshot_;
}

StoreInfo Store::InfoOf(const Snapshot& snapshot) const {
  return {.config = snapshot.config(),
          .revision = snapshot.revision(),
          .row_count = snapshot.row_count(),
          .live_row_count = snapshot.live_row_count(),
          .byte_size = snapshot.byte_size(),
          .create_time = create_time_};
}

absl::StatusOr<AppendOutcome> Store::Append(const RowBatch& batch) {
  AppendOutcome outcome;
  absl::Status status;
  outcome.snapshot = Write([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_) {
    const absl::StatusOr<std::vector<bool>> admitted = Admit(batch);
    status = admitted.status();
    outcome.first_position = RowCount();
    if (!status.ok()) return false;
    for (std::int64_t row = 0; row < batch.keys.rows; ++row) {
      if (!(*admitted)[row]) continue;
      TagRow(batch, row);
      AppendRow(batch.keys.row(row), batch.values.row(row));
      ++outcome.appended_count;
    }
    return outcome.appended_count > 0;
  });
  if (!status.ok()) return status;
  return outcome;
}

absl::StatusOr<std::vector<bool>> Store::Admit(const RowBatch& batch) {
  std::vector<bool> admitted(batch.keys.rows, true);
  std::vector<std::uint64_t> replaced;
  for (std::size_t row = 0; row < batch.ids.size(); ++row) {
    const auto found = live_ids_.find(batch.ids[row]);
    if (found == live_ids_.end()) continue;
    if (batch.on_conflict == OnConflict::kSkip) {
      admitted[row] = false;
    } else if (batch.on_conflict == OnConflict::kReplace) {
      replaced.push_back(found->second);
    } else {
      return MakeError(reasons::kRowExists,
                       absl::StrCat("ids: row ", row, ": a live row has the id ", batch.ids[row],
                                    ", at position ", found->second),
                       {{"field", "ids"},
                        {"row", absl::StrCat(row)},
                        {"id", absl::StrCat(batch.ids[row])},
                        {"position", absl::StrCat(found->second)}});
    }
  }
  std::sort(replaced.begin(), replaced.end());
  DeletePositions(replaced);
  return admitted;
}

void Store::TagRow(const RowBatch& batch, std::int64_t row) {
  const bool has_id = !batch.ids.empty();
  const bool has_labels = !batch.row_labels.empty() && !batch.row_labels[row].empty();
  if (!has_id && !has_labels) return;
  if (growing_tags_ == nullptr) {
    growing_tags_ = tail_tags_ == nullptr ? std::make_unique<RowTags>()
                                          : std::make_unique<RowTags>(*tail_tags_);
  }
  std::vector<std::uint32_t> labels;
  if (has_labels) {
    if (labels_ == nullptr) labels_ = std::make_shared<LabelDictionary>();
    for (const std::string& label : batch.row_labels[row]) labels.push_back(labels_->Intern(label));
  }
  std::optional<std::uint64_t> id;
  if (has_id) {
    id = batch.ids[row];
    live_ids_[*id] = RowCount();
  }
  growing_tags_->Add(tail_rows_, id, std::move(labels));
}

absl::StatusOr<DeleteOutcome> Store::Delete(const RowFilter& filter) {
  DeleteOutcome outcome;
  absl::Status status;
  outcome.snapshot = Write([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_) {
    const std::shared_ptr<const Snapshot> now = snapshot();
    const absl::StatusOr<RowSelection> selection = RowSelection::Make(*now, filter, "filter.");
    status = selection.status();
    if (!status.ok()) return false;
    std::vector<std::uint64_t> positions;
    for (const PositionedBlock& block : selection->blocks()) {
      for (std::int64_t row = 0; row < block.view.row_count; ++row) {
        if (selection->Contains(block, row)) positions.push_back(block.PositionOf(row));
      }
    }
    DeletePositions(positions);
    outcome.deleted_count = positions.size();
    return !positions.empty();
  });
  if (!status.ok()) return status;
  return outcome;
}

void Store::DeletePositions(absl::Span<const std::uint64_t> positions) {
  if (positions.empty()) return;
  deleted_count_ += positions.size();
  const std::uint64_t tail_begin = RowCount() - static_cast<std::uint64_t>(tail_rows_);
  auto next = positions.begin();
  // Takes the positions of the block that begins at `begin` out of a copy of `live`.
  const auto clear = [&](std::uint64_t begin, const RowTags* tags,
                         std::shared_ptr<const RowMask>& live) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    RowMask mask = live == nullptr ? RowMask::All() : *live;
    for (; next != positions.end() && *next < begin + static_cast<std::uint64_t>(block_rows_);
         ++next) {
      const std::int64_t row = static_cast<std::int64_t>(*next - begin);
      mask.Clear(row);
      const auto id = tags == nullptr ? std::nullopt : tags->id(row);
      if (id) live_ids_.erase(*id);
    }
    live = std::make_shared<const RowMask>(mask);
  };
  const auto clear_sealed = [&](std::uint64_t begin, SealedBlock& block)
                                ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                  clear(begin, block.tags.get(), block.live);
                                  PackIfFewAreLive(block);
                                };
  // One block's list is copied in part, many blocks' at once.
  const auto block_of = [&](std::uint64_t position) {
    return static_cast<std::int64_t>(position) / block_rows_;
  };
  if (block_of(positions.front()) == block_of(positions.back())) {
    const std::int64_t index = block_of(positions.front());
    if (index < sealed_.size()) {
      SealedBlock block = sealed_[index];
      clear_sealed(static_cast<std::uint64_t>(index * block_rows_), block);
      sealed_.Set(index, std::move(block));
    }
  } else {
    sealed_.Transform([&](std::int64_t index, SealedBlock& block) {
      if (next != positions.end() && block_of(*next) == index) {
        clear_sealed(static_cast<std::uint64_t>(index * block_rows_), block);
      }
    });
  }
  if (next != positions.end()) clear(tail_begin, tail_tags_.get(), tail_live_);
}

void Store::PackIfFewAreLive(SealedBlock& block) {
  if (block.live == nullptr) return;
  if (block.live->CountFirst(block_rows_) > block_rows_ / kPackedPart) return;
  if (block.packed != nullptr) packed_bytes_ -= block.packed->bytes();
  block.packed = PackLiveRows(*block.panels, shape_, block_rows_, *block.live);
  packed_bytes_ += block.packed->bytes();
}

std::shared_ptr<const Snapshot> Store::Update(absl::FunctionRef<void(StoreConfig&)> change) {
  return Write([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_) {
    StoreConfig config = *config_;
    change(config);
    config_ = std::make_shared<const StoreConfig>(std::move(config));
    return true;
  });
}

template <typename Body>
std::shared_ptr<const Snapshot> Store::Write(const Body& body) {
  std::shared_ptr<const Snapshot> snapshot;
  std::vector<std::shared_ptr<Waiter>> reached;
  {
    absl::MutexLock lock(&writer_mutex_);
    if (!body()) return this->snapshot();
    snapshot = Publish(reached);
  }
  for (const auto& waiter : reached) waiter->Finish(absl::OkStatus());
  return snapshot;
}

// Makes room for one more panel in the tail. Its old memory stays with the snapshots that show it.
void Store::StartTail() {
  const std::int64_t panels = tail_rows_ / kPanelRows;
  if (tail_panels_ != nullptr && panels < tail_panels_->panel_count()) return;
  const std::int64_t capacity = std::clamp<std::int64_t>(2 * panels, 1, block_rows_ / kPanelRows);
  auto larger = std::make_shared<PanelBuffer>(shape_, capacity);
  if (panels > 0) {
    std::memcpy(larger->panel(0), tail_panels_->panel(0), panels * shape_.floats() * 4);
  }
  tail_panels_ = std::move(larger);
}

void Store::AppendRow(const float* key, const float* value) {
  if (memories_ == nullptr) memories_ = std::make_unique<MemorySet>(MemorySetOf(*config_));
  if (tail_rows_ == 0) memories_before_tail_ = std::make_shared<const MemorySet>(*memories_);
  if (partial_panel_ == nullptr) {
    partial_panel_ = std::make_shared<PanelBuffer>(shape_, 1);
  } else if (partial_panel_shown_) {
    partial_panel_ = std::make_shared<PanelBuffer>(*partial_panel_);
    partial_panel_shown_ = false;
  }

  float* panel = partial_panel_->panel(0);
  const std::int64_t lane = tail_rows_ % kPanelRows;
  std::memcpy(panel + shape_.value_offset(lane), value, shape_.value_dim * 4);
  float* keys = panel + shape_.key_offset(lane, 0);
  for (std::int64_t dim = 0; dim < shape_.key_dim; ++dim) keys[dim * kPanelRows] = key[dim];
  tail_bounds_.Add(key, value, *config_);
  memories_->Add(key, 1, value);
  if (lane == kPanelRows - 1) {
    StartTail();
    std::memcpy(tail_panels_->panel(tail_rows_ / kPanelRows), panel, shape_.floats() * 4);
    // This copy is the writer's alone: see above.
    std::memset(panel, 0, shape_.floats() * 4);
  }
  ++tail_rows_;
  if (tail_rows_ == block_rows_) SealTail();
}

void Store::SealTail() {
  if (growing_tags_ != nullptr) tail_tags_ = std::move(growing_tags_);
  if (tail_tags_ != nullptr) tag_bytes_ += tail_tags_->bytes();
  SealedBlock block{.panels = std::move(tail_panels_),
                    .bounds = std::make_shared<const RowBounds>(std::move(tail_bounds_)),
                    .memories_before = std::move(memories_before_tail_),
                    .tags = std::move(tail_tags_),
                    .live = std::move(tail_live_)};
  PackIfFewAreLive(block);
  sealed_.push_back(std::move(block));
  tail_panels_ = nullptr;
  memories_before_tail_ = nullptr;
  tail_tags_ = nullptr;
  tail_live_ = nullptr;
  tail_bounds_ = {};
  tail_rows_ = 0;
}

std::shared_ptr<const Snapshot> Store::Publish(std::vector<std::shared_ptr<Waiter>>& reached) {
  if (growing_tags_ != nullptr) tail_tags_ = std::move(growing_tags_);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->config_ = config_;
  snapshot->shape_ = shape_;
  snapshot->block_rows_ = block_rows_;
  snapshot->revision_ = ++revision_;
  snapshot->sealed_ = sealed_;
  TailView& tail = snapshot->tail_;
  tail.full_panels = tail_panels_;
  tail.full_panel_count = tail_rows_ / kPanelRows;
  tail.row_count = tail_rows_;
  if (tail_rows_ > 0) tail.bounds = std::make_shared<const RowBounds>(tail_bounds_);
  tail.memories_before = memories_before_tail_;
  tail.tags = tail_tags_;
  tail.live = tail_live_;
  snapshot->labels_ = labels_;
  snapshot->deleted_count_ = deleted_count_;
  if (tail_rows_ % kPanelRows != 0) {
    tail.partial_panel = partial_panel_;
    partial_panel_shown_ = true;
  }
  snapshot->byte_size_ = static_cast<std::uint64_t>(ByteSize());

  absl::MutexLock lock(&snapshot_mutex_);
  snapshot_ = snapshot;
  const auto waits = std::partition(waiters_.begin(), waiters_.end(), [&](const auto& waiter) {
    return waiter->revision() > snapshot->revision_;
  });
  reached.assign(waits, waiters_.end());
  waiters_.erase(waits, waiters_.end());
  return snapshot;
}

std::int64_t Store::ByteSize() const {
  const std::int64_t memory_bytes = memories_ == nullptr ? 0 : memories_->bytes();
  const std::int64_t bounds_bytes = config_->num_heads * 4;
  std::int64_t bytes = static_cast<std::int64_t>(sizeof(Store) + sizeof(Snapshot));
  bytes += sealed_.size() * (block_rows_ / kPanelRows * shape_.floats() * 4 + memory_bytes +
                             bounds_bytes + static_cast<std::int64_t>(sizeof(SealedBlock)));
  if (tail_panels_ != nullptr) bytes += tail_panels_->bytes();
  if (partial_panel_ != nullptr) bytes += partial_panel_->bytes();
  bytes += packed_bytes_ + tag_bytes_ + static_cast<std::int64_t>(live_ids_.capacity() * 17);
  if (tail_tags_ != nullptr) bytes += tail_tags_->bytes();
  if (labels_ != nullptr) bytes += labels_->bytes();
  return bytes + (tail_rows_ > 0 ? 2 : 1) * memory_bytes;
}

void Store::WhenRevision(std::uint64_t revision, std::shared_ptr<CancelToken> cancel,
                         absl::AnyInvocable<void(absl::Status)> callback) {
  const auto waiter = std::make_shared<Waiter>(revision, std::move(callback));
  absl::Status status;
  bool waits = false;
  {
    absl::MutexLock lock(&snapshot_mutex_);
    status = closed_;
    waits = status.ok() && snapshot_->revision() < revision;
    if (waits) {
      // Those that were cancelled meanwhile go whenever the list has doubled.
      if (waiters_.size() >= waiters_before_sweep_) {
        waiters_.erase(std::remove_if(waiters_.begin(), waiters_.end(),
                                      [](const auto& other) { return other->done(); }),
                       waiters_.end());
        waiters_before_sweep_ = 2 * waiters_.size() + 16;
      }
      waiters_.push_back(waiter);
    }
  }
  if (!waits) return waiter->Finish(status);
  cancel->OnCancel([waiter, cancel = cancel.get()] { waiter->Finish(cancel->Check()); });
}

void Store::Close(absl::Status status) {
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    absl::MutexLock lock(&snapshot_mutex_);
    closed_ = status;
    waiters.swap(waiters_);
  }
  for (const auto& waiter : waiters) waiter->Finish(status);
}

}  // namespace softlookup
