#ifndef SOFTLOOKUP_SERVER_ROUTER_NODE_TURNS_H_
#define SOFTLOOKUP_SERVER_ROUTER_NODE_TURNS_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace softlookup::server {

// Calls of which each node gets a few at a time. The others wait for their turn. Not thread-safe.
template <typename Call>
class NodeTurns {
 public:
  // Adds a call to `node`, which may get `most` at a time. Returns the call if it is its turn. If
  // not, EndTurn() returns it later.
  std::optional<Call> Add(const std::string& node, std::size_t most, Call call) {
    Turns& turns = turns_[node];
    if (turns.in_progress < most) {
      ++turns.in_progress;
      return call;
    }
    turns.waiting.push_back(std::move(call));
    return std::nullopt;
  }

  // The turn of a call to `node` is over. Returns the call whose turn it is now, if one waits.
  std::optional<Call> EndTurn(const std::string& node) {
    Turns& turns = turns_[node];
    if (turns.waiting.empty()) {
      --turns.in_progress;
      return std::nullopt;
    }
    Call next = std::move(turns.waiting.front());
    turns.waiting.pop_front();
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
