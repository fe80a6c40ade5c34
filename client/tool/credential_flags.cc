#include "client/tool/credential_flags.h"

#include "client/cpp/status_macros.h"
#include "client/tool/credential_check.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {

void AddCredentialFlags(CLI::App* app, CredentialFiles* files) {
  const auto add = [app](const char* name, const char* variable, std::string* file,
                         const char* help) {
    app->add_option(name, *file, help)->envname(variable)->type_name("FILE")->group("Identity");
  };
  add("--tls-ca", "SOFTLOOKUP_TLS_CA", &files->tls_ca,
      "Use TLS. PEM file of authorities; the server's certificate must chain to one of them");
  add("--tls-certificate", "SOFTLOOKUP_TLS_CERTIFICATE", &files->tls_certificate,
      "Use TLS. PEM file of the client certificate to present; needs --tls-key");
  add("--tls-key", "SOFTLOOKUP_TLS_KEY", &files->tls_key,
      "PEM file of the private key of --tls-certificate");
  add("--token-file", "SOFTLOOKUP_TOKEN_FILE", &files->token,
      "File of the token to send with every call (default: none); see softlookup auth add");
}

absl::StatusOr<Credentials> CredentialsFrom(const CredentialFiles& files) {
  if (files.tls_certificate.empty() != files.tls_key.empty()) {
    return UsageError(
        "--tls-certificate and --tls-key, or SOFTLOOKUP_TLS_CERTIFICATE and SOFTLOOKUP_TLS_KEY, go "
        "together");
  }
  absl::StatusOr<Credentials> credentials = LoadCredentials(files);
  if (!credentials.ok()) return AsInputError(credentials.status());
  CLIENT_RETURN_IF_ERROR(CheckCertificates(*credentials, files));
  return credentials;
}

}  // namespace softlookup::tool
