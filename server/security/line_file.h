#ifndef SOFTLOOKUP_SERVER_SECURITY_LINE_FILE_H_
#define SOFTLOOKUP_SERVER_SECURITY_LINE_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/base/file_descriptor.h"

namespace softlookup::server {

// A file to which lines are appended. If the disk takes only a part of a line, the next line that
// this object appends still begins on a new line. Not thread-safe.
class LineFile {
 public:
  explicit LineFile(std::string path) : path_(std::move(path)) {}

  // Opens the file at the path, and closes the file that was open. If there is no file at the path,
  // creates one that only its owner may read. On failure, returns false, sets errno, and the old
  // file stays open.
  bool Open();

  // Appends `lines`, each of which must end with a line feed. Returns how many lines at the end of
  // `lines` are not whole in the file. If that is not 0, errno says why.
  std::int64_t Append(absl::string_view lines);

 private:
  // Writes as much of `text` as the file takes. Returns how many bytes that was.
  std::size_t Write(absl::string_view text) const;

  std::string path_;
  FileDescriptor file_;
  bool is_line_cut_ = false;  // Whether this left a part of a line at the end of the file.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_LINE_FILE_H_
