// What /metrics says of certificates and of the auth file, as they change.
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/metrics_text.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {
namespace {

constexpr char kCertificateExpiry[] = "softlookup_tls_certificate_expiry_time_seconds";

class SecurityMetricsTest : public ::testing::Test {
 protected:
  static double Value(const ServerProcess& server, const std::string& sample) {
    httplib::Client http("http://" + server.http_address());
    const httplib::Result answer = http.Get("/metrics");
    if (!answer) {
      ADD_FAILURE() << "no answer";
      return -1;
    }
    const absl::StatusOr<MetricsText> metrics = ParseMetricsText(answer->body);
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    return metrics.ok() ? metrics->Value(sample, -1) : -1;
  }

  static std::string Reloads(const std::string& files, const std::string& result) {
    return "softlookup_reloads_total{files=\"" + files + "\",result=\"" + result + "\"}";
  }

  const SecurityFiles files_;
};

TEST_F(SecurityMetricsTest, ChangesOfTheAuthFileAreCountedAndARejectedOneShowsUntilItIsMended) {
  const std::string rejected_now = "softlookup_reload_rejected{files=\"auth\"}";
  const ServerProcess server(files_.Flags(Transport::kPlaintext));
  EXPECT_EQ(Value(server, Reloads("auth", "applied")), 0);
  EXPECT_EQ(Value(server, Reloads("auth", "rejected")), 0);
  EXPECT_EQ(Value(server, rejected_now), 0);
  Replace(files_.auth(), "{");
  kill(server.pid(), SIGHUP);
  EXPECT_TRUE(AwaitThat([&] { return Value(server, Reloads("auth", "rejected")) > 0; }));
  EXPECT_EQ(Value(server, rejected_now), 1);
  EXPECT_EQ(Value(server, Reloads("auth", "applied")), 0);
  Replace(files_.auth(), R"({"identities": []})");
  kill(server.pid(), SIGHUP);
  EXPECT_TRUE(AwaitThat([&] { return Value(server, Reloads("auth", "applied")) > 0; }));
  EXPECT_EQ(Value(server, rejected_now), 0);
  EXPECT_EQ(Value(server, Reloads("auth", "rejected")), 1);
  EXPECT_EQ(Value(server, Reloads("tls", "applied")), 0);
  EXPECT_EQ(Value(server, kCertificateExpiry), -1) << "there is no certificate";
}

TEST_F(SecurityMetricsTest, TheExpiryIsThatOfTheCertificateInUse) {
  const ServerProcess server(files_.Flags(Transport::kTls));
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  const double expiry = Value(server, kCertificateExpiry);
  EXPECT_GT(expiry, now + 800 * 86400.0);
  EXPECT_LT(expiry, now + 826 * 86400.0);
  // A certificate without its key is not used.
  files_.MakeAuthority("other");
  Replace(files_.Path("tls/server.pem"), Contents(files_.Path("other/ca.pem")));
  kill(server.pid(), SIGHUP);
  EXPECT_TRUE(AwaitThat([&] { return Value(server, Reloads("tls", "rejected")) > 0; }));
  EXPECT_EQ(Value(server, kCertificateExpiry), expiry);
  Replace(files_.Path("tls/server-key.pem"), Contents(files_.Path("other/ca-key.pem")));
  kill(server.pid(), SIGHUP);
  EXPECT_TRUE(AwaitThat([&] { return Value(server, Reloads("tls", "applied")) > 0; }));
  EXPECT_GT(Value(server, kCertificateExpiry), now + 3600 * 86400.0);
}

}  // namespace
}  // namespace softlookup::testing
