#ifndef SOFTLOOKUP_TESTS_TESTING_ETCD_MEMBERS_H_
#define SOFTLOOKUP_TESTS_TESTING_ETCD_MEMBERS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {

// Real members of one etcd, each a process. They listen on sockets of files in a directory of their
// own, so no other program can take their ports. All are killed at the end.
class EtcdMembers {
 public:
  explicit EtcdMembers(int count);
  ~EtcdMembers();
  EtcdMembers(const EtcdMembers&) = delete;
  EtcdMembers& operator=(const EtcdMembers&) = delete;

  // Addresses for gRPC, by member.
  const std::vector<std::string>& endpoints() const { return endpoints_; }

  void Kill(int member);
  // Starts a member that was killed, on its old directory.
  void Start(int member);
  // The member's process goes on to exist, but does nothing.
  void Freeze(int member);
  void Thaw(int member);

 private:
  const TemporaryDirectory directory_;
  std::vector<std::string> endpoints_;
  std::vector<pid_t> processes_;  // 0: killed.
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_ETCD_MEMBERS_H_
