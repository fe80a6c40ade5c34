#include "server/rpc/open_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace softlookup::server {
namespace {

// Shortest time between two checks of which connections are still open.
constexpr absl::Duration kCheckInterval = absl::Milliseconds(50);
// This many descriptors are kept for the log, HTTP and other files, but at most half of the
// process's limit.
constexpr rlim_t kOtherDescriptorCount = 128;

// The peer of the socket `fd`, as gRPC writes it; empty if it is unknown.
std::string PeerOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char host[INET6_ADDRSTRLEN];
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
    return absl::StrCat("ipv4:", host, ":", ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  const int port = ntohs(v6.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], host, sizeof(host));
    return absl::StrCat("ipv4:", host, ":", port);
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
  std::string scope;
  if (v6.sin6_scope_id != 0) scope = absl::StrCat("%25", v6.sin6_scope_id);
  return absl::StrCat("ipv6:%5B", host, scope, "%5D:", port);
}

// The inode of the socket `fd`; 0 if it is not open.
ino_t InodeOf(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

// Ends a connection at once. connect() without an address resets the connection and drops its
// unread bytes. After a shutdown(), gRPC would still read these bytes. gRPC keeps the descriptor,
// and finds the connection reset.
void Abort(int fd) {
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  if (connect(fd, &nobody, sizeof(nobody)) != 0) ::shutdown(fd, SHUT_RDWR);
}

}  // namespace

OpenConnections::Accepted OpenConnections::Accept(int listener) {
  FileDescriptor socket;  // Outlives the lock, so that no socket is closed under the lock.
  absl::MutexLock lock(&mutex_);
  socket = FileDescriptor(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.get() < 0) return {.error = errno};
  if (!MayAdd()) return {};
  connections_[socket.get()] = {InodeOf(socket.get()), PeerOf(socket.get())};
  return {.socket = std::move(socket)};
}

bool OpenConnections::Cut(const std::string& peer) {
  bool is_cut = false;
  // Accept() accepts under this lock, so between the check of the inode and Abort() the descriptor
  // cannot become another gRPC connection.
  absl::MutexLock lock(&mutex_);
  for (const auto& [fd, connection] : connections_) {
    if (connection.peer != peer || InodeOf(fd) != connection.inode) continue;
    Abort(fd);
    is_cut = true;
  }
  return is_cut;
}

bool OpenConnections::MayAdd() {
  if (connections_.size() < connections_max_) return true;
  // Checking many connections takes long, so it is done only now and then. Until the next check,
  // connections that have closed still count as open.
  const absl::Time now = absl::Now();
  if (now < next_check_) return false;
  next_check_ = now + kCheckInterval;
  absl::erase_if(connections_, [](const auto& connection) {
    return InodeOf(connection.first) != connection.second.inode;
  });
  return connections_.size() < connections_max_;
}

std::size_t RaiseDescriptorLimitFor(std::size_t connections_max) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections_max;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const rlim_t others = std::min(kOtherDescriptorCount, limit.rlim_cur / 2);
  return static_cast<std::size_t>(
      std::min<rlim_t>(connections_max, std::max<rlim_t>(1, limit.rlim_cur - others)));
}

}  // namespace softlookup::server
