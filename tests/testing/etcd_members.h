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
  // Clients speak TLS if `tls` is set. `flags` are added to those of each member.
  explicit EtcdMembers(int count, std::optional<EtcdTls> tls = std::nullopt,
                       std::string flags = "");
  ~EtcdMembers();
  EtcdMembers(const EtcdMembers&) = delete;
  EtcdMembers& operator=(const EtcdMembers&) = delete;

  // Addresses for gRPC, by member.
  const std::vector<std::string>& endpoints() const { return endpoints_; }
  // The directory of a member.
  std::string directory(int member) const;
  // The process of a member; 0: it was killed.
  pid_t pid(int member) const { return processes_[member]; }
  // The URL at which other members reach a member.
  std::string peer_url(int member) const;

  void Kill(int member);
  // Starts a member that was killed, on its old directory.
  void Start(int member);
  // Does so if its process has ended by itself, such as on a full disk. Returns whether it had.
  bool StartIfEnded(int member);
  // Empties the directory of a member that was killed. It can then be started once the others have
  // a new member of its name and URL.
  void Wipe(int member);
  // The member's process goes on to exist, but does nothing.
  void Freeze(int member);
  void Thaw(int member);

 private:
  const TemporaryDirectory directory_;
  const std::optional<EtcdTls> tls_;
  const std::string flags_;
  std::vector<std::string> endpoints_;
  std::vector<pid_t> processes_;  // 0: killed.
  std::vector<bool> were_wiped_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_ETCD_MEMBERS_H_
