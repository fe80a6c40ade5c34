#include "server/security/audit_log.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace softlookup::server {
namespace {

std::string LineOf(LineFormat format, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line = {{"time", LineTime(absl::Now())}};
  line.update(fields);
  return absl::StrCat(FormatFields(format, line), "\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path,
                                                         LineFormat format) {
  LineFile file(path);
  if (!file.Open()) {
    return absl::UnavailableError(
        absl::StrCat("--audit-log: cannot open ", path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(file), format));
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
  bool failed = false;  // Whether the last write failed. Only the first failure in a row is logged.
  bool is_last_try = false;  // The server stops: lines that cannot be written now are given up.
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
    std::int64_t lost = file_.Append(lines);
    if (left_out > 0 && file_.Append(LineOf(format_, {{"left_out", left_out}})) > 0) {
      lost += left_out;
    }
    if (lost > 0) {
      if (!failed) spdlog::error("the audit log cannot be written: {}", std::strerror(errno));
      absl::MutexLock lock(&mutex_);
      left_out_ += lost;
    }
    failed = lost > 0;
    if (!reopen) continue;
    if (file_.Open()) {
      // The new file may take lines that the old one did not.
      failed = is_last_try = false;
    } else {
      spdlog::error("the audit log cannot be opened anew: {}", std::strerror(errno));
    }
  }
}

}  // namespace softlookup::server
