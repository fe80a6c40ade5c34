#ifndef SOFTLOOKUP_TESTS_CLIENT_TOOL_TEMPORARY_FILE_H_
#define SOFTLOOKUP_TESTS_CLIENT_TOOL_TEMPORARY_FILE_H_

#include <fstream>
#include <iterator>
#include <string>

#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {

// A file that is gone when the test is. `name` ends as its format asks.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name, const std::string& bytes = "")
      : path_(directory_.path() + "/" + name) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }

  const std::string& path() const { return path_; }
  // What the file holds now.
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  const TemporaryDirectory directory_;
  const std::string path_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_TOOL_TEMPORARY_FILE_H_
