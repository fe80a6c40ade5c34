#include "server/router/ranged_stores.h"

#include <utility>

namespace softlookup::server {
namespace {

bool IsSame(const RangesAt& one, const RangesAt& other) {
  return one.revision == other.revision && one.incarnation == other.incarnation;
}

std::size_t CountOf(const std::shared_ptr<const RangesAt>& told) {
  return told == nullptr ? 0 : told->ranges.size();
}

}  // namespace

void RangedStores::Add(absl::string_view store) {
  absl::MutexLock lock(&mutex_);
  if (stores_.contains(store)) return;
  MakeRoomFor(/*stores=*/1, /*ranges=*/0);
  stores_.emplace(store, Entry{});
}

void RangedStores::Forget(absl::string_view store) {
  absl::MutexLock lock(&mutex_);
  const auto found = stores_.find(store);
  if (found == stores_.end()) return;
  range_count_ -= CountOf(found->second.told);
  stores_.erase(found);
}

bool RangedStores::Has(absl::string_view store) const {
  absl::ReaderMutexLock lock(&mutex_);
  return stores_.contains(store);
}

void RangedStores::OnBegun(absl::string_view store, std::shared_ptr<const RangesAt> told) {
  absl::MutexLock lock(&mutex_);
  const auto found = stores_.find(store);
  if (found == stores_.end()) return;  // It was forgotten meanwhile.
  Entry& entry = found->second;
  if (entry.told != nullptr && IsSame(*entry.told, *told)) {
    if (entry.same_count < kSteadyCount) ++entry.same_count;
    return;
  }
  range_count_ -= CountOf(std::exchange(entry.told, nullptr));
  MakeRoomFor(/*stores=*/0, told->ranges.size());
  range_count_ += told->ranges.size();
  stores_[store] = {.told = std::move(told), .same_count = 1};
}

void RangedStores::OnChanged(absl::string_view store, const RangesAt& told) {
  absl::MutexLock lock(&mutex_);
  const auto found = stores_.find(store);
  if (found == stores_.end() || found->second.told == nullptr) return;
  if (IsSame(*found->second.told, told)) found->second.same_count = 0;
}

std::shared_ptr<const RangesAt> RangedStores::Steady(absl::string_view store) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = stores_.find(store);
  if (found == stores_.end() || found->second.same_count < kSteadyCount) return nullptr;
  return found->second.told;
}

void RangedStores::MakeRoomFor(std::size_t stores, std::size_t ranges) {
  if (stores_.size() + stores <= stores_max_ && range_count_ + ranges <= ranges_max_) return;
  stores_.clear();
  range_count_ = 0;
}

}  // namespace softlookup::server
