#ifndef SOFTLOOKUP_SERVER_CLUSTER_SHARED_LIMIT_H_
#define SOFTLOOKUP_SERVER_CLUSTER_SHARED_LIMIT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// A number of units, such as bytes, of which calls hold shares. Thread-safe.
class SharedLimit {
  struct Units {
    absl::Mutex mutex;
    std::uint64_t left ABSL_GUARDED_BY(mutex);
  };

 public:
  // Some of the units, in use until the share is destroyed. It may outlive the limit.
  class Share {
   public:
    Share(Share&&) noexcept = default;
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (units_ == nullptr) return;  // Moved from.
      absl::MutexLock lock(&units_->mutex);
      units_->left += count_;
    }

   private:
    friend class SharedLimit;
    Share(std::shared_ptr<Units> units, std::uint64_t count)
        : units_(std::move(units)), count_(count) {}

    std::shared_ptr<Units> units_;
    std::uint64_t count_;
  };

  explicit SharedLimit(std::uint64_t count) : units_(std::make_shared<Units>()) {
    absl::MutexLock lock(&units_->mutex);
    units_->left = count;
  }

  // Takes `count` units. Nullopt if fewer are left.
  std::optional<Share> Take(std::uint64_t count) {
    absl::MutexLock lock(&units_->mutex);
    if (units_->left < count) return std::nullopt;
    units_->left -= count;
    return Share(units_, count);
  }

 private:
  const std::shared_ptr<Units> units_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_SHARED_LIMIT_H_
