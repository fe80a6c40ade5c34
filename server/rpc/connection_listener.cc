#include "server/rpc/connection_listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/rpc/listening.h"

namespace softlookup::server {
namespace {

// Shortest time between two checks of which connections are still open.
constexpr absl::Duration kCheckInterval = absl::Milliseconds(50);
// Descriptors kept for the log, HTTP and other files; at most half of the process's limit.
constexpr rlim_t kOtherDescriptorCount = 128;

void SetOption(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));
}

FileDescriptor ListenOn(addrinfo& address, int port) {
  // IPv4 and IPv6 addresses have the port at the same offset.
  reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_port = htons(static_cast<uint16_t>(port));
  FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return socket;
  // SO_REUSEPORT stays off: with it, a second server could listen on the same port. Calls would
  // then reach either server, and so either of two sets of stores.
  SetOption(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) SetOption(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  SetOption(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);  // Connections inherit it.
  if (bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    return FileDescriptor();
  }
  return socket;
}

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const std::uint32_t host = ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
    return host >> 24 == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

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
// unread bytes, which gRPC would still read after a shutdown(). The owner of the descriptor, gRPC,
// finds the connection reset.
void Abort(int fd) {
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  if (connect(fd, &nobody, sizeof(nobody)) != 0) ::shutdown(fd, SHUT_RDWR);
}

}  // namespace

absl::Status ConnectionListener::Bind(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const bool is_known = getaddrinfo(host.c_str(), "0", &hints, &found) == 0;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  port_ = port;
  bool all = is_known;
  for (addrinfo* address = found; all && address != nullptr; address = address->ai_next) {
    FileDescriptor listener = ListenOn(*address, port_);
    if (listener.get() < 0) {
      // A name may have an address that this machine does not have, such as an IPv6 address without
      // IPv6.
      all = errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT;
      continue;
    }
    if (port_ == 0) port_ = PortOf(listener.get());
    is_loopback_ = is_loopback_ && IsLoopback(*address->ai_addr);
    listeners_.push_back(std::move(listener));
  }
  if (all && !listeners_.empty()) return absl::OkStatus();
  listeners_.clear();
  return absl::UnavailableError("is the port taken?");
}

absl::Status ConnectionListener::Start(std::size_t connections_max, absl::Duration peer_timeout,
                                       TakeOver take_over) {
  connections_max_ = connections_max;
  peer_timeout_ = peer_timeout;
  take_over_ = std::move(take_over);
  wake_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake_.get() < 0) return absl::UnavailableError("too many open files to listen");
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void ConnectionListener::Stop() {
  if (thread_.joinable()) {
    eventfd_write(wake_.get(), 1);
    thread_.join();
  }
  listeners_.clear();
}

bool ConnectionListener::Cut(const std::string& peer) {
  bool is_cut = false;
  // AcceptFrom() accepts under this lock, so between the check of the inode and Abort() the
  // descriptor cannot become another gRPC connection.
  absl::MutexLock lock(&mutex_);
  for (const auto& [fd, connection] : connections_) {
    if (connection.peer != peer || InodeOf(fd) != connection.inode) continue;
    Abort(fd);
    is_cut = true;
  }
  return is_cut;
}

void ConnectionListener::Run() {
  std::vector<pollfd> fds;
  bool pause = false;
  for (;;) {
    fds.assign({{wake_.get(), POLLIN, 0}});
    for (const FileDescriptor& listener : listeners_) {
      fds.push_back({pause ? -1 : listener.get(), POLLIN, 0});
    }
    const int timeout = pause ? static_cast<int>(absl::ToInt64Milliseconds(kAcceptPause)) : -1;
    if (poll(fds.data(), fds.size(), timeout) < 0) continue;
    if (fds[0].revents != 0) return;
    pause = false;
    for (std::size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents != 0 && !AcceptFrom(fds[i].fd)) pause = true;
    }
  }
}

bool ConnectionListener::AcceptFrom(int listener) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    FileDescriptor socket;
    int error = 0;
    {
      absl::MutexLock lock(&mutex_);
      socket = FileDescriptor(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      error = errno;
      if (socket.get() >= 0) {
        if (!MayAccept()) continue;
        connections_[socket.get()] = {InodeOf(socket.get()), PeerOf(socket.get())};
      }
    }
    if (socket.get() < 0) {
      if (error == EAGAIN || error == EWOULDBLOCK) return true;
      if (!IsOfLostConnection(error)) return false;  // Such as EMFILE: a pause may help.
      continue;
    }
    SetOption(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT,
              static_cast<int>(absl::ToInt64Milliseconds(peer_timeout_)));
    // Not under the lock, since gRPC may do much work in this call.
    take_over_(listener, socket.Release());
  }
  return true;
}

bool ConnectionListener::MayAccept() {
  if (connections_.size() < connections_max_) return true;
  // Checking many connections takes long, so it is done only now and then. In between, no
  // connection counts as closed.
  const absl::Time now = absl::Now();
  if (now < next_check_) return false;
  next_check_ = now + kCheckInterval;
  absl::erase_if(connections_, [](const auto& connection) {
    return InodeOf(connection.first) != connection.second.inode;
  });
  return connections_.size() < connections_max_;
}

std::size_t ConnectionsWithin(std::size_t connections_max) {
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
