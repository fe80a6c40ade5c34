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

RawCall::RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                 const std::string& token) {
  context_.set_deadline(std::chrono::system_clock::now() + kDeadline);
  if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
  call_ = grpc::GenericStub(channel).PrepareCall(&context_, path, &queue_);
  call_->StartCall(nullptr);
  is_open_ = Wait();
}

RawCall::~RawCall() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool RawCall::Write(const std::string& message, bool is_last) {
  if (!is_open_) return false;
  const auto options = is_last ? grpc::WriteOptions().set_last_message() : grpc::WriteOptions();
  call_->Write(BytesOf(message), options, nullptr);
  return Wait();
}

std::optional<std::string> RawCall::Read() {
  if (!is_open_) return std::nullopt;
  grpc::ByteBuffer message;
  call_->Read(&message, nullptr);
  if (!Wait()) return std::nullopt;
  return TextOf(message);
}

grpc::Status RawCall::Finish() {
  grpc::Status status;
  call_->Finish(&status, nullptr);
  Wait();
  return status;
}

bool RawCall::Wait() {
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue_.Next(&tag, &ok));
  return ok;
}

RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                  const std::string& request, const std::string& token, std::size_t messages_max) {
  RawCall call(channel, path, token);
  call.Write(request, /*is_last=*/true);
  RawAnswer answer;
  while (const std::optional<std::string> message = call.Read()) {
    answer.messages.push_back(*message);
    if (answer.messages.size() == messages_max) call.Cancel();
  }
  answer.status = call.Finish();
  return answer;
}

}  // namespace softlookup::testing
