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
#include "server/observability/security_stats.h"

namespace softlookup::server {

// Loads files again when they change, such as certificates, private keys and auth files. Files that
// belong together form a set, which is loaded as one. If a set cannot be loaded, what was loaded
// before stays in use. The error is logged once, not at each check.
class FileWatcher {
 public:
  // Loads the contents of a set's files, which are in the order of its paths. Must change nothing
  // if it returns an error. Must not call the watcher, which may hold its lock.
  using Load = std::function<absl::Status(const std::vector<std::string>& contents)>;

  FileWatcher() = default;
  ~FileWatcher();
  FileWatcher(const FileWatcher&) = delete;
  FileWatcher& operator=(const FileWatcher&) = delete;

  // Adds a set, and loads it on this thread. Lines of the server log call the set `name`. `counter`
  // counts each later load, and each error that is logged; it must outlive the watcher. Returns the
  // error of reading a file, which names the file, or that of `load`. Call this before Start().
  absl::Status Add(std::string name, std::vector<std::string> paths, Load load,
                   ReloadCounter& counter);
  // Starts a thread that calls CheckNow() every `interval`. Call this once.
  void Start(absl::Duration interval);

  // Reads all files now, on this thread, and loads the sets that have changed or that failed last
  // time. Thread-safe.
  void CheckNow();

 private:
  struct FileSet {
    std::string name;
    std::vector<std::string> paths;
    Load load;
    ReloadCounter* counter = nullptr;
    std::vector<std::string> contents;  // As last passed to `load`.
    std::string last_error;             // Empty: the last check succeeded.
  };

  absl::Mutex mutex_;
  std::vector<FileSet> sets_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_FILE_WATCHER_H_
