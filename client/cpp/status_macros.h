#ifndef SOFTLOOKUP_CLIENT_CPP_STATUS_MACROS_H_
#define SOFTLOOKUP_CLIENT_CPP_STATUS_MACROS_H_

#include <utility>

// Returns from the enclosing function if `expression`, an absl::Status, is an error.
#define CLIENT_RETURN_IF_ERROR(expression)                                            \
  do {                                                                                \
    if (auto client_status = (expression); !client_status.ok()) return client_status; \
  } while (false)

// Defines or assigns `target` from `expression`, an absl::StatusOr, or returns its error.
#define CLIENT_ASSIGN_OR_RETURN(target, expression) \
  CLIENT_ASSIGN_OR_RETURN_IMPL(CLIENT_CONCAT(client_result_, __LINE__), target, expression)

#define CLIENT_ASSIGN_OR_RETURN_IMPL(result, target, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return std::move(result).status();           \
  target = *std::move(result)

#define CLIENT_CONCAT(a, b) CLIENT_CONCAT_IMPL(a, b)
#define CLIENT_CONCAT_IMPL(a, b) a##b

#endif  // SOFTLOOKUP_CLIENT_CPP_STATUS_MACROS_H_
