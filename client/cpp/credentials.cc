#include "softlookup/credentials.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/cpp/certificate_validity.h"
#include "client/cpp/status_macros.h"

namespace softlookup {
namespace {

constexpr std::size_t kFileBytesMax = 1 << 20;
constexpr std::size_t kTokenBytesMax = 4096;  // A server accepts 8 KiB of metadata in a call.

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

absl::Status FileError(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return FileError(path, std::strerror(errno));
  std::string bytes(kFileBytesMax + 1, '\0');
  errno = 0;
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  if (std::ferror(file.get()) != 0) return FileError(path, std::strerror(errno));
  if (bytes.size() > kFileBytesMax) return FileError(path, "is larger than 1 MiB");
  return bytes;
}

// The three functions below return what is wrong with a member of Credentials; empty if nothing is.
// In an error, these words follow the member's name or the file's path.
absl::string_view TokenFault(absl::string_view token) {
  if (token.size() > kTokenBytesMax) return "is longer than 4096 characters";
  const bool fits =
      std::all_of(token.begin(), token.end(), [](char c) { return absl::ascii_isgraph(c); });
  if (fits) return "";
  const bool ends_the_line = absl::StrContains("\r\n", token.substr(token.size() - 1));
  return ends_the_line ? "ends in a line break: trim a token that is read from a file, or use "
                         "LoadCredentials()"
                       : "must be printable ASCII without white space inside";
}

absl::string_view CertificateFault(absl::string_view pem) {
  if (absl::StrContains(pem, "-----BEGIN CERTIFICATE-----")) return "";
  return absl::StrContains(pem, "PRIVATE KEY-----") ? "has a private key instead of a certificate"
                                                    : "has no PEM certificate";
}

absl::string_view KeyFault(absl::string_view pem) {
  if (absl::StrContains(pem, "ENCRYPTED PRIVATE KEY-----") ||
      absl::StrContains(pem, "Proc-Type: 4,ENCRYPTED")) {
    return "has an encrypted private key, which is not supported";
  }
  return absl::StrContains(pem, "PRIVATE KEY-----") ? "" : "has no PEM private key";
}

absl::Status Check(absl::string_view name, const std::string& member,
                   absl::string_view (*fault)(absl::string_view)) {
  if (member.empty()) return absl::OkStatus();
  const absl::string_view found = fault(member);
  if (found.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Credentials::", name, " ", found));
}

// Reads the file at `path` into `member`, trims it and checks it with `fault`. An empty `path`
// leaves `member` alone.
absl::Status Load(const std::string& path, absl::string_view (*fault)(absl::string_view),
                  std::string* member) {
  if (path.empty()) return absl::OkStatus();
  CLIENT_ASSIGN_OR_RETURN(*member, ReadFile(path));
  absl::StripAsciiWhitespace(member);
  if (member->empty()) return FileError(path, "is empty");
  const absl::string_view found = fault(*member);
  return found.empty() ? absl::OkStatus() : FileError(path, found);
}

}  // namespace

absl::Status ValidateCredentials(const Credentials& credentials) {
  CLIENT_RETURN_IF_ERROR(Check("tls_ca", credentials.tls_ca, CertificateFault));
  CLIENT_RETURN_IF_ERROR(Check("tls_certificate", credentials.tls_certificate, CertificateFault));
  CLIENT_RETURN_IF_ERROR(Check("tls_key", credentials.tls_key, KeyFault));
  CLIENT_RETURN_IF_ERROR(Check("token", credentials.token, TokenFault));
  if (credentials.tls_certificate.empty() != credentials.tls_key.empty()) {
    return absl::InvalidArgumentError(
        "Credentials::tls_certificate and Credentials::tls_key go together");
  }
  const std::string fault =
      client_internal::ValidityFault(credentials.tls_certificate, absl::Now());
  if (fault.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Credentials::tls_certificate ", fault));
}

absl::StatusOr<Credentials> LoadCredentials(const CredentialFiles& files) {
  Credentials credentials;
  CLIENT_RETURN_IF_ERROR(Load(files.tls_ca, CertificateFault, &credentials.tls_ca));
  CLIENT_RETURN_IF_ERROR(
      Load(files.tls_certificate, CertificateFault, &credentials.tls_certificate));
  const std::string validity =
      client_internal::ValidityFault(credentials.tls_certificate, absl::Now());
  if (!validity.empty()) return FileError(files.tls_certificate, validity);
  CLIENT_RETURN_IF_ERROR(Load(files.tls_key, KeyFault, &credentials.tls_key));
  CLIENT_RETURN_IF_ERROR(Load(files.token, TokenFault, &credentials.token));
  CLIENT_RETURN_IF_ERROR(ValidateCredentials(credentials));
  return credentials;
}

}  // namespace softlookup
