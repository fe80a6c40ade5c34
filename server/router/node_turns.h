#ifndef SOFTLOOKUP_SERVER_ROUTER_NODE_TURNS_H_
#define SOFTLOOKUP_SERVER_ROUTER_NODE_TURNS_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace softlookup::server {

// Calls of which each node gets one alone, and after its answer a few at a time. The others wait
// for their turn. Not thread-safe.
template <typename Call>
class NodeTurns {
 public:
  // Adds a call to `node`. Returns the call if it is its turn. If not, EndTurn() returns it later.
  std::optional<Call> Add(const std::string& node, Call call) {
    Turns& turns = turns_[node];
    if (turns.in_progress == 0) {
      ++turns.in_progress;
      return call;
    }
    turns.waiting.push_back(std::move(call));
    return std::nullopt;
  }

  // A call to `node` was answered. Returns the calls whose turn it is now, so that `most` are in
  // progress.
  std::vector<Call> EndTurn(const std::string& node, std::size_t most) {
    Turns& turns = turns_[node];
    --turns.in_progress;
    std::vector<Call> next;
    for (; turns.in_progress < most && !turns.waiting.empty(); ++turns.in_progress) {
      next.push_back(std::move(turns.waiting.front()));
      turns.waiting.pop_front();
    }
    return next;
  }

  // Forgets all calls.
  void Clear() { turns_.clear(); }

 private:
  struct Turns {
    std::size_t in_progress = 0;
    std::deque<Call> waiting;
  };

  absl::flat_hash_map<std::string, Turns> turns_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_NODE_TURNS_H_
