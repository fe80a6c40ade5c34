#ifndef SOFTLOOKUP_CLIENT_TOOL_STORE_PRINTER_H_
#define SOFTLOOKUP_CLIENT_TOOL_STORE_PRINTER_H_

#include <string>
#include <vector>

#include "client/tool/command.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// Prints a line for each field, or with -o json
// {"name", "key_dim", "value_dim", "num_heads", "score", "temperature", "storage_type", "labels",
//  "memories": [{"name", "kind", "decay"?, "gate"?: [...]}], "revision", "row_count",
//  "live_row_count", "byte_size", "create_time", "projection"?: {"input_dim"}}
// Of a damaged store, prints its name, what is wrong, and what else is known. Its JSON also has
// "damage", and 0 or a default in place of what is not known.
void PrintStore(const v1::Store& store, const Session& session);

// Prints a table with a row for each store, or with -o json {"stores": [as above, ...]}. The table
// has a column that says which stores are damaged, if any is.
void PrintStores(const std::vector<v1::Store>& stores, const Session& session);

// Says in a line or two that the store `name` was renamed and what it replaced, or prints with
// -o json {"renamed": name, "store": as above,
//          "replaced"?: {"revision", "row_count", "live_row_count", "create_time"}}
void PrintRenamed(const std::string& name, const v1::RenameStoreResponse& response,
                  const Session& session);

// Says in a line what a compaction dropped and what that did to the size of the store, which was
// `before`, or prints with -o json
// {"compacted": name, "dropped_rows", "compacted_blocks", "byte_size_before", "store": as above}
void PrintCompacted(const v1::Store& before, const v1::CompactStoreResponse& response,
                    const Session& session);

// Says in a line that the store `name` of a backup was restored and under which name, or prints
// with -o json {"restored": name, "backup": backup, "store": as above}
void PrintRestored(const std::string& backup, const std::string& name, const v1::Store& store,
                   const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_STORE_PRINTER_H_
