#include "server/security/tls_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace softlookup::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

// Signed by itself. Valid from 2026-11-27T15:22:54Z to 2026-12-07T15:22:54Z. Its private key is
// gone.
constexpr char kCertificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBjjCCATWgAwIBAgIUProjl/mHAnyFnGTa9mL6Pr8FUM8wCgYIKoZIzj0EAwIw\n"
    "HTEbMBkGA1UEAwwSc29mdGxvb2t1cC5leGFtcGxlMB4XDTI2MTEyNzE1MjI1NFoX\n"
    "DTI2MTIwNzE1MjI1NFowHTEbMBkGA1UEAwwSc29mdGxvb2t1cC5leGFtcGxlMFkw\n"
    "EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAECv2KmBZ8JSkJ45FHdyQqwpFkuNNcv06g\n"
    "jBbmB+FUhLzdu4UQQ3Spmf/SDyOVAB23+ZqrbpLM0A0RMlpmqjKdqKNTMFEwHQYD\n"
    "VR0OBBYEFF/D3P9DCINPJ3gqn3sD0UtFgD/QMB8GA1UdIwQYMBaAFF/D3P9DCINP\n"
    "J3gqn3sD0UtFgD/QMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIg\n"
    "ITTlePuFGMlMYF0IPKAL778lkYqJcirhkYefkGw3J9ICIBxaYh4kImEhwnW1r4UH\n"
    "QBOOTs5BdlPLNG1TZ/YubzNK\n"
    "-----END CERTIFICATE-----\n";

// Signed by itself, for clients alone (clientAuth), from 2026-11-28 to 2026-12-08. Its private key
// is gone.
constexpr char kClientCertificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBozCCAUqgAwIBAgIUX9CHpNJ8IY0JW2RlcNxxCUP9GawwCgYIKoZIzj0EAwIw\n"
    "HTEbMBkGA1UEAwwSc29mdGxvb2t1cC5leGFtcGxlMB4XDTI2MTEyODAxMjcxOVoX\n"
    "DTI2MTIwODAxMjcxOVowHTEbMBkGA1UEAwwSc29mdGxvb2t1cC5leGFtcGxlMFkw\n"
    "EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEvLtsT1HN5gyKdphtfjP3m2RP5yzk4fqp\n"
    "b0PCQMcjmToGF+uhAycVWjvZKRR0isLFLUp4JIwOh38mPq6cHUc7faNoMGYwHQYD\n"
    "VR0OBBYEFHwgwbXjO2FB3iCpvgpF1GZw5pb9MB8GA1UdIwQYMBaAFHwgwbXjO2FB\n"
    "3iCpvgpF1GZw5pb9MA8GA1UdEwEB/wQFMAMBAf8wEwYDVR0lBAwwCgYIKwYBBQUH\n"
    "AwIwCgYIKoZIzj0EAwIDRwAwRAIgT6FZd8uXv+gHhJtktigMZ2vkl38i8dMGv/cI\n"
    "bJmib50CIHHg699dSRuHQc6RVjfYIa+p5+tBZk4JjQpRPjMotzgx\n"
    "-----END CERTIFICATE-----\n";

absl::Time AtDay(int month, int day, int second) {
  return absl::FromCivil(absl::CivilSecond(2026, month, day, 15, 22, second), absl::UTCTimeZone());
}

TEST(CertificateWarningTest, IsGivenBeforeACertificateIsValidAndAfterThat) {
  const TlsConfig config{.certificate = kCertificate, .private_key = "", .client_ca = ""};
  EXPECT_THAT(CertificateWarning(config, AtDay(11, 27, 53)),
              Optional(HasSubstr("--tls-certificate: is valid only from 2026-11-27T15:22:54Z on")));
  EXPECT_EQ(CertificateWarning(config, AtDay(11, 27, 54)), std::nullopt);
  EXPECT_EQ(CertificateWarning(config, AtDay(12, 7, 54)), std::nullopt);
  EXPECT_THAT(CertificateWarning(config, AtDay(12, 7, 55)),
              Optional(HasSubstr("--tls-certificate: has expired at 2026-12-07T15:22:54Z")));
}

TEST(CertificateWarningTest, IsGivenForACertificateThatIsNotForServers) {
  const TlsConfig config{.certificate = kClientCertificate, .private_key = "", .client_ca = ""};
  EXPECT_THAT(CertificateWarning(config, AtDay(12, 1, 0)),
              Optional(HasSubstr("--tls-certificate: is not for servers")));
}

TEST(CertificateEndTest, IsThatOfTheCertificateInUse) {
  const TlsConfig config{.certificate = kCertificate, .private_key = "", .client_ca = ""};
  EXPECT_EQ(CertificateEnd(config), AtDay(12, 7, 54));
  TlsCredentials credentials(/*clients_need_certificates=*/false);
  EXPECT_EQ(credentials.certificate_end(), absl::InfinitePast());
  credentials.Set(config);
  EXPECT_EQ(credentials.certificate_end(), AtDay(12, 7, 54));
}

}  // namespace
}  // namespace softlookup::server
