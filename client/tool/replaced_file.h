#ifndef SOFTLOOKUP_CLIENT_TOOL_REPLACED_FILE_H_
#define SOFTLOOKUP_CLIENT_TOOL_REPLACED_FILE_H_

#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace softlookup::tool {

// A file that is written under a temporary name beside its own and takes the place of an older file
// of its name as a whole. Until Publish(), the older file stays as it is. A crash leaves the
// temporary file: the file's name with a dot and a few characters appended. What is no regular
// file, such as /dev/null, is written directly. Errors are InputErrors.
class ReplacedFile {
 public:
  // Refuses a path that cannot be written, and a named pipe. A link is followed. A file that
  // replaces another gets its mode.
  static absl::StatusOr<ReplacedFile> Create(const std::string& path);

  // Binary. Check() says whether what was written so far has succeeded. It gives the reason from
  // errno, so errno must be 0 before the write that it is called after.
  std::ostream& stream() { return stream_; }
  absl::Status Check() const;

  // Writes the rest to the disk's cache. Nothing can be written afterwards.
  absl::Status Close();
  // Puts the file into its place. Call this once, after Close(). Without it, the destructor removes
  // the temporary file.
  absl::Status Publish();

 private:
  struct Remove {
    void operator()(const std::string* path) const;
  };

  explicit ReplacedFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::string target_;                                    // path_, with links followed.
  std::unique_ptr<const std::string, Remove> temporary_;  // Null: path_ is written directly.
  std::ofstream stream_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_REPLACED_FILE_H_
