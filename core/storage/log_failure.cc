#include "core/storage/log_failure.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/storage/rocksdb_errors.h"

namespace softlookup {

absl::Status LogFailure::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void LogFailure::Fail(State state, absl::Status status) {
  {
    absl::MutexLock lock(&mutex_);
    status_ = std::move(status);
  }
  state_ = state;  // Last, so that whoever sees the state finds its status.
}

void LogFailure::Break(absl::string_view why) {
  Fail(State::kBroken,
       MakeError(reasons::kStorageFailed,
                 absl::StrCat("the data directory could not be written, and takes no more "
                              "writes until the server is started again: ",
                              why)));
}

void LogFailure::OnError(const rocksdb::Status& error) {
  if (error.IsNoSpace()) {
    Fail(State::kFullDisk,
         WithRetryAfter(UnavailableError("the disk of the data directory is full; writes are "
                                         "taken again as soon as there is room",
                                         error),
                        absl::Seconds(1)));
  } else if (error.IsCorruption()) {
    Fail(State::kBroken, DamagedError(absl::StrCat(error.ToString(), "; it takes no more writes")));
  } else {
    Break(error.ToString());
  }
}

void LogFailure::OnReopened(const absl::StatusOr<std::uint64_t>& found, std::uint64_t committed) {
  if (!found.ok()) {
    // UNAVAILABLE can be temporary, such as too little room again. Other errors come from the
    // files, and would come again.
    if (!absl::IsUnavailable(found.status())) Break(found.status().message());
  } else if (*found == committed) {
    state_ = State::kNone;
  } else if (*found > committed) {
    Break("what could not be synced for want of room was written");
  } else {
    Break("what had been written is gone");
  }
}

}  // namespace softlookup
