#ifndef SOFTLOOKUP_TESTS_TESTING_PART_CALLS_H_
#define SOFTLOOKUP_TESTS_TESTING_PART_CALLS_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "softlookup/engine.h"
#include "softlookup/partial_lookup.h"

namespace softlookup::testing {

// Asks for a part of a lookup and waits until it is answered.
inline absl::StatusOr<PartialLookup> AnswerPartAndWait(
    Engine& engine, const LookupRequest& request, const LookupPart& part,
    std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>()) {
  absl::StatusOr<PartialLookup> result;
  absl::Notification done;
  engine.AnswerPart(request, part, std::move(cancel), [&](absl::StatusOr<PartialLookup> r) {
    result = std::move(r);
    done.Notify();
  });
  done.WaitForNotification();
  return result;
}

// Asks for what belongs to a part in the second phase, and waits until it is answered.
inline absl::StatusOr<RowSums> SumRowsAndWait(
    Engine& engine, const LookupRequest& request, const LookupPart& part,
    const RowSumsRequest& rows,
    std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>()) {
  absl::StatusOr<RowSums> result;
  absl::Notification done;
  engine.SumRowsOfPart(request, part, rows, std::move(cancel), [&](absl::StatusOr<RowSums> r) {
    result = std::move(r);
    done.Notify();
  });
  done.WaitForNotification();
  return result;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_PART_CALLS_H_
