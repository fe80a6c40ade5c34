#include "client/cpp/certificate_validity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "tests/client/dated_certificates.h"

namespace softlookup::client_internal {
namespace {

using ::softlookup::testing::kExpiredCertificate;
using ::softlookup::testing::kFutureCertificate;
using ::testing::StartsWith;

absl::Time UtcTime(int year, int month, int day, int hour = 0, int minute = 0, int second = 0) {
  return absl::FromCivil(absl::CivilSecond(year, month, day, hour, minute, second),
                         absl::UTCTimeZone());
}

TEST(ValidityFaultTest, HasTheDateBeforeACertificateIsValidAndAfterThat) {
  const absl::Time begin = UtcTime(2020, 1, 1), end = UtcTime(2020, 2, 1, 12, 34, 56);
  EXPECT_THAT(ValidityFault(kExpiredCertificate, begin - absl::Seconds(1)),
              StartsWith("is valid only from 2020-01-01T00:00:00Z on"));
  EXPECT_EQ(ValidityFault(kExpiredCertificate, begin), "");
  EXPECT_EQ(ValidityFault(kExpiredCertificate, end), "");
  EXPECT_THAT(ValidityFault(kExpiredCertificate, end + absl::Seconds(1)),
              StartsWith("has expired at 2020-02-01T12:34:56Z"));
}

// From 2050 on, a certificate has its dates in another form.
TEST(ValidityFaultTest, ReadsDatesOfTheFarFuture) {
  EXPECT_EQ(ValidityFault(kFutureCertificate, UtcTime(2999, 6, 1)), "");
  EXPECT_THAT(ValidityFault(kFutureCertificate, UtcTime(3000, 1, 1)),
              StartsWith("has expired at 2999-12-31T00:00:00Z"));
}

TEST(ValidityFaultTest, JudgesTheFirstCertificateOnly) {
  const std::string chain = std::string(kFutureCertificate) + kExpiredCertificate;
  EXPECT_EQ(ValidityFault(chain, UtcTime(2999, 6, 1)), "");
}

TEST(ValidityFaultTest, FindsNothingInWhatDoesNotParse) {
  for (const char* pem :
       {"", "no PEM", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----"}) {
    EXPECT_EQ(ValidityFault(pem, absl::UnixEpoch()), "") << pem;
  }
}

}  // namespace
}  // namespace softlookup::client_internal
