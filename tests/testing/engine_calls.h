#ifndef SOFTLOOKUP_TESTS_TESTING_ENGINE_CALLS_H_
#define SOFTLOOKUP_TESTS_TESTING_ENGINE_CALLS_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "softlookup/engine.h"

namespace softlookup::testing {

// Appends and waits until that is acknowledged or refused.
inline absl::StatusOr<AppendResult> AppendAndWait(Engine& engine, const AppendRequest& request) {
  absl::StatusOr<AppendResult> result;
  absl::Notification done;
  engine.Append(request, [&](absl::StatusOr<AppendResult> r) {
    result = std::move(r);
    done.Notify();
  });
  done.WaitForNotification();
  return result;
}

inline absl::StatusOr<LookupResult> LookupAndWait(Engine& engine, const LookupRequest& request) {
  absl::StatusOr<LookupResult> result;
  absl::Notification done;
  engine.Lookup(request, std::make_shared<CancelToken>(), [&](absl::StatusOr<LookupResult> r) {
    result = std::move(r);
    done.Notify();
  });
  done.WaitForNotification();
  return result;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_ENGINE_CALLS_H_
