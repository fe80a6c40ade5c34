#include "tests/testing/cutting_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

namespace softlookup::testing {
namespace {

void Check(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::abort();
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

int PortOf(const std::string& address) {
  return std::atoi(address.c_str() + address.rfind(':') + 1);
}

void Reset(int socket) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

}  // namespace

// One direction of a connection.
struct CuttingProxy::Half {
  int from, to;
  std::int64_t bytes_left;  // Until the cut.
  std::string pending;      // Read and not written yet.

  // What to wait for at `socket`.
  short Events(int socket) const {
    if (socket == from) return pending.empty() && bytes_left > 0 ? POLLIN : 0;
    return pending.empty() ? 0 : POLLOUT;
  }

  // Moves bytes, as far as that does not block; false at the end of the stream.
  bool Move() {
    if (pending.empty() && bytes_left > 0) {
      std::array<char, 16384> buffer;
      const ssize_t count = recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (count < 0) return true;
      pending.assign(buffer.data(), std::min<std::int64_t>(count, bytes_left));
      bytes_left -= static_cast<std::int64_t>(pending.size());
    }
    if (pending.empty()) return true;
    const ssize_t count = send(to, pending.data(), pending.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    pending.erase(0, static_cast<std::size_t>(count));
    return true;
  }

  bool is_due() const { return bytes_left == 0 && pending.empty(); }
};

struct CuttingProxy::Connection {
  Connection(Half to_server, Half to_client)
      : up(std::move(to_server)), down(std::move(to_client)) {}
  ~Connection() {
    close(client());
    close(server());
  }

  int client() const { return up.from; }
  int server() const { return up.to; }

  Half up, down;
};

CuttingProxy::CuttingProxy(const std::string& server, const Options& options)
    : options_(options), draw_(options.seed), server_(server) {
  Check(pipe2(stop_, O_CLOEXEC) == 0, "pipe2");
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  Check(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  Check(listen(listener_, 16) == 0, "listen");
  Check(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { Run(); });
}

CuttingProxy::~CuttingProxy() {
  close(stop_[1]);
  thread_.join();
  close(stop_[0]);
  close(listener_);
}

void CuttingProxy::SetServer(const std::string& server) {
  absl::MutexLock lock(&mutex_);
  server_ = server;
}

void CuttingProxy::Run() {
  for (;;) {
    std::vector<pollfd> fds = {{stop_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& connection : connections_) {
      for (const int socket : {connection->client(), connection->server()}) {
        const auto events = connection->up.Events(socket) | connection->down.Events(socket);
        fds.push_back({socket, static_cast<short>(events), 0});
      }
    }
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) return connections_.clear();
    std::erase_if(connections_, [this](const auto& connection) { return !Move(connection.get()); });
    if (fds[1].revents != 0) Accept();
  }
}

void CuttingProxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address;
  {
    absl::MutexLock lock(&mutex_);
    address = Loopback(PortOf(server_));
  }
  const bool connected =
      connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const auto bytes_left = [&](std::int64_t bytes_max) {
    if (cuts_ >= options_.cuts) return std::numeric_limits<std::int64_t>::max();
    // Some within the first frames.
    return draw_.Int(1, draw_.Chance(0.1) ? std::min<std::int64_t>(bytes_max, 100) : bytes_max);
  };
  if (!connected) {
    close(client);
    close(server);
    return;
  }
  connections_.push_back(std::make_unique<Connection>(
      Half{client, server, bytes_left(options_.bytes_to_server_max), ""},
      Half{server, client, bytes_left(options_.bytes_to_client_max), ""}));
}

bool CuttingProxy::Move(Connection* connection) {
  if (!connection->up.Move() || !connection->down.Move()) return false;
  if (!connection->up.is_due() && !connection->down.is_due()) return true;
  if (draw_.Coin()) Reset(connection->client());
  if (draw_.Coin()) Reset(connection->server());
  ++cuts_;
  return false;
}

}  // namespace softlookup::testing
