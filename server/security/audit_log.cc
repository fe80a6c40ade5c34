#include "server/security/audit_log.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace softlookup::server {
namespace {

FileDescriptor OpenToAppend(const std::string& path) {
  return FileDescriptor(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
}

bool IsSameFile(int a, int b) {
  struct stat of_a, of_b;
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

// Appends `text` to a file. Returns how many of its bytes were written.
std::size_t Append(absl::string_view text, int fd) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(fd, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  return written;
}

std::string LineOf(LogFormat format, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line = {
      {"time", absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone())}};
  line.update(fields);
  return absl::StrCat(FormatFields(format, line), "\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path,
                                                         LogFormat format) {
  FileDescriptor file = OpenToAppend(path);
  if (file.get() < 0) {
    return absl::UnavailableError(
        absl::StrCat("--audit-log: cannot open ", path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<AuditLog>(new AuditLog(path, format, std::move(file)));
}

AuditLog::~AuditLog() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void AuditLog::Write(const nlohmann::ordered_json& fields) {
  const std::string line = LineOf(format_, fields);
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() + line.size() > kWaitingBytesMax) {
    ++left_out_;
    return;
  }
  waiting_ += line;
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
  bool is_line_cut = false;  // Whether the file ends in a part of a line.
  bool is_last_try = false;
  for (;;) {
    std::string lines;
    std::int64_t left_out = 0;
    bool reopen = false;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (waiting_.empty() && !reopen_ && (left_out_ == 0 || is_last_try)) {
        if (left_out_ > 0) spdlog::error("the audit log ends without {} lines", left_out_);
        return;
      }
      is_last_try = stopping_;
      lines.swap(waiting_);
      left_out = std::exchange(left_out_, 0);
      reopen = std::exchange(reopen_, false);
    }
    if (left_out > 0) lines += LineOf(format_, {{"left_out", left_out}});
    const bool end_line = is_line_cut && !lines.empty();
    if (end_line) lines.insert(0, 1, '\n');
    const std::size_t written = Append(lines, file_.get());
    if (written > 0) is_line_cut = lines[written - 1] != '\n';
    if (written < lines.size()) {
      if (!failed) spdlog::error("the audit log cannot be written: {}", std::strerror(errno));
      std::int64_t lost = std::count(lines.begin() + written, lines.end(), '\n');
      if (end_line && written == 0) --lost;
      if (left_out > 0) lost += left_out - 1;
      absl::MutexLock lock(&mutex_);
      left_out_ += lost;
    }
    failed = written < lines.size();
    if (!reopen) continue;
    if (FileDescriptor file = OpenToAppend(path_); file.get() >= 0) {
      is_line_cut = is_line_cut && IsSameFile(file.get(), file_.get());
      file_ = std::move(file);
      failed = is_last_try = false;
    } else {
      spdlog::error("the audit log cannot be opened anew: {}", std::strerror(errno));
    }
  }
}

}  // namespace softlookup::server
