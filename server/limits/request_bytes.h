#ifndef SOFTLOOKUP_SERVER_LIMITS_REQUEST_BYTES_H_
#define SOFTLOOKUP_SERVER_LIMITS_REQUEST_BYTES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/check.h"

namespace softlookup::server {

// The budget of the bytes of requests, raw and parsed. A request takes its bytes before it is
// parsed. The bytes are returned once nothing refers to the request. Thread-safe.
class RequestBytes {
 public:
  // `limit` is in bytes. 0: no limit.
  explicit RequestBytes(std::int64_t limit) : limit_(limit) {}

  // Takes `bytes`. Returns false, and takes nothing, if that would exceed the limit. Can also
  // return false for bytes that would fit, because for a moment the bytes that another thread was
  // refused still count.
  bool TryTake(std::int64_t bytes) {
    const std::int64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    const std::int64_t limit = limit_.load(std::memory_order_relaxed);
    if (limit == 0 || before + bytes <= limit) return true;
    Return(bytes);
    return false;
  }
  void Return(std::int64_t bytes) {
    const std::int64_t before = used_.fetch_sub(bytes, std::memory_order_relaxed);
    SOFTLOOKUP_CHECK(before >= bytes) << bytes << " of " << before << " bytes given back";
  }

  std::int64_t used() const { return used_.load(std::memory_order_relaxed); }
  std::int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  // 0: no limit.
  void set_limit(std::int64_t limit) { limit_.store(limit, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> limit_;
  std::atomic<std::int64_t> used_{0};
};

// Holds bytes that were taken from a budget, and returns them when it is destroyed.
class RequestCharge {
 public:
  RequestCharge() = default;
  // `bytes` must have been taken from `budget`. Keeps `budget` alive.
  RequestCharge(std::shared_ptr<RequestBytes> budget, std::int64_t bytes)
      : budget_(std::move(budget)), bytes_(bytes) {}
  RequestCharge(RequestCharge&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  RequestCharge& operator=(RequestCharge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~RequestCharge() {
    if (budget_ != nullptr) budget_->Return(bytes_);
  }

 private:
  std::shared_ptr<RequestBytes> budget_;
  std::int64_t bytes_ = 0;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_REQUEST_BYTES_H_
