#ifndef SOFTLOOKUP_CORE_STORE_ROLLBACK_MAP_H_
#define SOFTLOOKUP_CORE_STORE_ROLLBACK_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/check.h"
#include "core/memory/heap_bytes.h"

namespace softlookup {

// A hash map whose changes can be rolled back until they are committed. Not thread-safe.
template <typename Key, typename Value>
class RollbackMap {
 public:
  std::size_t size() const { return values_.size(); }
  // Returns the value of `key`, or null if it has none. The pointer is valid until the next change.
  template <typename KeyView>
  const Value* Find(const KeyView& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }

  // Sets the value of `key`, or removes `key` if `value` is unset.
  void Set(const Key& key, std::optional<Value> value) {
    const auto found = values_.find(key);
    changes_.push_back(
        {.key = key,
         .before = found == values_.end() ? std::nullopt : std::optional<Value>(found->second)});
    if (!value) {
      if (found != values_.end()) values_.erase(found);
    } else if (found != values_.end()) {
      found->second = *std::move(value);
    } else {
      values_.emplace(key, *std::move(value));
    }
  }
  // Sets the value of `key` for good, as if it had been committed. There must be no changes since
  // the last commit.
  void SetCommitted(const Key& key, Value value) {
    SOFTLOOKUP_DCHECK(changes_.empty()) << changes_.size() << " changes are not committed";
    values_[key] = std::move(value);
  }

  // The number of changes since the last commit.
  std::size_t change_count() const { return changes_.size(); }
  // Makes the changes so far final, and frees the room that their list took.
  void Commit() { std::vector<Change>().swap(changes_); }
  // Undoes the newest changes until `change_count` changes since the last commit are left.
  void RollbackTo(std::size_t change_count) {
    for (; changes_.size() > change_count; changes_.pop_back()) {
      Change& change = changes_.back();
      if (change.before) {
        values_[change.key] = *std::move(change.before);
      } else {
        values_.erase(change.key);
      }
    }
  }
  // Shrinks the table if it is large and most of it is empty.
  void FreeUnusedRoom() {
    if (values_.capacity() > 64 && values_.size() < values_.capacity() / 4) values_.rehash(0);
  }

  // Returns the heap bytes of the table alone. What keys and values have allocated, and the list of
  // changes, do not count.
  std::int64_t bytes() const {
    return HashTableBytes(values_.capacity(), sizeof(*values_.begin()));
  }

 private:
  struct Change {
    Key key;
    std::optional<Value> before;  // Unset: the key had no value.
  };

  absl::flat_hash_map<Key, Value> values_;
  std::vector<Change> changes_;  // Changes since the last commit, in order.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_ROLLBACK_MAP_H_
