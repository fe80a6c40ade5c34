#ifndef SOFTLOOKUP_CORE_ENGINE_PROJECTION_BUDGET_H_
#define SOFTLOOKUP_CORE_ENGINE_PROJECTION_BUDGET_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace softlookup {

// Counts the appends whose inputs are to be projected, and bounds their bytes. Thread-safe.
class ProjectionBudget {
 public:
  // `limit` is in bytes.
  explicit ProjectionBudget(std::int64_t limit) : limit_(limit) {}
  // Waits until all counted appends have given their bytes back.
  ~ProjectionBudget();

  // An append that is counted until this object is destroyed.
  class Taken {
   public:
    Taken(Taken&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Taken& operator=(Taken&&) = delete;
    ~Taken() {
      if (budget_ != nullptr) budget_->GiveBack(bytes_);
    }

   private:
    friend class ProjectionBudget;
    Taken(ProjectionBudget& budget, std::int64_t bytes) : budget_(&budget), bytes_(bytes) {}

    ProjectionBudget* budget_;
    const std::int64_t bytes_;
  };

  // Counts one more append, of `bytes`. Returns nothing, and counts nothing, if it and all counted
  // appends together would have more bytes than the limit. An append of any size is counted if it
  // is the only one.
  std::optional<Taken> Take(std::int64_t bytes);

 private:
  void GiveBack(std::int64_t bytes);

  const std::int64_t limit_;
  absl::Mutex mutex_;
  std::int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_PROJECTION_BUDGET_H_
