#include "server/observability/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "softlookup/engine.h"

namespace softlookup::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string PageOf(const SecurityStats& security) {
  const std::unique_ptr<Engine> engine = Engine::Create({});
  return MetricsPage(*engine, /*replication=*/nullptr, ReplicaName(), CallMetrics(), ProcessStats(),
                     DiskStats(), security, /*ready=*/true);
}

TEST(MetricsPageTest, ShowsWhatBecameOfChangedFilesAndWhenTheCertificateExpires) {
  SecurityStats security;
  security.tls = {.applied = 2, .rejected = 3, .is_rejected = true};
  security.auth = {.applied = 5, .rejected = 7, .is_rejected = false};
  security.certificate_end = absl::FromUnixSeconds(1'800'000'000);
  EXPECT_THAT(PageOf(security),
              AllOf(HasSubstr("softlookup_reloads_total{files=\"tls\",result=\"applied\"} 2\n"),
                    HasSubstr("softlookup_reloads_total{files=\"tls\",result=\"rejected\"} 3\n"),
                    HasSubstr("softlookup_reloads_total{files=\"auth\",result=\"applied\"} 5\n"),
                    HasSubstr("softlookup_reloads_total{files=\"auth\",result=\"rejected\"} 7\n"),
                    HasSubstr("softlookup_reload_rejected{files=\"tls\"} 1\n"),
                    HasSubstr("softlookup_reload_rejected{files=\"auth\"} 0\n"),
                    HasSubstr("\nsoftlookup_tls_certificate_expiry_time_seconds 1800000000\n")));
}

TEST(MetricsPageTest, WithoutTlsNoCertificateExpires) {
  EXPECT_THAT(PageOf({}),
              AllOf(HasSubstr("# TYPE softlookup_tls_certificate_expiry_time_seconds gauge\n"),
                    Not(HasSubstr("\nsoftlookup_tls_certificate_expiry_time_seconds "))));
}

}  // namespace
}  // namespace softlookup::server
