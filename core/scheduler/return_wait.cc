#include "core/scheduler/return_wait.h"

#include <algorithm>

namespace softlookup {

void ReturnWait::OnAnswers(std::int64_t answered_count, std::int64_t waiting_count,
                           absl::Time end) {
  std::int64_t expected = 0;
  if (answered_count_ > 0) {
    const std::int64_t returned = std::min(returned_count_, answered_count_);
    expected = answered_count * returned / answered_count_;
  }
  awaited_count_ = waiting_count + expected;
  answered_count_ = answered_count;
  returned_count_ = 0;
  end_ = end;
}

}  // namespace softlookup
