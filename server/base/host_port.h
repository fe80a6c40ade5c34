#ifndef SOFTLOOKUP_SERVER_BASE_HOST_PORT_H_
#define SOFTLOOKUP_SERVER_BASE_HOST_PORT_H_

#include <optional>
#include <string>

namespace softlookup::server {

struct HostPort {
  std::string host;  // Without brackets.
  int port = 0;
};
// Splits "HOST:PORT" or "[IPV6]:PORT", with a port of at most 65,535. Nullopt for other texts.
std::optional<HostPort> SplitHostPort(const std::string& address);
// The opposite of SplitHostPort().
std::string JoinHostPort(const std::string& host, int port);
// Whether only this machine reaches `host`, by what it is called.
bool IsLoopback(const std::string& host);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_HOST_PORT_H_
