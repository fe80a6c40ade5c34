// Clients with TLS and a token, against a real gRPC server in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/cpp/tls_failure.h"
#include "client/loadtest/connections.h"
#include "softlookup/client.h"
#include "tests/client/scripted_service.h"
#include "tests/client/test_certificates.h"

namespace softlookup {
namespace {

using ::softlookup::client_internal::TlsFailure;
using ::softlookup::client_internal::TlsFailureOf;
using ::softlookup::testing::ScriptedService;
using ::softlookup::testing::TestCertificates;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

absl::Status Ask(const ScriptedService& service, const Credentials& credentials) {
  ClientOptions options;
  options.credentials = credentials;
  // A call that is retried although TLS failed never ends.
  options.deadline = absl::InfiniteDuration();
  options.retry.attempts_max = std::numeric_limits<int>::max();
  auto client = Client::Connect(service.address(), options);
  if (!client.ok()) return client.status();
  return client->Health().status();
}

class TlsTest : public ::testing::Test {
 protected:
  Credentials Trusting() const { return {.tls_ca = certificates_.authority.pem().certificate}; }
  Credentials WithClientPair() const {
    Credentials credentials = Trusting();
    credentials.tls_certificate = certificates_.client.certificate;
    credentials.tls_key = certificates_.client.key;
    return credentials;
  }

