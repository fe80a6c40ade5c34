#ifndef SOFTLOOKUP_SERVER_SECURITY_FILE_WATCHER_H_
#define SOFTLOOKUP_SERVER_SECURITY_FILE_WATCHER_H_

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Reads files again when they change: certificates, keys, rules. Files that belong together are
// loaded together. What cannot be loaded is logged once, and what was loaded before stays.
class FileWatcher {
 public:
  // Takes the contents of a set's files, in their order. An error changes nothing.
  using Load = std::function<absl::Status(const std::vector<std::string>& contents)>;

  FileWatcher() = default;
  ~FileWatcher();
  FileWatcher(const FileWatcher&) = delete;
  FileWatcher& operator=(const FileWatcher&) = delete;

  // Loads a set for the first time, here. `name` is what the log calls it. The error of reading, or
  // of `load`, which names the file. Before Start().
  absl::Status Add(std::string name, std::vector<std::string> paths, Load load);
  // Looks at all files every `interval` on a thread of its own. Once.
  void Start(absl::Duration interval);

  // Looks at all files at once, here. Thread-safe.
  void LookNow();

 private:
  struct FileSet {
    std::string name;
    std::vector<std::string> paths;
    Load load;
    std::vector<std::string> contents;  // That were loaded last, or tried.
    std::string last_error;
  };

  absl::Mutex mutex_;
  std::vector<FileSet> sets_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_FILE_WATCHER_H_
