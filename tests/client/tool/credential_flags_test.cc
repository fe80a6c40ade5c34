// The tool with TLS and a token, from its command line to its exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/client/dated_certificates.h"
#include "tests/client/scripted_service.h"
#include "tests/client/test_certificates.h"
#include "tests/client/tool/run_tool.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::ScriptedService;
using ::softlookup::testing::TemporaryFile;
using ::softlookup::testing::TestCertificates;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A variable of the environment, while the object lives. Made before the server, whose threads may
// read the environment.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), /*overwrite=*/1);
  }
  ~Variable() { unsetenv(name_); }

 private:
  const char* const name_;
};

class CredentialFlagsTest : public ::testing::Test {
 protected:
  Outcome Health(const ScriptedService& service, std::vector<std::string> flags = {}) {
    flags.push_back("health");
    return RunTool(service.address(), std::move(flags));
  }

  const TestCertificates certificates_;
  const TemporaryFile ca_{"ca.pem", certificates_.authority.pem().certificate};
  const TemporaryFile certificate_{"client.pem", certificates_.client.certificate};
  const TemporaryFile key_{"client-key.pem", certificates_.client.key};
};

TEST_F(CredentialFlagsTest, FlagsReachAServerThatAsksForACertificate) {
  const ScriptedService service(certificates_.ServerCredentials(/*ask_client=*/true));
  EXPECT_EQ(Health(service, {"--tls-ca", ca_.path(), "--tls-certificate", certificate_.path(),
                             "--tls-key", key_.path()})
                .error,
            "");
}

TEST_F(CredentialFlagsTest, EnvironmentDoesTheSame) {
  const Variable ca("SOFTLOOKUP_TLS_CA", ca_.path());
  const Variable certificate("SOFTLOOKUP_TLS_CERTIFICATE", certificate_.path());
  const Variable key("SOFTLOOKUP_TLS_KEY", key_.path());
  const ScriptedService service(certificates_.ServerCredentials(/*ask_client=*/true));
  EXPECT_EQ(Health(service).error, "");
}

// In the container, where the health check finds the server's variables.
TEST_F(CredentialFlagsTest, ServersOwnPairPassesAServerThatAsksForACertificate) {
  const TemporaryFile pair("server.pem", certificates_.server.certificate);
  const TemporaryFile pair_key("server-key.pem", certificates_.server.key);
  const Variable ca("SOFTLOOKUP_TLS_CA", ca_.path());
  const Variable certificate("SOFTLOOKUP_TLS_CERTIFICATE", pair.path());
  const Variable key("SOFTLOOKUP_TLS_KEY", pair_key.path());
  const ScriptedService service(certificates_.ServerCredentials(/*ask_client=*/true));
  EXPECT_EQ(Health(service).error, "");
}

TEST_F(CredentialFlagsTest, TokenComesFromAFile) {
  const TemporaryFile token("token", "abc\n"), other("token", "def\n");
  const Variable variable("SOFTLOOKUP_TOKEN_FILE", token.path());
  std::string seen;
  ScriptedService service;
  service.get_store = [&](grpc::ServerContext* context, const auto&, auto*) {
    const auto it = context->client_metadata().find("authorization");
    if (it != context->client_metadata().end()) seen.assign(it->second.data(), it->second.size());
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunTool(service.address(), {"store", "get", "a"}).error, "");
  EXPECT_EQ(seen, "Bearer abc");
  EXPECT_EQ(RunTool(service.address(), {"store", "get", "a", "--token-file", other.path()}).error,
            "");
  EXPECT_EQ(seen, "Bearer def");
}

TEST_F(CredentialFlagsTest, HintsTellWhatToChange) {
  const TestCertificates elsewhere({"example.com"});
  const TemporaryFile other_ca("ca.pem", elsewhere.authority.pem().certificate);
  const ScriptedService plaintext, tls(certificates_.ServerCredentials()),
      mutual(certificates_.ServerCredentials(/*ask_client=*/true)),
      misnamed(elsewhere.ServerCredentials());
  const auto error = [&](const ScriptedService& service, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--timeout", "1"});  // Ends the retries of what may pass.
    const Outcome outcome = Health(service, std::move(flags));
    EXPECT_EQ(outcome.exit_code, ExitCode::kUnavailable);
    return outcome.error;
  };
  EXPECT_THAT(error(tls, {}), HasSubstr("it may serve TLS: --tls-ca"));
  EXPECT_THAT(error(plaintext, {"--tls-ca", ca_.path()}), HasSubstr("it does not serve TLS"));
  EXPECT_THAT(error(tls, {"--tls-ca", other_ca.path()}),
              HasSubstr("not of an authority in --tls-ca"));
  EXPECT_THAT(error(misnamed, {"--tls-ca", other_ca.path()}),
              HasSubstr("its certificate does not name this host (its authority can make one that "
                        "does: docs/security.md, Change a certificate)"));
  EXPECT_THAT(error(mutual, {"--tls-ca", ca_.path()}),
              HasSubstr("it may ask for a client certificate"));
  const TemporaryFile other_certificate("client.pem", elsewhere.client.certificate);
  const TemporaryFile other_key("client-key.pem", elsewhere.client.key);
  EXPECT_THAT(error(mutual, {"--tls-ca", ca_.path(), "--tls-certificate", other_certificate.path(),
                             "--tls-key", other_key.path()}),
              HasSubstr("it may not accept the certificate"));
}

