#include "server/security/file_watcher.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "server/base/read_file.h"

namespace softlookup::server {
namespace {

absl::StatusOr<std::vector<std::string>> ReadFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> contents;
  for (const std::string& path : paths) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
    contents.push_back(std::move(text));
  }
  return contents;
}

}  // namespace

FileWatcher::~FileWatcher() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

absl::Status FileWatcher::Add(std::string name, std::vector<std::string> paths, Load load,
                              ReloadCounter& counter) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::vector<std::string> contents, ReadFiles(paths));
  SOFTLOOKUP_RETURN_IF_ERROR(load(contents));
  absl::MutexLock lock(&mutex_);
  sets_.push_back({.name = std::move(name),
                   .paths = std::move(paths),
                   .load = std::move(load),
                   .counter = &counter,
                   .contents = std::move(contents)});
  return absl::OkStatus();
}

void FileWatcher::Start(absl::Duration interval) {
  thread_ = std::thread([this, interval] {
    for (;;) {
      {
        absl::MutexLock lock(&mutex_);
        if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), interval)) return;
      }
      CheckNow();
    }
  });
}

void FileWatcher::CheckNow() {
  absl::MutexLock lock(&mutex_);
  for (FileSet& set : sets_) {
    absl::StatusOr<std::vector<std::string>> contents = ReadFiles(set.paths);
    absl::Status status = contents.status();
    if (status.ok()) {
      if (*contents == set.contents && set.last_error.empty()) continue;
      status = set.load(*contents);
      set.contents = *std::move(contents);
    }
    const std::string error(status.message());
    if (status.ok()) {
      spdlog::info("{} read again", set.name);
      set.counter->CountApplied();
    } else if (error != set.last_error) {
      spdlog::error("{} not changed, the last one stays: {}", set.name, error);
      set.counter->CountRejected();
    }
    set.last_error = error;
  }
}

}  // namespace softlookup::server
