#include "core/engine/kept_snapshots.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "softlookup/partial_lookup.h"

namespace softlookup {
namespace {

// How often old snapshots are dropped if no call comes.
constexpr absl::Duration kDropInterval = absl::Seconds(1);

}  // namespace

absl::Status SnapshotGone(const Store& store, absl::string_view message) {
  return MakeError(kSnapshotGone, message,
                   {{"revision", absl::StrCat(store.snapshot()->revision())},
                    {"incarnation", absl::StrCat(store.number())}});
}

std::int64_t KeptSnapshots::BytesMax(std::int64_t ram_bytes_max) {
  constexpr std::int64_t kBytesMax = std::int64_t{256} << 20;
  // A small part of the budget, because appends may be refused for these bytes.
  constexpr std::int64_t kBudgetPart = 64;
  return ram_bytes_max > 0 ? std::min(kBytesMax, ram_bytes_max / kBudgetPart) : kBytesMax;
}

KeptSnapshots::KeptSnapshots(std::int64_t bytes_max, ByteBudget& budget, const Clock& clock)
    : bytes_max_(bytes_max), budget_(budget), clock_(clock) {}

KeptSnapshots::~KeptSnapshots() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void KeptSnapshots::OnAsked(const Store& store) {
  absl::MutexLock lock(&mutex_);
  asked_[store.number()] = clock_.Now();
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

absl::StatusOr<std::shared_ptr<const Snapshot>> KeptSnapshots::Find(const Store& store,
                                                                    std::uint64_t revision) const {
  std::shared_ptr<const Snapshot> newest = store.snapshot();
  if (newest->revision() == revision) return newest;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = kept_.find({store.number(), revision});
    if (found != kept_.end()) return found->second.snapshot;
  }
  return SnapshotGone(store, absl::StrCat("The store is at revision ", newest->revision(),
                                          ", and does not keep revision ", revision));
}

void KeptSnapshots::Keep(const Store& store, const Snapshot& next) {
  const absl::Time now = clock_.Now();
  if (!WasAsked(store, now)) return;
  std::shared_ptr<const Snapshot> snapshot = store.snapshot();
  const std::uint64_t revision = snapshot->revision();
  if (revision == next.revision()) return;
  const std::int64_t bytes = snapshot->BytesNotIn(next);
  Dropped dropped;
  absl::MutexLock lock(&mutex_);
  DropOld(dropped);
  // To drop others would not help, and would end the lookups that read them.
  if (bytes > bytes_max_) return;
  if (!BudgetHas(bytes)) DropEvictedUntil(absl::InfiniteFuture(), dropped);
  while (!HasRoomFor(bytes) && !places_.empty()) DropOldest(dropped);
  if (!HasRoomFor(bytes)) return;
  if (revision > kCountMax) DropOne({store.number(), revision - kCountMax}, dropped);
  const Key key(store.number(), revision);
  kept_.emplace(key, Kept{.snapshot = std::move(snapshot),
                          .bytes = bytes,
                          .reserved = ByteBudget::Reserved(budget_, bytes)});
  bytes_ += bytes;
  places_.push_back({.key = key, .end = now + kTimeMax});
}

void KeptSnapshots::OnEvicted(const Store& store, std::uint64_t revision, std::int64_t bytes) {
  const absl::Time end = clock_.Now() + kEvictedTime;
  const Key key(store.number(), revision);
  Dropped dropped;
  absl::MutexLock lock(&mutex_);
  const auto oldest = kept_.lower_bound({key.first, 0});
  if (oldest == kept_.end() || oldest->first >= key) return;
  evictions_.push_back({.key = key, .end = end, .reserved = ByteBudget::Reserved(budget_, bytes)});
  // A write can check the budget at the same time.
  if (budget_.Check(/*growth=*/0, /*own_reserved_bytes=*/bytes).ok()) return;
  DropBefore(key, dropped);
  evictions_.pop_back();
}

void KeptSnapshots::DropEvicted() {
  Dropped dropped;
  absl::MutexLock lock(&mutex_);
  DropEvictedUntil(absl::InfiniteFuture(), dropped);
}

void KeptSnapshots::Drop(const Store& store) {
  Dropped dropped;
  absl::MutexLock lock(&mutex_);
  asked_.erase(store.number());
  DropBefore({store.number(), std::numeric_limits<std::uint64_t>::max()}, dropped);
  std::erase_if(evictions_, [&store](const Eviction& eviction) {
    return eviction.key.first == store.number();
  });
}

bool KeptSnapshots::WasAsked(const Store& store, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto asked = asked_.find(store.number());
  return asked != asked_.end() && asked->second + kTimeMax > now;
}

bool KeptSnapshots::BudgetHas(std::int64_t bytes) const {
  return budget_.Check(/*growth=*/bytes, /*own_reserved_bytes=*/0).ok();
}

bool KeptSnapshots::HasRoomFor(std::int64_t bytes) const {
  return bytes_ + bytes <= bytes_max_ && BudgetHas(bytes);
}

void KeptSnapshots::DropOld(Dropped& dropped) {
  const absl::Time now = clock_.Now();
  while (!places_.empty() && places_.front().end <= now) DropOldest(dropped);
}

void KeptSnapshots::DropEvictedUntil(absl::Time end, Dropped& dropped) {
  for (; !evictions_.empty() && evictions_.front().end <= end; evictions_.pop_front()) {
    DropBefore(evictions_.front().key, dropped);
  }
}

void KeptSnapshots::DropOldest(Dropped& dropped) {
  DropOne(places_.front().key, dropped);
  places_.pop_front();
}

void KeptSnapshots::DropOne(const Key& key, Dropped& dropped) {
  const auto kept = kept_.find(key);
  if (kept == kept_.end()) return;
  bytes_ -= kept->second.bytes;
  dropped.push_back(std::move(kept->second.snapshot));
  kept_.erase(kept);
}

void KeptSnapshots::DropBefore(const Key& key, Dropped& dropped) {
  auto kept = kept_.lower_bound({key.first, 0});
  while (kept != kept_.end() && kept->first < key) {
    const Key one = (kept++)->first;
    DropOne(one, dropped);
  }
}

void KeptSnapshots::Run() {
  const auto is_needed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ || !asked_.empty() || !kept_.empty() || !evictions_.empty();
  };
  for (;;) {
    Dropped dropped;
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_needed));
    clock_.AwaitUntil(mutex_, absl::Condition(&closed_), clock_.Now() + kDropInterval);
    if (closed_) return;
    DropOld(dropped);
    const absl::Time now = clock_.Now();
    DropEvictedUntil(now, dropped);
    absl::erase_if(asked_, [now](const auto& asked) { return asked.second + kTimeMax <= now; });
  }
}

}  // namespace softlookup
