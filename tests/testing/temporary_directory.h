#ifndef SOFTLOOKUP_TESTS_TESTING_TEMPORARY_DIRECTORY_H_
#define SOFTLOOKUP_TESTS_TESTING_TEMPORARY_DIRECTORY_H_

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

namespace softlookup::testing {

// A directory of one's own, gone at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "softlookup-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Files and directories directly in it.
  std::ptrdiff_t entry_count() const {
    return std::distance(std::filesystem::directory_iterator(path_), {});
  }

 private:
  std::string path_;
};

// A base of fixtures whose next base, such as a server, already uses the directory.
struct HasDirectory {
  const TemporaryDirectory directory;
  std::string Path(const std::string& name) const { return directory.path() + "/" + name; }
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_TEMPORARY_DIRECTORY_H_
