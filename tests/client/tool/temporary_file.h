#ifndef SOFTLOOKUP_TESTS_CLIENT_TOOL_TEMPORARY_FILE_H_
#define SOFTLOOKUP_TESTS_CLIENT_TOOL_TEMPORARY_FILE_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace softlookup::testing {

// A file that is gone when the test is. `name` ends as its format asks.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name, const std::string& bytes = "") {
    std::string directory = std::filesystem::temp_directory_path() / "softlookup-XXXXXX";
    directory_ = ::mkdtemp(directory.data());
    path_ = directory_ / name;
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove_all(directory_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path() const { return path_; }

 private:
  std::filesystem::path directory_;
  std::filesystem::path path_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_TOOL_TEMPORARY_FILE_H_
