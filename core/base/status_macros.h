#ifndef SOFTLOOKUP_CORE_BASE_STATUS_MACROS_H_
#define SOFTLOOKUP_CORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// If `expression`, an absl::Status, is an error, returns that error from the enclosing function.
#define SOFTLOOKUP_RETURN_IF_ERROR(expression)                                    \
  do {                                                                            \
    if (absl::Status softlookup_status = (expression); !softlookup_status.ok()) { \
      return softlookup_status;                                                   \
    }                                                                             \
  } while (false)

// Assigns the value of `expression`, an absl::StatusOr, to `target`, or returns its error from the
// enclosing function. `target` may declare a variable. The macro expands to several statements, so
// it cannot be the body of an `if` without braces.
#define SOFTLOOKUP_ASSIGN_OR_RETURN(target, expression) \
  SOFTLOOKUP_ASSIGN_OR_RETURN_IMPL(SOFTLOOKUP_CONCAT(softlookup_or_, __LINE__), target, expression)

#define SOFTLOOKUP_ASSIGN_OR_RETURN_IMPL(result, target, expression) \
  auto result = (expression);                                        \
  if (!result.ok()) return std::move(result).status();               \
  target = *std::move(result)

#define SOFTLOOKUP_CONCAT(a, b) SOFTLOOKUP_CONCAT_IMPL(a, b)
#define SOFTLOOKUP_CONCAT_IMPL(a, b) a##b

#endif  // SOFTLOOKUP_CORE_BASE_STATUS_MACROS_H_
