#ifndef SOFTLOOKUP_CORE_STORAGE_LOG_FAILURE_H_
#define SOFTLOOKUP_CORE_STORAGE_LOG_FAILURE_H_

#include <rocksdb/status.h>

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace softlookup {

// Decides from the errors of a log whether the log may take changes. A full disk is the only
// failure that can pass: the log is then opened again, once there is room. One thread at a time may
// call OnError(), OnTooLittleRoom() and OnReopened(). The other functions are thread-safe.
class LogFailure {
 public:
  // Bytes of the disk that the log is on.
  struct Room {
    std::uint64_t free_bytes = 0;
    std::uint64_t needed_bytes = 0;  // To be free before the log takes all changes again.
    // Those that deleted records take, and those to be free before they can be freed. 0: they do
    // not wait for room.
    std::uint64_t deleted_bytes = 0;
    std::uint64_t needed_to_reclaim_bytes = 0;
  };

  // Returns whether the log may take changes.
  bool is_none() const { return state_ == State::kNone; }
  // Returns whether the log should be opened again, as soon as there is room.
  bool is_full_disk() const { return state_ == State::kFullDisk; }
  // Returns the error of a change that the log does not take. Valid unless is_none().
  absl::Status status() const;

  // Call this when a write, a sync or work in the background failed. Only while is_none() or
  // is_full_disk().
  void OnError(const rocksdb::Status& error);
  // Call this when there may be too little room to open the log for all changes. Makes
  // is_full_disk() true. status() then says what is in `room`.
  void OnTooLittleRoom(const Room& room);
  // Call this while is_full_disk(), when the log was opened again or could not be. `found` is the
  // number of the last change that the opened log has, or why it could not be opened. `committed`
  // is the number of the last change that was committed. If the two differ, the log does not have
  // exactly what was acknowledged, and takes no more changes. If the log could not be opened,
  // UNAVAILABLE changes nothing. After any other error, the log takes no more changes.
  void OnReopened(const absl::StatusOr<std::uint64_t>& found, std::uint64_t committed);

 private:
  // kBroken: the log takes no changes until the server is started again.
  enum class State { kNone, kFullDisk, kBroken };

  void Fail(State state, absl::Status status);
  void Break(absl::string_view why);

  std::atomic<State> state_{State::kNone};
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // The last failure.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_LOG_FAILURE_H_
