#include "tests/benchmarks/cluster/repeated_call.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace softlookup::testing {

double RepeatedCall::Times::Quantile(double share) const {
  if (milliseconds.empty()) return 0;
  const auto index = static_cast<std::size_t>(share * static_cast<double>(milliseconds.size()));
  return milliseconds[std::min(index, milliseconds.size() - 1)];
}

RepeatedCall::RepeatedCall(absl::AnyInvocable<bool()> call)
    : call_(std::move(call)), thread_([this] { Run(); }) {}

RepeatedCall::~RepeatedCall() {
  must_end_ = true;
  thread_.join();
}

RepeatedCall::Times RepeatedCall::Take() {
  Times taken;
  {
    absl::MutexLock lock(&mutex_);
    taken = std::exchange(times_, {});
  }
  std::ranges::sort(taken.milliseconds);
  return taken;
}

void RepeatedCall::Run() {
  while (!must_end_) {
    const absl::Time begin = absl::Now();
    const bool went_well = call_();
    const double milliseconds = absl::ToDoubleMilliseconds(absl::Now() - begin);
    absl::MutexLock lock(&mutex_);
    if (went_well) {
      times_.milliseconds.push_back(milliseconds);
    } else {
      ++times_.failed;
    }
  }
}

}  // namespace softlookup::testing
