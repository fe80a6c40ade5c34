#ifndef SOFTLOOKUP_CLIENT_CONSOLE_QUERY_TERMS_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_QUERY_TERMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/output/json.h"
#include "softlookup/client.h"

namespace softlookup::console {

// Returns the sum of the terms of a query, a vector of `dim` numbers. `terms` is a list of objects
// {"factor", "kind", "value"}. What a term stands for depends on its kind:
//   position  the key of the row at this position, a number
//   id        the key of the row with this id, a text of digits
//   label     the key of the first row with this label
//   word      WordEncoder's encoding of this word
//   vector    the numbers of this list
// InvalidArgument for other terms. NotFound if there is no such row. Also returns the errors of
// Client::ReadRows().
absl::StatusOr<std::vector<float>> SumOfTerms(Client* client, const std::string& store,
                                              std::uint32_t dim, const output::Json& terms);

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_QUERY_TERMS_H_
