#include "tests/testing/etcd_members.h"

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/testing/child_process.h"

namespace softlookup::testing {
namespace {

// etcd makes a socket's file in its working directory, and wants a number behind the colon.
std::string ClientSocket(int member) { return absl::StrCat("localhost:", member + 1); }
std::string PeerSocket(int member) { return absl::StrCat("localhost:", 101 + member); }

}  // namespace

EtcdMembers::EtcdMembers(int count, std::optional<EtcdTls> tls, std::string flags)
    : tls_(std::move(tls)), flags_(std::move(flags)), processes_(count), were_wiped_(count) {
  for (int member = 0; member < count; ++member) {
    endpoints_.push_back(absl::StrCat("unix:", directory_.path(), "/", ClientSocket(member)));
  }
  for (int member = 0; member < count; ++member) Start(member);
}

EtcdMembers::~EtcdMembers() {
  for (std::size_t member = 0; member < processes_.size(); ++member) {
    Kill(static_cast<int>(member));
  }
}

std::string EtcdMembers::directory(int member) const {
  return absl::StrCat(directory_.path(), "/m", member);
}

std::string EtcdMembers::peer_url(int member) const {
  return absl::StrCat("unix://", PeerSocket(member));
}

void EtcdMembers::Kill(int member) {
  pid_t& process = processes_[member];
  if (process == 0) return;
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  process = 0;
}

void EtcdMembers::Start(int member) {
  std::vector<std::string> cluster;
  for (std::size_t each = 0; each < processes_.size(); ++each) {
    cluster.push_back(absl::StrCat("m", each, "=", peer_url(static_cast<int>(each))));
  }
  const std::string client =
      absl::StrCat(tls_.has_value() ? "unixs://" : "unix://", ClientSocket(member));
  // The gateway from HTTP would have to show a client's certificate to its own member.
  const std::string tls =
      tls_.has_value()
          ? absl::StrCat(" --client-cert-auth --enable-grpc-gateway=false --trusted-ca-file ",
                         tls_->ca, " --cert-file ", tls_->certificate, " --key-file ", tls_->key)
          : "";
  const std::string peer = peer_url(member);
  const std::string command = absl::StrCat(
      "cd ", directory_.path(), " && rm -f ", ClientSocket(member), " ", PeerSocket(member),
      " && exec etcd --name m", member, " --data-dir m", member, " --listen-client-urls ", client,
      " --advertise-client-urls ", client, " --listen-peer-urls ", peer,
      " --initial-cluster-token ", directory_.path(), " --initial-advertise-peer-urls ", peer,
      " --initial-cluster ", absl::StrJoin(cluster, ","), " --initial-cluster-state ",
      were_wiped_[member] ? "existing" : "new", tls, " ", flags_,
      " --auto-compaction-mode=revision --auto-compaction-retention=10000 --snapshot-count=10000"
      " --logger zap --log-level "
      "error >>m",
      member, ".log 2>&1");
  processes_[member] = StartChild({"/bin/sh", "-c", command}, {});
}

bool EtcdMembers::StartIfEnded(int member) {
  if (processes_[member] == 0) return false;
  if (waitpid(processes_[member], nullptr, WNOHANG) != processes_[member]) return false;
  Start(member);
  return true;
}

void EtcdMembers::Wipe(int member) {
  for (const auto& file : std::filesystem::directory_iterator(directory(member))) {
    std::filesystem::remove_all(file.path());
  }
  were_wiped_[member] = true;
}

void EtcdMembers::Freeze(int member) { kill(processes_[member], SIGSTOP); }

void EtcdMembers::Thaw(int member) { kill(processes_[member], SIGCONT); }

}  // namespace softlookup::testing
