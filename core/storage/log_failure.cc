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
                              WithoutPaths(why))));
}

void LogFailure::OnError(const rocksdb::Status& error) {
  if (error.IsNoSpace()) {
    Fail(State::kFullDisk,
         FullDiskError("the disk of the data directory is full; writes are taken again as soon as "
                       "there is room",
                       error));
  } else if (error.IsCorruption()) {
    Fail(State::kBroken,
         DamagedError(absl::StrCat(WithoutPaths(error.ToString()), "; it takes no more writes")));
  } else {
    Break(error.ToString());
  }
}

void LogFailure::OnTooLittleRoom(const Room& room) {
  constexpr std::uint64_t kMegabyte = 1'000'000;
  const auto rounded_up = [](std::uint64_t bytes) { return (bytes + kMegabyte - 1) / kMegabyte; };
  std::string text =
      absl::StrCat("the disk of the data directory is full: ", room.free_bytes / kMegabyte,
                   " MB are free, and ", rounded_up(room.needed_bytes),
                   " MB are needed to take writes "
                   "again; ");
  if (room.needed_to_reclaim_bytes > 0 && room.free_bytes >= room.needed_to_reclaim_bytes) {
    absl::StrAppend(&text, "some ", rounded_up(room.deleted_bytes),
                    " MB of deleted stores are freed first; ");
  } else if (room.needed_to_reclaim_bytes > 0) {
    absl::StrAppend(&text, "some ", rounded_up(room.deleted_bytes),
                    " MB of deleted stores are freed once some ",
                    rounded_up(room.needed_to_reclaim_bytes), " MB are free; ");
  }
  absl::StrAppend(&text, "remove old backups, then delete stores, or make room otherwise");
  Fail(State::kFullDisk,
       WithRetryAfter(MakeError(reasons::kStorageFailed, text), absl::Seconds(1)));
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
