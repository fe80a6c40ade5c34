#include "server/router/seen_revisions.h"

namespace softlookup::server {

void SeenRevisions::Note(absl::string_view store, std::uint64_t revision) {
  if (revision == 0) return;
  absl::MutexLock lock(&mutex_);
  // Answers of nodes that are behind must not keep the entry.
  const auto found = entries_.find(store);
  if (found != entries_.end() && revision <= found->second.revision) return;
  if (Entry* const entry = Keep(store); entry != nullptr) entry->revision = revision;
}

void SeenRevisions::Replace(absl::string_view store) {
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Keep(store);
  if (entry == nullptr) return;
  entry->revision = 0;
  entry->replaced_until = step_ + kStepsKept;
}

SeenRevisions::Entry* SeenRevisions::Keep(absl::string_view store) {
  auto found = entries_.find(store);
  const bool is_new = found == entries_.end();
  if (is_new) {
    if (entries_.size() >= stores_max_) {
      full_until_ = step_ + kStepsKept;
      return nullptr;
    }
    found = entries_.emplace(store, Entry{}).first;
  }
  Entry& entry = found->second;
  if (is_new || entry.step != step_) order_.emplace_back(step_, found->first);
  entry.step = step_;
  return &entry;
}

std::optional<std::uint64_t> SeenRevisions::Needed(absl::string_view store) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(store);
  if (found != entries_.end() && found->second.replaced_until <= step_) {
    return found->second.revision;
  }
  if (found != entries_.end()) return std::nullopt;
  if (step_ < full_until_) return std::nullopt;
  return 0;
}

void SeenRevisions::Advance() {
  absl::MutexLock lock(&mutex_);
  ++step_;
  while (!order_.empty() && order_.front().first + kStepsKept <= step_) {
    const auto found = entries_.find(order_.front().second);
    if (found != entries_.end() && found->second.step == order_.front().first) {
      entries_.erase(found);
    }
    order_.pop_front();
  }
}

}  // namespace softlookup::server
