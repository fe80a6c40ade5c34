#ifndef SOFTLOOKUP_CLIENT_TOOL_NAMED_ROWS_H_
#define SOFTLOOKUP_CLIENT_TOOL_NAMED_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tool/command.h"
#include "softlookup/client.h"
#include "softlookup/float_matrix.h"

namespace softlookup::tool {

// Reads the keys of the rows called `names`, in their order: [names.size() x key_dim].
//
// If `names_file` is not "", positions[i] is the name of the row at position i, as read from that
// file. Otherwise a row's name is any of its labels. Each name must stand for exactly one live row.
// With a file, InputError if a name does not; for an unknown name, the error suggests a similar
// one. Without a file, NotFound if no row has the label, and UsageError if several have it.
absl::StatusOr<FloatMatrix> KeysOfNames(const v1::Store& store,
                                        const std::vector<std::string>& names,
                                        const std::string& names_file,
                                        const std::vector<std::string>& positions,
                                        const Session& session, Client* client);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_NAMED_ROWS_H_
