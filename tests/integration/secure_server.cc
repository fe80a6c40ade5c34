#include "tests/integration/secure_server.h"

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace softlookup::testing {
namespace {

// Far longer than any answer takes.
constexpr std::chrono::seconds kDeadline(60);

grpc::ByteBuffer BytesOf(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::string TextOf(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(bytes.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

}  // namespace

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void Replace(const std::string& path, const std::string& contents) {
  std::ofstream(path + ".new", std::ios::binary) << contents;
  EXPECT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
}

SecurityFiles::SecurityFiles() {
  MakeAuthority("tls");
  Replace(auth(), R"({"identities": []})");
}

void SecurityFiles::MakeAuthority(const std::string& name) const {
  const CommandResult made = RunCommand({ToolBinary(), "tls", "init", Path(name)});
  EXPECT_EQ(made.exit_code, 0) << made.err;
}

std::string SecurityFiles::AddIdentity(const std::string& name, const std::string& role,
                                       const std::string& stores) const {
  CommandResult added =
      RunCommand({ToolBinary(), "auth", "add", auth(), name, "--role", role, "--stores", stores});
  EXPECT_EQ(added.exit_code, 0) << added.err;
  if (!added.out.empty()) added.out.pop_back();
  return added.out;
}

std::vector<std::string> SecurityFiles::Flags(Transport transport) const {
  std::vector<std::string> flags = {"--auth", auth()};
  if (transport == Transport::kPlaintext) return flags;
  flags.insert(flags.end(), {"--tls-certificate", Path("tls/server.pem"), "--tls-key",
                             Path("tls/server-key.pem")});
  if (transport == Transport::kMutualTls) {
    flags.insert(flags.end(), {"--tls-client-ca", Path("tls/ca.pem")});
  }
  return flags;
}

std::shared_ptr<grpc::ChannelCredentials> SecurityFiles::ClientCredentials(
    Transport transport, const std::string& pair) const {
  if (transport == Transport::kPlaintext) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = Contents(Path("tls/ca.pem"));
  if (transport == Transport::kMutualTls && !pair.empty()) {
    options.pem_cert_chain = Contents(Path(pair + ".pem"));
    options.pem_private_key = Contents(Path(pair + "-key.pem"));
  }
  return grpc::SslCredentials(options);
}

RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                  const std::string& request, const std::string& token, std::size_t messages_max) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, path, &queue);
  const auto wait = [&] {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return ok;
  };
  RawAnswer answer;
  call->StartCall(nullptr);
  if (wait()) {
    call->WriteLast(BytesOf(request), grpc::WriteOptions(), nullptr);
    wait();
    grpc::ByteBuffer message;
    for (call->Read(&message, nullptr); wait(); call->Read(&message, nullptr)) {
      answer.messages.push_back(TextOf(message));
      if (answer.messages.size() == messages_max) context.TryCancel();
    }
  }
  call->Finish(&answer.status, nullptr);
  wait();
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
  }
  return answer;
}

}  // namespace softlookup::testing
