#ifndef SOFTLOOKUP_TESTS_SERVER_RPC_TCP_CLIENT_H_
#define SOFTLOOKUP_TESTS_SERVER_RPC_TCP_CLIENT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/file_descriptor.h"

namespace softlookup::server {

// The address of `host`, an IPv4 or IPv6 address, and `port`.
struct TcpAddress {
  TcpAddress(const std::string& host, int port) : is_v6(host.find(':') != std::string::npos) {
    address.ss_family = is_v6 ? AF_INET6 : AF_INET;
    size = is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    reinterpret_cast<sockaddr_in*>(&address)->sin_port = htons(static_cast<uint16_t>(port));
    void* bytes = &reinterpret_cast<sockaddr_in*>(&address)->sin_addr;
    if (is_v6) bytes = &reinterpret_cast<sockaddr_in6*>(&address)->sin6_addr;
    inet_pton(address.ss_family, host.c_str(), bytes);
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&address); }

  const bool is_v6;
  sockaddr_storage address{};
  socklen_t size = 0;
};

// A client's end of a connection to `host`.
class TcpClient {
 public:
  TcpClient(const std::string& host, int port) {
    TcpAddress address(host, port);
    socket_ = FileDescriptor(socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connect(socket_.get(), address.get(), address.size);
    getsockname(socket_.get(), address.get(), &address.size);
    const int own_port = ntohs(reinterpret_cast<sockaddr_in*>(address.get())->sin_port);
    name_ = address.is_v6 ? absl::StrCat("ipv6:%5B", host, "%5D:", own_port)
                          : absl::StrCat("ipv4:", host, ":", own_port);
  }

  // As gRPC names it.
  const std::string& name() const { return name_; }
  void Send(const std::string& bytes) { send(socket_.get(), bytes.data(), bytes.size(), 0); }
  // Waits until there is something to read, or the connection has ended.
  bool IsReset() {
    char byte = 0;
    return recv(socket_.get(), &byte, 1, 0) < 0 && errno == ECONNRESET;
  }
  // As IsReset(), for a connection that the server has closed.
  bool IsClosed() {
    char byte = 0;
    return recv(socket_.get(), &byte, 1, 0) == 0;
  }

 private:
  FileDescriptor socket_;
  std::string name_;
};

// How many bytes the server's end `fd` has to read, once there are any; none or -1 if it was cut.
inline ssize_t BytesToRead(int fd) {
  pollfd one{fd, POLLIN, 0};
  poll(&one, 1, -1);
  char bytes[64];
  return recv(fd, bytes, sizeof(bytes), MSG_PEEK);
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_TESTS_SERVER_RPC_TCP_CLIENT_H_
