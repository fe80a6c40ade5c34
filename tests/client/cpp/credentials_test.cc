#include "softlookup/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/client/dated_certificates.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kCertificate[] = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----";
constexpr char kKey[] = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----";

std::string MessageOf(const absl::Status& status) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(LoadCredentialsTest, ReadsEveryFileThatIsNamed) {
  const TemporaryFile ca("ca.pem", std::string(kCertificate) + "\n");
  const TemporaryFile certificate("client.pem", kCertificate);
  const TemporaryFile key("client-key.pem", kKey);
  const TemporaryFile token("token", "\t abc-_.~+/= \r\n");
  const auto credentials = LoadCredentials({.tls_ca = ca.path(),
                                            .tls_certificate = certificate.path(),
                                            .tls_key = key.path(),
                                            .token = token.path()});
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->tls_ca, kCertificate);
  EXPECT_EQ(credentials->tls_certificate, kCertificate);
  EXPECT_EQ(credentials->tls_key, kKey);
  EXPECT_EQ(credentials->token, "abc-_.~+/=");
  EXPECT_TRUE(credentials->uses_tls());
}

TEST(LoadCredentialsTest, NoFilesAreNoCredentials) {
  const auto credentials = LoadCredentials({});
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_FALSE(credentials->uses_tls());
  EXPECT_EQ(credentials->token, "");
}

TEST(LoadCredentialsTest, TokenAloneIsPlaintext) {
  const TemporaryFile token("token", "abc");
  EXPECT_FALSE(LoadCredentials({.token = token.path()})->uses_tls());
}

TEST(LoadCredentialsTest, RefusedTokenFileIsNamedAndItsContentIsNot) {
  for (const std::string content : {"", " \n", "secret secret", "secret\nsecret", "secret\x01",
                                    "secret\x7f", "secr\xc3\xa9t"}) {
    const TemporaryFile token("token", content);
    const std::string message = MessageOf(LoadCredentials({.token = token.path()}).status());
    EXPECT_THAT(message, StartsWith(token.path() + ": "));
    EXPECT_THAT(message, Not(HasSubstr("secr")));
  }
}

TEST(LoadCredentialsTest, TokenThatEndsInNulIsRefused) {
  const TemporaryFile token("token", std::string("secret\0", 7));
  EXPECT_THAT(MessageOf(LoadCredentials({.token = token.path()}).status()),
              HasSubstr("printable ASCII"));
}

TEST(LoadCredentialsTest, TokenIsAtMost4096CharactersLong) {
  const TemporaryFile longest("token", std::string(4096, 'a'));
  EXPECT_TRUE(LoadCredentials({.token = longest.path()}).ok());
  const TemporaryFile longer("token", std::string(4097, 'a'));
  EXPECT_THAT(MessageOf(LoadCredentials({.token = longer.path()}).status()),
              HasSubstr("longer than 4096"));
}

TEST(LoadCredentialsTest, FileThatIsMissingOrNoFileIsNamed) {
  const testing::TemporaryDirectory directory;
  const std::string missing = directory.path() + "/missing";
  EXPECT_EQ(MessageOf(LoadCredentials({.token = missing}).status()),
            missing + ": No such file or directory");
  EXPECT_EQ(MessageOf(LoadCredentials({.tls_ca = directory.path()}).status()),
            directory.path() + ": Is a directory");
}

TEST(LoadCredentialsTest, FileOverAMebibyteIsRefused) {
  const TemporaryFile large("ca.pem", std::string((1 << 20) + 1, 'a'));
  EXPECT_THAT(MessageOf(LoadCredentials({.tls_ca = large.path()}).status()),
              HasSubstr("larger than 1 MiB"));
}

TEST(LoadCredentialsTest, FilesInTheWrongPlaceAreToldApart) {
  const TemporaryFile certificate("client.pem", kCertificate), key("key.pem", kKey);
  EXPECT_EQ(MessageOf(LoadCredentials({.tls_ca = key.path()}).status()),
            key.path() + ": has a private key instead of a certificate");
  EXPECT_EQ(MessageOf(LoadCredentials(
                          {.tls_certificate = certificate.path(), .tls_key = certificate.path()})
                          .status()),
            certificate.path() + ": has no PEM private key");
  for (const char* content : {"-----BEGIN ENCRYPTED PRIVATE KEY-----\n",
                              "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"}) {
    const TemporaryFile encrypted("key.pem", content);
    EXPECT_THAT(MessageOf(LoadCredentials(
                              {.tls_certificate = certificate.path(), .tls_key = encrypted.path()})
                              .status()),
                HasSubstr("encrypted private key"));
  }
}

TEST(LoadCredentialsTest, ClientCertificateOutOfItsDatesIsNamedWithTheDate) {
  const TemporaryFile key("key.pem", kKey);
  const TemporaryFile expired("expired.pem", testing::kExpiredCertificate);
  const TemporaryFile future("future.pem", testing::kFutureCertificate);
  const auto message = [&](const TemporaryFile& certificate) {
    return MessageOf(
        LoadCredentials({.tls_certificate = certificate.path(), .tls_key = key.path()}).status());
  };
  EXPECT_THAT(message(expired),
              StartsWith(expired.path() + ": has expired at 2020-02-01T12:34:56Z"));
  EXPECT_THAT(message(future),
              StartsWith(future.path() + ": is valid only from 2999-01-01T01:02:03Z on"));
  // An authority may be out of its dates: others of the same file may be valid.
  EXPECT_TRUE(LoadCredentials({.tls_ca = expired.path()}).ok());
}

TEST(ValidateCredentialsTest, ClientCertificateOutOfItsDatesIsRefused) {
  EXPECT_THAT(MessageOf(ValidateCredentials(
                  {.tls_certificate = testing::kExpiredCertificate, .tls_key = kKey})),
              StartsWith("Credentials::tls_certificate has expired at 2020-02-01T12:34:56Z"));
}

TEST(ValidateCredentialsTest, CertificateAndKeyGoTogether) {
  EXPECT_TRUE(ValidateCredentials({}).ok());
  EXPECT_TRUE(ValidateCredentials({.tls_certificate = kCertificate, .tls_key = kKey}).ok());
  EXPECT_THAT(MessageOf(ValidateCredentials({.tls_certificate = kCertificate})),
              HasSubstr("go together"));
  EXPECT_THAT(MessageOf(ValidateCredentials({.tls_key = kKey})), HasSubstr("go together"));
}

TEST(ValidateCredentialsTest, RefusedTokenIsNotInTheMessage) {
  const std::string message = MessageOf(ValidateCredentials({.token = "my secret"}));
  EXPECT_THAT(message, StartsWith("Credentials::token "));
  EXPECT_THAT(message, Not(HasSubstr("secret")));
}

TEST(ValidateCredentialsTest, ATokenThatEndsInALineBreakIsToldSo) {
  for (const char* token : {"secret\n", "secret\r\n", "\n"}) {
    const std::string message = MessageOf(ValidateCredentials({.token = token}));
    EXPECT_THAT(message, StartsWith("Credentials::token ends in a line break: trim "));
    EXPECT_THAT(message, Not(HasSubstr("secret")));
  }
  EXPECT_THAT(MessageOf(ValidateCredentials({.token = "secret "})), HasSubstr("white space"));
}

}  // namespace
}  // namespace softlookup
