#ifndef SOFTLOOKUP_TESTS_TESTING_STATUS_MATCHERS_H_
#define SOFTLOOKUP_TESTS_TESTING_STATUS_MATCHERS_H_

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace softlookup::testing {

inline const absl::Status& StatusIn(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusIn(const absl::StatusOr<T>& result) {
  return result.status();
}

// The Status or StatusOr is OK.
MATCHER(IsOk, "") {
  const absl::Status& status = StatusIn(arg);
  *result_listener << status.ToString();
  return status.ok();
}

// It has this code, and `text` is part of its message.
MATCHER_P2(StatusIs, code, text, "") {
  const absl::Status& status = StatusIn(arg);
  *result_listener << status.ToString();
  return status.code() == code && std::string(status.message()).find(text) != std::string::npos;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_STATUS_MATCHERS_H_
