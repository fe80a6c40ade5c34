#ifndef SOFTLOOKUP_CLIENT_TOOL_RANGE_MOVES_H_
#define SOFTLOOKUP_CLIENT_TOOL_RANGE_MOVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tool/command.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// A range of a store, which begins at `begin`, and the nodes that it is to have.
struct RangeMove {
  std::uint64_t begin = 0;
  std::vector<std::string> nodes;

  friend bool operator==(const RangeMove&, const RangeMove&) = default;
};

// Returns moves after which `nodes`, which must not be empty, have about equally many bytes of the
// store's rows, and other nodes none. Each move takes a range from the node that has most by then,
// or from one that is to have none, and gives it to the one that has least. A range keeps its
// number of nodes, unless that is more than `nodes` are.
std::vector<RangeMove> MovesToBalance(const admin::v1::StoreRanges& ranges,
                                      const std::vector<std::string>& nodes);

// Makes a move so that some node has all rows of the range in RAM at any time: gives the range
// to its old and its new nodes, waits until the new ones have loaded it, and then takes it from the
// others. Says on `session.err` what it waits for. If it ends early, the range has all these nodes,
// and the move can be made again. Changes nothing if the server cannot ask each of the new nodes.
absl::StatusOr<admin::v1::StoreRanges> MakeMove(Client& client, const std::string& store,
                                                const RangeMove& move, const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_RANGE_MOVES_H_
