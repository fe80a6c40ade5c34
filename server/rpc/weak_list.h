#ifndef SOFTLOOKUP_SERVER_RPC_WEAK_LIST_H_
#define SOFTLOOKUP_SERVER_RPC_WEAK_LIST_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace softlookup::server {

// A list of objects that does not keep them alive. Not thread-safe.
template <typename T>
class WeakList {
 public:
  // Adds `object` at the end. Removes the objects that no longer exist, each time the list has
  // about doubled since the last removal.
  void Add(const std::shared_ptr<T>& object) {
    if (objects_.size() >= size_before_sweep_) {
      objects_.erase(std::remove_if(objects_.begin(), objects_.end(),
                                    [](const auto& other) { return other.expired(); }),
                     objects_.end());
      size_before_sweep_ = 2 * objects_.size() + 16;
    }
    objects_.push_back(object);
  }

  // Returns the objects that still exist, in the order in which they were added. If a mutex guards
  // the list, destroy the result only after the mutex is unlocked: the result may hold the last
  // reference to an object, and would run its destructor.
  std::vector<std::shared_ptr<T>> Living() const {
    std::vector<std::shared_ptr<T>> living;
    for (const auto& weak : objects_) {
      if (std::shared_ptr<T> object = weak.lock()) living.push_back(std::move(object));
    }
    return living;
  }

  // The number of objects in the list, also of those that no longer exist but are not removed yet.
  std::size_t size() const { return objects_.size(); }

 private:
  std::vector<std::weak_ptr<T>> objects_;
  // The size of objects_ at which Add() removes the objects that no longer exist.
  std::size_t size_before_sweep_ = 16;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_WEAK_LIST_H_
