#include "server/admin/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/admin/http_response.h"
#include "server/base/listening.h"

namespace softlookup::server {
namespace {

// Longest time that a connection stays open after it is accepted. It is the same for all
// connections, so that the oldest one always ends first.
constexpr absl::Duration kConnectionTime = absl::Seconds(2);
constexpr std::size_t kConnectionsMax = 128;
constexpr std::size_t kRequestBytesMax = 8192;

// Whether `request` has the blank line that ends the headers.
bool IsWhole(absl::string_view request) {
  return absl::StrContains(request, "\r\n\r\n") || absl::StrContains(request, "\n\n");
}

FileDescriptor ListenOn(const addrinfo& address) {
  FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return socket;
  // Without SO_REUSEPORT: a second server must not share the port.
  const int yes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    return FileDescriptor();
  }
  return socket;
}

// Whether the last call on a socket did nothing because it would have had to wait, or because a
// signal interrupted it.
bool WouldWait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

absl::StatusOr<FileDescriptor> ListenForHttp(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int lookup_error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  FileDescriptor listener;
  int last_error = 0;
  if (lookup_error == 0) {
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
    for (const addrinfo* address = found; address != nullptr && listener.get() < 0;
         address = address->ai_next) {
      listener = ListenOn(*address);
      last_error = errno;
    }
  }
  if (listener.get() >= 0) return listener;
  return absl::UnavailableError(
      absl::StrCat("--http-listen: cannot listen on ", host, ":", port,
                   " for HTTP: ", WhyNotListening(lookup_error, last_error)));
}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

absl::Status HttpServer::Start(FileDescriptor listener) {
  listener_ = std::move(listener);
  port_ = PortOf(listener_.get());
  stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC));
  if (stop_.get() < 0) return absl::UnavailableError("too many open files to serve HTTP");
  thread_ = std::thread([this] { Serve(); });
  return absl::OkStatus();
}

void HttpServer::Serve() {
  std::vector<Connection> connections;  // Oldest first.
  std::vector<pollfd> fds;
  bool pause = false;
  while (true) {
    fds.assign({{stop_.get(), POLLIN, 0}, {pause ? -1 : listener_.get(), POLLIN, 0}});
    for (const Connection& connection : connections) {
      fds.push_back({connection.socket.get(),
                     static_cast<short>(connection.answer.empty() ? POLLIN : POLLOUT), 0});
    }
    absl::Duration timeout = pause ? kAcceptPause : absl::Hours(1);
    if (!connections.empty()) timeout = std::min(timeout, connections.front().end - clock_.Now());
    timeout = std::max(timeout, absl::ZeroDuration());
    if (poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(timeout)) + 1) <
        0) {
      continue;
    }
    if (fds[0].revents != 0) return;
    const absl::Time now = clock_.Now();
    std::size_t left = 0;
    for (std::size_t i = 0; i < connections.size(); ++i) {
      if (connections[i].end <= now) continue;
      if (fds[2 + i].revents != 0 && !Proceed(connections[i])) continue;
      if (left != i) connections[left] = std::move(connections[i]);
      ++left;
    }
    connections.resize(left);
    pause = fds[1].revents != 0 && !Accept(connections);
  }
}

bool HttpServer::Accept(std::vector<Connection>& connections) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
      if (IsOfLostConnection(errno)) continue;
      const bool lacks_room =
          errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (!lacks_room || connections.empty()) return false;
      connections.erase(connections.begin());  // Frees a descriptor and its buffers.
      continue;
    }
    if (connections.size() == kConnectionsMax) connections.erase(connections.begin());
    connections.push_back({.socket = std::move(socket), .end = clock_.Now() + kConnectionTime});
    // Most requests arrive with their connection, so this can often answer at once.
    if (!Proceed(connections.back())) connections.pop_back();
  }
  return true;
}

bool HttpServer::Proceed(Connection& connection) {
  const int socket = connection.socket.get();
  if (connection.answer.empty()) {
    // Reads only once, even if more bytes have arrived, because other connections wait.
    std::array<char, 4096> bytes;
    const ssize_t count = recv(socket, bytes.data(), bytes.size(), 0);
    if (count < 0) return WouldWait();
    if (count == 0) return false;
    // If the server closed a connection with unread bytes, the client could lose the response. So
    // the server reads on until the client closes the connection or its time is up.
    if (connection.answered) return true;
    connection.request.append(bytes.data(), static_cast<std::size_t>(count));
    if (connection.request.size() > kRequestBytesMax) {
      connection.answer = HttpResponse("431 Request Header Fields Too Large", "too long\n");
    } else if (IsWhole(connection.request)) {
      connection.answer = answer_(connection.request);
    } else {
      return true;
    }
  }
  const ssize_t count =
      send(socket, connection.answer.data(), connection.answer.size(), MSG_NOSIGNAL);
  if (count < 0) return WouldWait();
  connection.answer.erase(0, static_cast<std::size_t>(count));
  if (connection.answer.empty()) {
    connection.answered = true;
    shutdown(socket, SHUT_WR);
  }
  return true;
}

}  // namespace softlookup::server
