#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_ROUTED_NODES_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_ROUTED_NODES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace softlookup::server {

// The figures of a node that a router calls. Calls count since the router knows the node.
struct RoutedNode {
  std::string group;
  std::string node;
  bool is_connected = false;
  bool is_primary = false;
  std::int64_t in_progress = 0;  // Calls.
  std::uint64_t answered = 0;    // Calls, also those that were answered with an error.
  std::uint64_t failed = 0;      // Calls that the node was not reached for, or did not answer.
};

struct RoutedNodes {
  bool has_etcd = false;  // Whether etcd has answered within some seconds.
  std::vector<RoutedNode> nodes;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_ROUTED_NODES_H_
