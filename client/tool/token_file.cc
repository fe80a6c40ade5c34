#include "client/tool/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/tool/auth_file.h"
#include "client/tool/exit_code.h"
#include "client/tool/whole_file.h"
#include "softlookup/credentials.h"

namespace softlookup::tool {
namespace {

absl::StatusOr<bool> IsLeftover(const std::string& path, const std::string& auth_text) {
  struct stat attributes;
  if (lstat(path.c_str(), &attributes) != 0 || !S_ISREG(attributes.st_mode)) return false;
  const absl::StatusOr<Credentials> file = LoadCredentials({.token = path});
  if (!file.ok() || !IsToken(file->token)) return false;
  CLIENT_ASSIGN_OR_RETURN(const std::string digest, TokenDigest(file->token));
  // Search the whole text for the digest, in whatever member, so that a token that may be in use is
  // never replaced.
  return !absl::StrContains(absl::AsciiStrToLower(auth_text), digest);
}

}  // namespace

absl::Status WriteTokenFile(const std::string& path, const std::string& token,
                            const std::string& auth_text) {
  CLIENT_ASSIGN_OR_RETURN(const bool is_leftover, IsLeftover(path, auth_text));
  if (is_leftover && unlink(path.c_str()) != 0) return InputError(path, std::strerror(errno));
  return CreateFile(path, absl::StrCat(token, "\n"), kOwnerOnly);
}

}  // namespace softlookup::tool
