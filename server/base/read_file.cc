#include "server/base/read_file.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace softlookup::server {
namespace {

// Maximum size of a file. Any private key, certificate or auth file is smaller.
constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string contents;
  char part[4096];
  while (file.read(part, sizeof(part)) || file.gcount() > 0) {
    contents.append(part, static_cast<std::size_t>(file.gcount()));
    if (contents.size() > kFileBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": is too large"));
    }
  }
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be read: ", errno != 0 ? std::strerror(errno) : "no reason"));
  }
  return contents;
}

}  // namespace softlookup::server
