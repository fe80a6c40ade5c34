#ifndef SOFTLOOKUP_CLIENT_TOOL_NAMED_ROWS_H_
#define SOFTLOOKUP_CLIENT_TOOL_NAMED_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tool/command.h"
#include "client/tool/word_list.h"
#include "softlookup/client.h"
#include "softlookup/float_matrix.h"

namespace softlookup::tool {

// Reads the keys of the rows called `names`, in their order: [names.size() x key_dim].
//
// If `positions` was read from a file, a row's name is the one that the file gives its position.
// Otherwise it is any of the row's labels. Each name must stand for exactly one live row. With a
// file, InputError if a name does not; for an unknown name, the error suggests a similar one.
// Without a file, NotFound if no row has the label, and UsageError if several have it.
absl::StatusOr<FloatMatrix> KeysOfNames(const v1::Store& store,
                                        const std::vector<std::string>& names,
                                        const PositionNames& positions, const Session& session,
                                        Client* client);

// Says on session.err that the file of `names` does not have a line for each row of `store`, if it
// does not. Blank lines at the end of the file may be too many.
void WarnOfOtherRows(const PositionNames& names, const v1::Store& store, const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_NAMED_ROWS_H_