  const TestCertificates certificates_;
};

TEST_F(TlsTest, ServerWithTheRightAuthorityIsReached) {
  const ScriptedService service(certificates_.ServerCredentials());
  const absl::Status status = Ask(service, Trusting());
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(TlsTest, ServerOfAnotherAuthorityIsRefusedAtOnce) {
  const ScriptedService service(certificates_.ServerCredentials());
  const TestCertificates others;
  const absl::Status status = Ask(service, {.tls_ca = others.authority.pem().certificate});
  EXPECT_EQ(TlsFailureOf(status), TlsFailure::kUntrusted) << status;
}

TEST_F(TlsTest, ServerOfTheSystemsAuthoritiesAlone) {
  const ScriptedService service(certificates_.ServerCredentials());
  EXPECT_EQ(TlsFailureOf(Ask(service, {.tls = true})), TlsFailure::kUntrusted);
}

TEST_F(TlsTest, CertificateForAnotherHostIsRefused) {
  const TestCertificates elsewhere({"example.com"});
  const ScriptedService service(elsewhere.ServerCredentials());
  const absl::Status status = Ask(service, {.tls_ca = elsewhere.authority.pem().certificate});
  EXPECT_EQ(TlsFailureOf(status), TlsFailure::kWrongHost) << status;
}

// One authority, and a certificate for each server's own host.
TEST_F(TlsTest, OfSeveralServersOnlyThoseAreCalledWhoseCertificateNamesTheirHost) {
  const auto serve = [&](const std::string& host) {
    const tool::PemPair pair = *certificates_.authority.IssueServer({host});
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({pair.key, pair.certificate});
    return grpc::SslServerCredentials(options);
  };
  const ScriptedService wrong(serve("example.com")), right(serve("127.0.0.1"));
  ClientOptions options;
  options.credentials = Trusting();
  options.deadline = absl::InfiniteDuration();
  Client client = *Client::Connect(wrong.address() + "," + right.address(), options);
  EXPECT_EQ(*client.Health(), ServingStatus::kServing);
  // Each server is checked for the host by which it is named.
  const std::string port = wrong.address().substr(wrong.address().rfind(':'));
  Client none = *Client::Connect(wrong.address() + ",localhost" + port, options);
  EXPECT_EQ(TlsFailureOf(none.Health().status()), TlsFailure::kWrongHost);
}

TEST_F(TlsTest, PlaintextServerIsToldFromOneThatIsGone) {
  const ScriptedService service;
  EXPECT_EQ(TlsFailureOf(Ask(service, Trusting())), TlsFailure::kPlaintextServer);
  EXPECT_EQ(TlsFailureOf(absl::UnavailableError("Connection refused")), TlsFailure::kNone);
  EXPECT_EQ(TlsFailureOf(absl::OkStatus()), TlsFailure::kNone);
}

TEST_F(TlsTest, ServerThatAsksForACertificateTakesOneOfItsAuthority) {
  const ScriptedService service(certificates_.ServerCredentials(/*ask_client=*/true));
  const absl::Status status = Ask(service, WithClientPair());
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(TlsTest, ServerThatAsksForACertificateTakesNoOther) {
  const ScriptedService service(certificates_.ServerCredentials(/*ask_client=*/true));
  ClientOptions options;
  options.retry.attempts_max = 1;
  const TestCertificates others;
  for (Credentials credentials : {Trusting(), WithClientPair()}) {
    if (!credentials.tls_key.empty()) {
      credentials.tls_certificate = others.client.certificate;
      credentials.tls_key = others.client.key;
    }
    options.credentials = credentials;
    EXPECT_TRUE(
        absl::IsUnavailable(Client::Connect(service.address(), options)->Health().status()));
  }
}

TEST_F(TlsTest, MalformedCredentialsAreRefusedBeforeACall) {
  ClientOptions options;
  options.credentials.token = "my secret";
  const absl::Status status = Client::Connect("127.0.0.1:1", options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  EXPECT_TRUE(absl::IsInvalidArgument(
      loadtest::Connections::Open("127.0.0.1:1", 1, absl::Seconds(1), options.credentials)
          .status()));
}

TEST_F(TlsTest, LoadTestersConnectionsUseThem) {
  const ScriptedService service(certificates_.ServerCredentials(/*ask_client=*/true));
  const auto connections =
      loadtest::Connections::Open(service.address(), 2, absl::Seconds(30), WithClientPair());
  ASSERT_TRUE(connections.ok()) << connections.status();
  EXPECT_THAT(*connections, SizeIs(2));
}

// Every call says who makes it, over plaintext and over TLS.
class TokenTest : public TlsTest, public ::testing::WithParamInterface<bool> {
 protected:
  TokenTest() : service_(GetParam() ? certificates_.ServerCredentials() : nullptr) {
    service_.get_store = [this](auto* context, const auto&, auto*) { return Note(context); };
    service_.create_store = [this](auto* context, const auto&, auto*) { return Note(context); };
    service_.read_rows = [this](auto* context, const auto&, auto*) { return Note(context); };
    service_.watch_memory = [this](auto* context, const auto&, auto*) { return Note(context); };
    service_.get_writer = [this](auto* context, const v1::GetWriterRequest& request,
                                 v1::Writer* writer) {
      writer->set_writer(request.writer());
      return Note(context);
    };
    service_.stream_append = [this](grpc::ServerContext* context,
                                    ScriptedService::AppendServerStream* stream) {
      Note(context);
      v1::AppendRequest request;
      while (stream->Read(&request)) {
        if (streams_to_break_ > 0) {
          --streams_to_break_;
          return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
        }
        v1::AppendResponse response;
        response.set_sequence(request.sequence());
        response.set_appended_count(request.keys().rows());
        stream->Write(response);
      }
      return grpc::Status::OK;
    };
  }

  Client Connect(const std::string& token = "abc") {
    ClientOptions options;
    if (GetParam()) options.credentials = Trusting();
    options.credentials.token = token;
    options.retry.backoff_min = absl::Milliseconds(1);
    options.retry.backoff_max = absl::Milliseconds(2);
    return *Client::Connect(service_.address(), options);
  }

  grpc::Status Note(grpc::ServerContext* context) {
    std::string all;  // In one string, so that a second one would show.
    const auto [begin, end] = context->client_metadata().equal_range("authorization");
    for (auto it = begin; it != end; ++it) all += std::string(it->second.data(), it->second.size());
    const absl::MutexLock lock(&mutex_);
    seen_.push_back(all);
    return failures_-- > 0 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "busy") : grpc::Status::OK;
  }

  std::vector<std::string> TakeSeen() {
    const absl::MutexLock lock(&mutex_);
    return std::exchange(seen_, {});
  }

  ScriptedService service_;
  int failures_ = 0;          // Of the next calls.
  int streams_to_break_ = 0;  // Before anything is acknowledged.
  absl::Mutex mutex_;
  std::vector<std::string> seen_ ABSL_GUARDED_BY(mutex_);
};

const FloatMatrix kRow{1, 1, {1}};

TEST_P(TokenTest, UnaryCallsAndTheirRetriesCarryIt) {
  Client client = Connect();
  EXPECT_TRUE(client.CreateStore({}).ok());
  failures_ = 2;
  EXPECT_TRUE(client.GetStore("a").ok());
  EXPECT_THAT(TakeSeen(), AllOf(SizeIs(4), Each("Bearer abc")));
}

TEST_P(TokenTest, StreamsOfTheServerCarryIt) {
  Client client = Connect();
  EXPECT_TRUE(client.ReadRows("a", {}, [](const auto&) { return true; }).ok());
  EXPECT_TRUE(client.WatchMemory("a", "", [](const auto&) { return true; }).ok());
  EXPECT_THAT(TakeSeen(), ElementsAre("Bearer abc", "Bearer abc"));
}

TEST_P(TokenTest, AppendStreamCarriesIt) {
  AppendStream stream = *Connect().OpenAppendStream("a");
  EXPECT_TRUE(stream.Append(kRow, kRow).ok());
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_THAT(TakeSeen(), ElementsAre("Bearer abc"));
}

TEST_P(TokenTest, EveryReconnectionOfAnAppendStreamCarriesIt) {
  streams_to_break_ = 2;
  AppendStream stream = *Connect().OpenAppendStream("a", {.writer = "w"});
  EXPECT_TRUE(stream.Append(kRow, kRow).ok());
  const auto summary = stream.Finish();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->reconnections, 2u);
  // A question about the writer comes before each of the three streams.
  EXPECT_THAT(TakeSeen(), AllOf(SizeIs(6), Each("Bearer abc")));
}

TEST_P(TokenTest, ClientWithoutATokenSendsNone) {
  EXPECT_TRUE(Connect("").GetStore("a").ok());
  EXPECT_THAT(TakeSeen(), ElementsAre(""));
}

INSTANTIATE_TEST_SUITE_P(PlaintextAndTls, TokenTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Plaintext"; });

}  // namespace
}  // namespace softlookup
