#include "tests/testing/cutting_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

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

// Connects a new socket to `address`, 127.0.0.1:PORT or unix:PATH. Returns the socket, or -1.
int ConnectTo(const std::string& address) {
  const std::string unix_scheme = "unix:";
  sockaddr_un local = {};
  sockaddr_in remote = Loopback(std::atoi(address.c_str() + address.rfind(':') + 1));
  const bool is_local = address.starts_with(unix_scheme);
  if (is_local) {
    local.sun_family = AF_UNIX;
    std::strncpy(local.sun_path, address.c_str() + unix_scheme.size(), sizeof local.sun_path - 1);
  }
  const int connection = socket(is_local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected =
      is_local ? connect(connection, reinterpret_cast<sockaddr*>(&local), sizeof local) == 0
               : connect(connection, reinterpret_cast<sockaddr*>(&remote), sizeof remote) == 0;
  if (connected) return connection;
  close(connection);
  return -1;
}

// How often a slow link passes something on.
constexpr absl::Duration kSlice = absl::Milliseconds(50);

void Reset(int socket) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

}  // namespace

// One direction of a connection.
struct CuttingProxy::Half {
  int from, to;
  std::int64_t bytes_left;     // Until the cut.
  std::int64_t allowance = 0;  // What may be read until the next slice of time.
  std::string pending;         // Read and not written yet.

  bool may_read() const { return pending.empty() && bytes_left > 0 && allowance > 0; }
  // What to wait for at `socket`.
  short Events(int socket) const {
    if (socket == from) return may_read() ? POLLIN : 0;
    return pending.empty() ? 0 : POLLOUT;
  }

  // Moves bytes, as far as that does not block; false at the end of the stream.
  bool Move() {
    if (may_read()) {
      std::array<char, 16384> buffer;
      const std::size_t size = std::min<std::int64_t>(buffer.size(), allowance);
      const ssize_t count = recv(from, buffer.data(), size, MSG_DONTWAIT);
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (count < 0) return true;
      pending.assign(buffer.data(), std::min<std::int64_t>(count, bytes_left));
      bytes_left -= static_cast<std::int64_t>(pending.size());
      allowance -= static_cast<std::int64_t>(pending.size());
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
  Check(pipe2(wake_, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
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
  close(wake_[1]);
  thread_.join();
  close(wake_[0]);
  close(listener_);
}

void CuttingProxy::SetServer(const std::string& server) {
  absl::MutexLock lock(&mutex_);
  server_ = server;
}

void CuttingProxy::SetLink(const Link& link) {
  absl::MutexLock lock(&mutex_);
  next_link_ = link;
  Check(write(wake_[1], "", 1) == 1 || errno == EAGAIN, "write");
}

void CuttingProxy::CutAll() {
  absl::MutexLock lock(&mutex_);
  must_cut_all_ = true;
  Check(write(wake_[1], "", 1) == 1 || errno == EAGAIN, "write");
}

void CuttingProxy::Run() {
  for (;;) {
    const bool is_slow = link_.bytes_per_second > 0;
    if (const absl::Time now = absl::Now(); !is_slow || now >= next_slice_) {
      next_slice_ = now + kSlice;
      BeginSlice();
    }
    std::vector<pollfd> fds = {{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& connection : connections_) {
      for (const int socket : {connection->client(), connection->server()}) {
        const auto events = connection->up.Events(socket) | connection->down.Events(socket);
        // poll() would tell of an end of the stream even if nothing is waited for.
        fds.push_back({events == 0 ? -1 : socket, static_cast<short>(events), 0});
      }
    }
    const int timeout = is_slow ? static_cast<int>(absl::ToInt64Milliseconds(kSlice)) : -1;
    if (poll(fds.data(), fds.size(), timeout) < 0) continue;
    if (fds[0].revents & POLLIN) TakeOrders();
    if (fds[0].revents & POLLHUP) return connections_.clear();
    std::erase_if(connections_, [this](const auto& connection) { return !Move(connection.get()); });
    if (fds[1].revents != 0) Accept();
  }
}

void CuttingProxy::BeginSlice() {
  const auto slice_ms = absl::ToInt64Milliseconds(kSlice);
  const std::int64_t allowance =
      link_.bytes_per_second == 0
          ? std::numeric_limits<std::int64_t>::max()
          : std::max<std::int64_t>(1, link_.bytes_per_second * slice_ms / 1000);
  for (const auto& connection : connections_) {
    connection->up.allowance = link_.passes_to_server ? allowance : 0;
    connection->down.allowance = link_.passes_to_client ? allowance : 0;
  }
}

void CuttingProxy::TakeOrders() {
  std::array<char, 64> orders;
  while (read(wake_[0], orders.data(), orders.size()) > 0) {
  }
  absl::MutexLock lock(&mutex_);
  link_ = next_link_;
  next_slice_ = absl::InfinitePast();
  if (!std::exchange(must_cut_all_, false)) return;
  for (const auto& connection : connections_) Cut(connection.get());
  connections_.clear();
}

void CuttingProxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  std::string address;
  {
    absl::MutexLock lock(&mutex_);
    address = server_;
  }
  next_slice_ = absl::InfinitePast();
  const int server = ConnectTo(address);
  if (server < 0) {
    close(client);
    return;
  }
  const auto bytes_left = [&](std::int64_t bytes_max) {
    if (cuts_ >= options_.cuts) return std::numeric_limits<std::int64_t>::max();
    // Some within the first frames.
    return draw_.Int(1, draw_.Chance(0.1) ? std::min<std::int64_t>(bytes_max, 100) : bytes_max);
  };
  connections_.push_back(
      std::make_unique<Connection>(Half{client, server, bytes_left(options_.bytes_to_server_max)},
                                   Half{server, client, bytes_left(options_.bytes_to_client_max)}));
}

bool CuttingProxy::Move(Connection* connection) {
  if (!connection->up.Move() || !connection->down.Move()) return false;
  if (!connection->up.is_due() && !connection->down.is_due()) return true;
  Cut(connection);
  ++cuts_;
  return false;
}

void CuttingProxy::Cut(Connection* connection) {
  if (draw_.Coin()) Reset(connection->client());
  if (draw_.Coin()) Reset(connection->server());
}

}  // namespace softlookup::testing