TEST_F(CredentialFlagsTest, CertificateWithoutKeyIsAUsageError) {
  for (const char* flag : {"--tls-certificate", "--tls-key"}) {
    const Outcome outcome = RunTool("127.0.0.1:1", {"health", flag, key_.path()});
    EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
    EXPECT_THAT(outcome.error, HasSubstr("SOFTLOOKUP_TLS_KEY"));
  }
}

TEST_F(CredentialFlagsTest, FileThatDoesNotFitIsAnInputErrorThatNamesIt) {
  const TemporaryFile other_key("key.pem", TestCertificates().client.key);
  const TemporaryFile broken("broken.pem",
                             "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n");
  const TemporaryFile token("token", "two words");
  for (const auto& [flags, file] :
       std::vector<std::pair<std::vector<std::string>, const TemporaryFile*>>{
           {{"--tls-certificate", certificate_.path(), "--tls-key", other_key.path()}, &other_key},
           {{"--tls-ca", broken.path()}, &broken},
           {{"--tls-certificate", broken.path(), "--tls-key", key_.path()}, &broken},
           {{"--token-file", token.path()}, &token}}) {
    std::vector<std::string> arguments = flags;
    arguments.push_back("health");
    const Outcome outcome = RunTool("127.0.0.1:1", arguments);
    EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
    EXPECT_THAT(outcome.error, AllOf(StartsWith(file->path() + ": "), Not(HasSubstr("words"))));
  }
}

TEST_F(CredentialFlagsTest, ExpiredCertificateIsToldBeforeAnythingIsAsked) {
  const TemporaryFile expired("expired.pem", testing::kExpiredCertificate);
  const Outcome outcome = RunTool(
      "127.0.0.1:1", {"health", "--tls-certificate", expired.path(), "--tls-key", key_.path()});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_EQ(outcome.error, expired.path() +
                               ": has expired at 2020-02-01T12:34:56Z, so servers refuse it; put "
                               "a new one in its place");
}

TEST_F(CredentialFlagsTest, RefusedIdentityHasAnExitCodeOfItsOwn) {
  ScriptedService service;
  grpc::Status answer;
  service.get_store = [&](auto*, const auto&, auto*) { return answer; };
  answer = DetailedStatus(grpc::StatusCode::UNAUTHENTICATED, "who?", "UNAUTHENTICATED");
  Outcome outcome = RunTool(service.address(), {"store", "get", "a"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kUnauthenticated);
  EXPECT_EQ(static_cast<int>(outcome.exit_code), 10);
  EXPECT_THAT(outcome.error, HasSubstr("who? (--token-file"));
  answer = {grpc::StatusCode::PERMISSION_DENIED, "not a"};
  outcome = RunTool(service.address(), {"store", "get", "a"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kPermissionDenied);
  EXPECT_EQ(static_cast<int>(outcome.exit_code), 11);
  EXPECT_EQ(outcome.error, "PERMISSION_DENIED: not a");
}

TEST_F(CredentialFlagsTest, TextOfTheServersDoesNotCommandTheTerminal) {
  ScriptedService service;
  service.get_store = [&](auto*, const auto&, v1::Store* store) {
    (*store->mutable_labels())["note"] = "\x1b[2J\xc2\x9b";
    return grpc::Status::OK;
  };
  service.delete_store = [&](auto*, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "a\x1b[2Jb");
  };
  EXPECT_THAT(RunTool(service.address(), {"store", "get", "a"}).out,
              HasSubstr("note=\\x1b[2J\\xc2\\x9b\n"));
  EXPECT_EQ(RunTool(service.address(), {"store", "delete", "a"}).error, "INTERNAL: a\\x1b[2Jb");
}

}  // namespace
}  // namespace softlookup::tool
