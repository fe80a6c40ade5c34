#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_NODE_NAME_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_NODE_NAME_H_

#include <cstddef>
#include <string>

namespace softlookup::testing {

// The nodes of a simulation are numbered from 0, and called "a", "b" and so on.
inline std::string NodeName(std::size_t node) {
  return std::string(1, static_cast<char>('a' + node));
}
inline int NodeNumber(const std::string& name) { return name[0] - 'a'; }

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_NODE_NAME_H_
