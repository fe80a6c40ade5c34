#include "server/security/audit_log.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace softlookup::server {
namespace {

std::FILE* OpenToAppend(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  return fd < 0 ? nullptr : fdopen(fd, "a");
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path,
                                                         LogFormat format) {
  std::FILE* const file = OpenToAppend(path);
  if (file == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("--audit-log: cannot open ", path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<AuditLog>(new AuditLog(path, format, file));
}

AuditLog::~AuditLog() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
  std::fclose(file_);
}

void AuditLog::Write(const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line = {
      {"time", absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone())}};
  line.update(fields);
  std::string text = FormatFields(format_, line);
  text.push_back('\n');
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() + text.size() > kWaitingBytesMax) {
    ++left_out_;
    return;
  }
  waiting_ += text;
}

void AuditLog::Reopen() {
  absl::MutexLock lock(&mutex_);
  reopen_ = true;
}

void AuditLog::Run() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || reopen_ || !waiting_.empty();
  };
  bool failed = false;
  for (;;) {
    std::string lines;
    std::int64_t left_out = 0;
    bool reopen = false;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (waiting_.empty() && !reopen_) return;
      lines.swap(waiting_);
      left_out = std::exchange(left_out_, 0);
      reopen = std::exchange(reopen_, false);
    }
    if (left_out > 0) {
      absl::StrAppend(&lines, FormatFields(format_, {{"left_out", left_out}}), "\n");
    }
    const bool written = std::fwrite(lines.data(), 1, lines.size(), file_) == lines.size() &&
                         std::fflush(file_) == 0;
    if (!written && !failed) {
      spdlog::error("the audit log cannot be written: {}", std::strerror(errno));
    }
    failed = !written;
    if (!written) std::clearerr(file_);
    if (!reopen) continue;
    if (std::FILE* const file = OpenToAppend(path_); file != nullptr) {
      std::fclose(file_);
      file_ = file;
    } else {
      spdlog::error("the audit log cannot be opened anew: {}", std::strerror(errno));
    }
  }
}

}  // namespace softlookup::server
