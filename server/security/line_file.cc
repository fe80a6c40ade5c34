#include "server/security/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace softlookup::server {
namespace {

bool IsSameFile(int a, int b) {
  struct stat of_a, of_b;
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

}  // namespace

bool LineFile::Open() {
  FileDescriptor file(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0) return false;
  // If the path now names another file, that file has no line that this object cut.
  is_line_cut_ = is_line_cut_ && IsSameFile(file.get(), file_.get());
  file_ = std::move(file);
  return true;
}

std::int64_t LineFile::Append(absl::string_view lines) {
  if (is_line_cut_ && Write("\n") == 1) is_line_cut_ = false;
  const std::size_t written = is_line_cut_ ? 0 : Write(lines);
  if (written > 0) is_line_cut_ = lines[written - 1] != '\n';
  return std::count(lines.begin() + written, lines.end(), '\n');
}

std::size_t LineFile::Write(absl::string_view text) const {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(file_.get(), text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  return written;
}

}  // namespace softlookup::server
