#include "client/tool/certificate_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/tool/openssl_ptr.h"
#include "tests/client/tool/run_tool.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::tool {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

X509Ptr Parse(const std::string& pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return X509Ptr(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

EvpKeyPtr ParseKey(const std::string& pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return EvpKeyPtr(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

// X509_V_OK, or why `leaf` may not be used for `purpose` by who trusts `authority`.
int Verify(const std::string& authority, const std::string& leaf, int purpose) {
  const std::unique_ptr<X509_STORE, OpensslFree<X509_STORE_free>> store(X509_STORE_new());
  const X509Ptr root = Parse(authority), certificate = Parse(leaf);
  X509_STORE_add_cert(store.get(), root.get());
  X509_STORE_set_flags(store.get(), X509_V_FLAG_X509_STRICT);
  const std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>> context(
      X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr);
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  X509_verify_cert(context.get());
  return X509_STORE_CTX_get_error(context.get());
}

int DaysOf(const X509* certificate) {
  int days = 0, seconds = 0;
  EXPECT_EQ(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(certificate),
                           X509_get0_notAfter(certificate)),
            1);
  EXPECT_EQ(seconds, 0);
  return days;
}

std::string CommonName(X509* certificate) {
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
  return name;
}

// As OpenSSL prints them.
std::string AlternativeNames(const std::string& pem) {
  const X509Ptr certificate = Parse(pem);
  const int index = X509_get_ext_by_NID(certificate.get(), NID_subject_alt_name, -1);
  const BioPtr bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(X509V3_EXT_print(bio.get(), X509_get_ext(certificate.get(), index), 0, 0), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

class CertificateAuthorityTest : public ::testing::Test {
 protected:
  const CertificateAuthority authority_ = *CertificateAuthority::Create();
  const PemPair server_ = *authority_.IssueServer({"localhost", "127.0.0.1", "::1", "*.acme.test"});
  const PemPair client_ = *authority_.IssueClient("client");
};

TEST_F(CertificateAuthorityTest, ServerCertificateServesBothSidesAndAClientsItsOwnOnly) {
  const std::string& ca = authority_.pem().certificate;
  EXPECT_EQ(Verify(ca, server_.certificate, X509_PURPOSE_SSL_SERVER), X509_V_OK);
  EXPECT_EQ(Verify(ca, client_.certificate, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  EXPECT_EQ(Verify(ca, server_.certificate, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  EXPECT_EQ(Verify(ca, client_.certificate, X509_PURPOSE_SSL_SERVER), X509_V_ERR_INVALID_PURPOSE);
  const CertificateAuthority other = *CertificateAuthority::Create();
  EXPECT_NE(Verify(other.pem().certificate, server_.certificate, X509_PURPOSE_SSL_SERVER),
            X509_V_OK);
}

TEST_F(CertificateAuthorityTest, EveryKeyIsThatOfItsCertificate) {
  for (const PemPair* pair : {&authority_.pem(), &server_, &client_}) {
    const X509Ptr certificate = Parse(pair->certificate);
    const EvpKeyPtr key = ParseKey(pair->key);
    ASSERT_NE(certificate, nullptr);
    ASSERT_NE(key, nullptr);
    EXPECT_EQ(X509_check_private_key(certificate.get(), key.get()), 1);
    EXPECT_EQ(EVP_PKEY_get_bits(key.get()), 256);
    EXPECT_EQ(X509_get_signature_nid(certificate.get()), NID_ecdsa_with_SHA256);
  }
}

TEST_F(CertificateAuthorityTest, ServerCertificateNamesEveryHost) {
  const X509Ptr certificate = Parse(server_.certificate);
  EXPECT_EQ(CommonName(certificate.get()), "localhost");
  for (const char* host : {"localhost", "db.acme.test"}) {
    EXPECT_EQ(X509_check_host(certificate.get(), host, 0, 0, nullptr), 1) << host;
  }
  for (const char* address : {"127.0.0.1", "::1"}) {
    EXPECT_EQ(X509_check_ip_asc(certificate.get(), address, 0), 1) << address;
  }
  EXPECT_EQ(X509_check_host(certificate.get(), "acme.test", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(certificate.get(), "127.0.0.2", 0), 0);
}

TEST_F(CertificateAuthorityTest, ServerCertificateNamesAHostOnceHoweverItIsSpelled) {
  const PemPair pair = *authority_.IssueServer(
      {"localhost", "::1", "10.0.0.1", "LocalHost", "db", "0:0:0:0:0:0:0:1", "db", "10.0.0.1"});
  EXPECT_EQ(AlternativeNames(pair.certificate),
            "DNS:localhost, IP Address:0:0:0:0:0:0:0:1, IP Address:10.0.0.1, DNS:db");
}

TEST_F(CertificateAuthorityTest, ClientCertificateHasItsNameTwice) {
  const X509Ptr certificate = Parse(client_.certificate);
  EXPECT_EQ(CommonName(certificate.get()), "client");
  EXPECT_EQ(
      X509_check_host(certificate.get(), "client", 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr),
      1);
}

TEST_F(CertificateAuthorityTest, CertificatesAreValidFromAnHourAgoOn) {
  for (const auto& [pem, days] : {std::pair(&authority_.pem().certificate, kAuthorityDays),
                                  {&server_.certificate, kLeafDays},
                                  {&client_.certificate, kLeafDays}}) {
    const X509Ptr certificate = Parse(*pem);
    EXPECT_EQ(DaysOf(certificate.get()), days);
    std::time_t half_an_hour_ago = std::time(nullptr) - 1800;
    EXPECT_EQ(X509_cmp_time(X509_get0_notBefore(certificate.get()), &half_an_hour_ago), -1);
  }
}

TEST_F(CertificateAuthorityTest, AuthorityMaySignLeavesOnly) {
  const X509Ptr certificate = Parse(authority_.pem().certificate);
  EXPECT_EQ(X509_check_ca(certificate.get()), 1);
  EXPECT_EQ(X509_get_pathlen(certificate.get()), 0);
  EXPECT_EQ(X509_get_key_usage(certificate.get()), unsigned{KU_KEY_CERT_SIGN | KU_CRL_SIGN});
  EXPECT_EQ(X509_check_ca(Parse(server_.certificate).get()), 0);
}

TEST_F(CertificateAuthorityTest, SerialNumbersAreLongAndDiffer) {
  std::set<std::string> serials;
  for (const std::string* pem :
       {&authority_.pem().certificate, &server_.certificate, &client_.certificate}) {
    const X509Ptr certificate = Parse(*pem);
    const BignumPtr serial(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate.get()), nullptr));
    EXPECT_GT(BN_num_bits(serial.get()), 96);
    EXPECT_LE(BN_num_bits(serial.get()), 128);
    char* text = BN_bn2hex(serial.get());
    serials.insert(text);
    OPENSSL_free(text);
  }
  EXPECT_EQ(serials.size(), 3u);
}

TEST(IsHostTest, KnowsNamesAndAddresses) {
  for (const char* host :
       {"localhost", "db-1.acme.test", "*.acme.test", "10.0.0.1", "::1", "a_b"}) {
    EXPECT_TRUE(IsHost(host)) << host;
  }
  for (const std::string host :
       {"", ".", "a..b", "a,DNS:b", "a b", "*", "a.*.b", "-a", "a\n", "host:80", "[::1]"}) {
    EXPECT_FALSE(IsHost(host)) << host;
  }
  EXPECT_FALSE(IsHost(std::string(64, 'a')));
}

// `softlookup tls init`.
class TlsInitTest : public ::testing::Test {
 protected:
  Outcome Init(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"tls", "init", path_});
    return RunTool("127.0.0.1:1", std::move(arguments));
  }

  std::string Contents(const std::string& name) const {
    std::ifstream file(path_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  mode_t ModeOf(const std::string& name) const {
    struct stat attributes = {};
    EXPECT_EQ(stat((path_ + "/" + name).c_str(), &attributes), 0) << name;
    return attributes.st_mode & 07777;
  }

  // All files with their contents and when they were last changed.
  std::map<std::string, std::pair<std::string, std::filesystem::file_time_type>> Files() const {
    std::map<std::string, std::pair<std::string, std::filesystem::file_time_type>> files;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      const std::string name = entry.path().filename().string();
      files[name] = {Contents(name), entry.last_write_time()};
    }
    return files;
  }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/certs";
};

TEST_F(TlsInitTest, WritesPairsThatBelongTogetherAndKeysForTheirOwnerAlone) {
  const Outcome outcome = Init({"--host", "db.acme.test", "--host", "10.1.2.3"});
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(ModeOf(""), 0700u);
  for (const char* key : {"ca-key.pem", "server-key.pem", "client-key.pem"}) {
    EXPECT_EQ(ModeOf(key), 0600u) << key;
  }
  const X509Ptr server = Parse(Contents("server.pem"));
  for (const char* host : {"localhost", "db.acme.test"}) {
    EXPECT_EQ(X509_check_host(server.get(), host, 0, 0, nullptr), 1) << host;
  }
  for (const char* address : {"127.0.0.1", "::1", "10.1.2.3"}) {
    EXPECT_EQ(X509_check_ip_asc(server.get(), address, 0), 1) << address;
  }
  EXPECT_EQ(Verify(Contents("ca.pem"), Contents("server.pem"), X509_PURPOSE_SSL_SERVER), X509_V_OK);
  EXPECT_EQ(Verify(Contents("ca.pem"), Contents("client.pem"), X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  EXPECT_THAT(outcome.out, HasSubstr("--tls-client-ca " + path_ + "/ca.pem"));
}

TEST_F(TlsInitTest, NoFileIsOverwrittenAndNoneIsLeftBehind) {
  std::filesystem::create_directory(path_);
  std::ofstream(path_ + "/client-key.pem") << "mine";
  const Outcome outcome = Init();
  EXPECT_EQ(outcome.exit_code, ExitCode::kAlreadyExists);
  EXPECT_THAT(
      outcome.error,
      HasSubstr(path_ + "/client-key.pem exists and is not overwritten; the authority there "
                        "can make another certificate: docs/security.md, Change a "
                        "certificate; another directory gets a new authority"));
  EXPECT_EQ(Contents("client-key.pem"), "mine");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_), {}), 1);
}

TEST_F(TlsInitTest, WrongHostIsAUsageErrorBeforeAnythingIsMade) {
  const Outcome outcome = Init({"--host", "a,DNS:evil"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TlsInitTest, HostThatIsNamedAlreadyAppearsOnce) {
  ASSERT_EQ(
      Init({"--host", "localhost", "--host", "db", "--host", "127.0.0.1", "--host", "db"}).error,
      "");
  EXPECT_EQ(AlternativeNames(Contents("server.pem")),
            "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:db");
}

// The flags are those of docker/compose.yaml.
TEST_F(TlsInitTest, IfMissingMakesAllFilesOnceAndThenChangesNothing) {
  const Outcome first = Init({"--if-missing", "--host", "softlookup"});
  ASSERT_EQ(first.error, "");
  EXPECT_THAT(first.out, HasSubstr("made " + path_ + "/client-key.pem"));
  const auto before = Files();
  ASSERT_EQ(before.size(), 6u);
  const Outcome second = Init({"--if-missing", "--host", "softlookup"});
  EXPECT_EQ(second.error, "");
  EXPECT_EQ(second.exit_code, ExitCode::kOk);
  EXPECT_EQ(second.out, "");
  EXPECT_EQ(second.notes, path_ + " has all of its files already; nothing was changed\n");
  EXPECT_EQ(Files(), before);
  EXPECT_EQ(RunToolJson("127.0.0.1:1", {"tls", "init", path_, "--if-missing"})["files"].size(), 0u);
}

TEST_F(TlsInitTest, IfMissingSaysWhichHostsTheCertificateDoesNotName) {
  ASSERT_EQ(Init({"--host", "db.acme.test", "--host", "*.acme.test", "--host", "10.1.2.3"}).error,
            "");
  const auto before = Files();
  const std::string present = path_ + " has all of its files already; nothing was changed\n";
  EXPECT_EQ(Init({"--if-missing", "--host", "DB.acme.test", "--host", "*.acme.test", "--host",
                  "10.1.2.3", "--host", "::1"})
                .notes,
            present);
  const Outcome outcome = Init(
      {"--if-missing", "--host", "db.acme.test", "--host", "other.test", "--host", "10.1.2.4"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kOk);
  EXPECT_EQ(outcome.notes,
            present + "softlookup: " + path_ +
                "/server.pem does not name other.test, 10.1.2.4; the authority there can make "
                "another certificate: docs/security.md, Change a certificate\n");
  EXPECT_EQ(Files(), before);
}

TEST_F(TlsInitTest, IfMissingNamesWhatIsMissingIfOnlySomeFilesExist) {
  ASSERT_EQ(Init().error, "");
  std::filesystem::remove(path_ + "/ca-key.pem");
  std::filesystem::remove(path_ + "/client.pem");
  const auto before = Files();
  const Outcome outcome = Init({"--if-missing"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr("missing: " + path_ + "/ca-key.pem, " + path_ +
                                       "/client.pem; nothing was changed"));
  EXPECT_EQ(Files(), before);
}

TEST_F(TlsInitTest, IfMissingRefusesAWrongHostEvenIfAllFilesExist) {
  ASSERT_EQ(Init().error, "");
  EXPECT_EQ(Init({"--if-missing", "--host", "a,b"}).exit_code, ExitCode::kUsage);
}

TEST_F(TlsInitTest, JsonListsTheFiles) {
  const auto json = RunToolJson("127.0.0.1:1", {"tls", "init", path_});
  ASSERT_EQ(json["files"].size(), 6u);
  EXPECT_THAT(json["files"][0].get<std::string>(), EndsWith("/certs/ca.pem"));
}

}  // namespace
}  // namespace softlookup::tool
