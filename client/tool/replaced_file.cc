#include "client/tool/replaced_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/tool/exit_code.h"
#include "client/tool/whole_file.h"

namespace softlookup::tool {

void ReplacedFile::Remove::operator()(const std::string* path) const {
  unlink(path->c_str());
  delete path;
}

absl::StatusOr<ReplacedFile> ReplacedFile::Create(const std::string& path) {
  CLIENT_RETURN_IF_ERROR(CheckWritable(path));
  ReplacedFile file(path);
  std::error_code error;
  const std::filesystem::file_status existing = std::filesystem::status(path, error);
  const bool exists = std::filesystem::exists(existing);
  // /dev/stdout is what the shell has opened, even where that is a regular file.
  const bool is_direct =
      absl::StartsWith(path, "/dev/") || (exists && !std::filesystem::is_regular_file(existing));
  if (!is_direct) {
    file.target_ = FollowLinks(path);
    // The name is random, so that it does not meet a file that a crash left behind.
    file.temporary_.reset(
        new std::string(absl::StrCat(file.target_, ".", absl::Hex(std::random_device{}()))));
  }
  errno = 0;
  file.stream_.open(is_direct ? path : *file.temporary_, std::ios::binary);
  CLIENT_RETURN_IF_ERROR(file.Check());
  if (!is_direct && exists) {
    std::filesystem::permissions(*file.temporary_, existing.permissions(), error);
    if (error) return InputError(path, absl::StrCat("cannot be written: ", error.message()));
  }
  return file;
}

absl::Status ReplacedFile::Check() const {
  if (stream_) return absl::OkStatus();
  return InputError(path_, absl::StrCat("cannot be written: ", std::strerror(errno)));
}

absl::Status ReplacedFile::Close() {
  errno = 0;
  stream_.close();
  return Check();
}

absl::Status ReplacedFile::Publish() {
  if (temporary_ == nullptr) return absl::OkStatus();
  if (std::rename(temporary_->c_str(), target_.c_str()) != 0) {
    return InputError(path_, absl::StrCat("cannot be written: ", std::strerror(errno)));
  }
  delete temporary_.release();
  return absl::OkStatus();
}

}  // namespace softlookup::tool
