#ifndef SOFTLOOKUP_SERVER_CALL_TRANSPORT_H_
#define SOFTLOOKUP_SERVER_CALL_TRANSPORT_H_

#include <cstddef>

#include "server/flags.h"

namespace softlookup::server {

// What gRPC is given for the calls of one port.
struct CallTransport {
  // gRPC's limit on messages. It is above the server's, so that a message slightly too large still
  // gets the server's own error. MessageReceiver::Receive() checks the server's limit.
  int message_bytes_max = 0;
  // Bounds the bytes that gRPC holds of messages that have not arrived whole. No other budget
  // counts these bytes.
  std::size_t bytes_max = 0;
  int thread_count = 0;  // Threads that run the events of calls.
};

CallTransport CallTransportOf(const Flags& flags);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CALL_TRANSPORT_H_
