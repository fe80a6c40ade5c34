#ifndef SOFTLOOKUP_SERVER_SECURITY_AUDIT_LOG_H_
#define SOFTLOOKUP_SERVER_SECURITY_AUDIT_LOG_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/observability/line_format.h"
#include "server/security/line_file.h"

namespace softlookup::server {

// Writes audit lines to a file, on a thread of its own, so that Write() does not wait for the disk.
// Thread-safe.
class AuditLog {
 public:
  // Opens the file at `path` to append to it. If it is missing, creates one that only its owner may
  // read. UNAVAILABLE if it cannot be opened.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, LineFormat format);
  // Writes the lines that still wait. Gives up those that the disk does not take, and logs their
  // number.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Adds a line with the time and `fields`. The line is left out if too many bytes wait for the
  // disk, or if it cannot be written. A later line says how many were left out.
  void Write(const nlohmann::ordered_json& fields);

  // Has the thread open the file at the path again. Call this after the file was renamed. If it
  // cannot be opened, the old file stays in use.
  void Reopen();

 private:
  // Maximum number of bytes of the lines that wait for the disk.
  static constexpr std::size_t kWaitingBytesMax = std::size_t{16} << 20;

  AuditLog(LineFile file, LineFormat format) : file_(std::move(file)), format_(format) {
    thread_ = std::thread([this] { Run(); });
  }
  void Run();

  LineFile file_;  // Used on the thread only.
  const LineFormat format_;

  absl::Mutex mutex_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);        // Lines that the thread has not taken.
  std::int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;  // Lines left out that no line reports yet.
  bool reopen_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_AUDIT_LOG_H_
