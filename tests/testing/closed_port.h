#ifndef SOFTLOOKUP_TESTS_TESTING_CLOSED_PORT_H_
#define SOFTLOOKUP_TESTS_TESTING_CLOSED_PORT_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace softlookup::testing {

// A port of 127.0.0.1 that refuses connections. While this lives, nobody else can listen on it, as
// on the port of a server that has stopped.
class ClosedPort {
 public:
  ClosedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
        getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    }
  }
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;
  ~ClosedPort() { close(socket_); }

  // HOST:PORT. Empty if no port is free.
  const std::string& address() const { return address_; }

 private:
  const int socket_;
  std::string address_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_CLOSED_PORT_H_
