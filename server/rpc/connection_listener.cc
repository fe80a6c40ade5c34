#include "server/rpc/connection_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "server/base/listening.h"

namespace softlookup::server {
namespace {

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

}  // namespace

absl::Status ConnectionListener::Bind(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int lookup_error = getaddrinfo(host.c_str(), "0", &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  port_ = port;
  bool all = lookup_error == 0;
  int last_error = 0;
  for (addrinfo* address = found; all && address != nullptr; address = address->ai_next) {
    FileDescriptor listener = ListenOn(*address, port_);
    if (listener.get() < 0) {
      // A name may have an address that this machine does not have, such as an IPv6 address on a
      // machine without IPv6.
      last_error = errno;
      all = last_error == EADDRNOTAVAIL || last_error == EAFNOSUPPORT;
      continue;
    }
    if (port_ == 0) port_ = PortOf(listener.get());
    is_loopback_ = is_loopback_ && IsLoopback(*address->ai_addr);
    listeners_.push_back(std::move(listener));
  }
  if (all && !listeners_.empty()) return absl::OkStatus();
  listeners_.clear();
  return absl::UnavailableError(WhyNotListening(lookup_error, last_error));
}

absl::Status ConnectionListener::Start(absl::Duration peer_timeout, TakeOver take_over) {
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
    OpenConnections::Accepted accepted = connections_.Accept(listener);
    const int socket = accepted.socket.get();
    if (socket < 0) {
      if (accepted.error == EAGAIN || accepted.error == EWOULDBLOCK) return true;
      const bool is_over_maximum = accepted.error == 0;
      if (is_over_maximum || IsOfLostConnection(accepted.error)) continue;
      return false;  // Such as EMFILE: a pause may help.
    }
    SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT,
              static_cast<int>(absl::ToInt64Milliseconds(peer_timeout_)));
    // This call does not hold the lock of connections_, because gRPC may do much work in it.
    take_over_(listener, accepted.socket.Release());
  }
  return true;
}

}  // namespace softlookup::server
