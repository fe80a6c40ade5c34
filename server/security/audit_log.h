#ifndef SOFTLOOKUP_SERVER_SECURITY_AUDIT_LOG_H_
#define SOFTLOOKUP_SERVER_SECURITY_AUDIT_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/observability/log.h"

namespace softlookup::server {

// A file with a line for everything that somebody may have to answer for. Lines are written by a
// thread of its own: no caller waits for the disk. Thread-safe.
class AuditLog {
 public:
  // Appends to the file at `path`, which its owner alone may read. UNAVAILABLE if it cannot be
  // opened.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, LogFormat format);
  // Writes what is left.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Adds a line with the time and `fields`. If the disk is too slow for them, lines are left out,
  // and the next one says how many.
  void Write(const nlohmann::ordered_json& fields);

  // Opens the file anew: somebody has renamed it.
  void Reopen();

 private:
  // Of lines that wait for the disk.
  static constexpr std::size_t kWaitingBytesMax = std::size_t{16} << 20;

  AuditLog(std::string path, LogFormat format, std::FILE* file)
      : path_(std::move(path)), format_(format), file_(file) {
    thread_ = std::thread([this] { Run(); });
  }
  void Run();

  const std::string path_;
  const LogFormat format_;
  std::FILE* file_;  // The thread's.

  absl::Mutex mutex_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  std::int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reopen_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_AUDIT_LOG_H_
