#ifndef SOFTLOOKUP_TESTS_TESTING_ETCD_MEMBERS_H_
#define SOFTLOOKUP_TESTS_TESTING_ETCD_MEMBERS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {

// Paths of the certificates of members that let in only clients of the authority.
struct EtcdTls {
  std::string ca;
  std::string certificate;
  std::string key;
};

// Real members of one etcd, each a process. They listen on sockets of files in a directory of their
// own, so no other program can take their ports. All are killed at the end.
class EtcdMembers {
 public:
  // Clients speak TLS if `tls` is set.
  explicit EtcdMembers(int count, std::optional<EtcdTls> tls = std::nullopt);
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
  const std::optional<EtcdTls> tls_;
  std::vector<std::string> endpoints_;
  std::vector<pid_t> processes_;  // 0: killed.
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_ETCD_MEMBERS_H_
