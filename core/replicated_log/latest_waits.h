#ifndef SOFTLOOKUP_CORE_REPLICATED_LOG_LATEST_WAITS_H_
#define SOFTLOOKUP_CORE_REPLICATED_LOG_LATEST_WAITS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace softlookup {

// Waits until the stores of a replica show all that its group had committed when each wait began.
// Asks etcd for the last committed entry, once for all that wait: at most one question is open, and
// a wait counts only answers to questions that were asked after it began. Not thread-safe.
class LatestWaits {
 public:
  // The longest wait. After it, the wait ends with CLUSTER_UNAVAILABLE.
  static constexpr absl::Duration kWaitMax = absl::Seconds(5);

  using Done = absl::AnyInvocable<void(absl::Status)>;
  using Answer = absl::StatusOr<std::uint64_t>;
  // Asks etcd which entry was committed last, and passes the entry's sequence to the callback.
  using Ask = absl::AnyInvocable<void(absl::AnyInvocable<void(Answer)>)>;

  // `clock` must outlive this. What `ask` calls back must not come after this is destroyed.
  LatestWaits(const Clock& clock, Ask ask) : clock_(clock), ask_(std::move(ask)) {}
  LatestWaits(const LatestWaits&) = delete;
  LatestWaits& operator=(const LatestWaits&) = delete;

  // Begins a wait. `done` gets OK once the stores show what was committed before this call. It must
  // not call this object.
  void Add(Done done);
  // The stores show the entry `sequence`, and all before it.
  void Show(std::uint64_t sequence);
  // Ends waits that took too long. Asks again if the last question was not answered.
  void Tick();
  // Ends all waits with the error `why`.
  void EndAll(const absl::Status& why);

  bool empty() const { return waits_.empty(); }

 private:
  struct Wait {
    absl::Time end;
    std::uint64_t question = 0;             // The first one that counts.
    std::optional<std::uint64_t> sequence;  // Of the entry to be shown, once that is known.
    Done done;
  };

  // Asks if a wait needs it and no question is open.
  void AskIfNeeded();
  void OnAnswer(const Answer& answer);
  // Removes the waits for which `ends` holds, then ends them with `status`.
  void EndIf(absl::AnyInvocable<bool(const Wait&)> ends, const absl::Status& status);

  const Clock& clock_;
  Ask ask_;
  std::vector<Wait> waits_;      // In the order in which they began.
  std::uint64_t questions_ = 0;  // How many were asked.
  bool is_asking_ = false;       // Whether the last one is open.
  std::uint64_t shown_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATED_LOG_LATEST_WAITS_H_
