#ifndef SOFTLOOKUP_TESTS_INTEGRATION_SECURE_SERVER_H_
#define SOFTLOOKUP_TESTS_INTEGRATION_SECURE_SERVER_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {

// How a server and its clients talk.
enum class Transport { kPlaintext, kTls, kMutualTls };

std::string Contents(const std::string& path);
// Replaces a file at once, as an operator would.
void Replace(const std::string& path, const std::string& contents);

// A directory with certificates and an auth file, made by the tool.
class SecurityFiles {
 public:
  SecurityFiles();

  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  std::string auth() const { return Path("auth.json"); }
  // Adds an identity to the auth file; returns its token.
  std::string AddIdentity(const std::string& name, const std::string& role,
                          const std::string& stores) const;
  // The flags of a server that uses them.
  std::vector<std::string> Flags(Transport transport) const;
  // What a client needs. Of mutual TLS, with the pair in `pair`, such as "tls/client".
  std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(
      Transport transport, const std::string& pair = "tls/client") const;
  // An authority that no server knows, in Path(name).
  void MakeAuthority(const std::string& name) const;

 private:
  TemporaryDirectory directory_;
};

// A call of any method whose messages are bytes, with a token unless that is empty.
class RawCall {
 public:
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
          const std::string& token);
  ~RawCall();

  // False if the call is over.
  bool Write(const std::string& message, bool is_last = false);
  // Nothing: no message comes any more.
  std::optional<std::string> Read();
  grpc::Status Finish();
  void Cancel() { context_.TryCancel(); }

 private:
  bool Wait();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool is_open_ = false;
};

// One call of any method as bytes: a message, the end of messages, and what comes back.
struct RawAnswer {
  grpc::Status status;
  std::vector<std::string> messages;
};

// Calls `path` with `token`, unless it is empty. The call is cancelled after `messages_max`
// answers, of which an endless stream has many.
RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                  const std::string& request, const std::string& token,
                  std::size_t messages_max = 1000);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_INTEGRATION_SECURE_SERVER_H_
