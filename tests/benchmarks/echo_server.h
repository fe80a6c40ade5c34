#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_ECHO_SERVER_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_ECHO_SERVER_H_

#include <grpcpp/security/server_credentials.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "softlookup/v1/lookup.pb.h"

namespace softlookup::testing {

// gRPC's ways of serving without a thread a call.
enum class EchoApi {
  // A completion queue and a thread a core. gRPC reads the message before it hands the call over.
  kCompletionQueue,
  // gRPC's own threads. gRPC reads the message before it hands the call over.
  kCallback,
  // Completion queues, and messages as bytes that are read once the call is known, with word of its
  // end: what a server needs that charges a message to its caller before it holds it.
  kGenericQueue,
};

// What a server of TLS proves itself with, as PEM.
using PemKeyCertPair = grpc::SslServerCredentialsOptions::PemKeyCertPair;

// A process that answers every Lookup with the same response and does nothing else. It ends with
// the object.
class EchoServer {
 public:
  // Splits the process off. Must come before the first use of gRPC, which does not survive a fork.
  // With a `certificate` and its key it speaks TLS.
  explicit EchoServer(EchoApi api, const std::optional<PemKeyCertPair>& certificate = std::nullopt);
  ~EchoServer();
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  // Serves `response` from now on; once. Returns the address.
  std::string Start(const v1::LookupResponse& response);

 private:
  pid_t pid_ = -1;
  int socket_ = -1;  // To the process.
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_ECHO_SERVER_H_
