#ifndef SOFTLOOKUP_CORE_ENGINE_COPY_PACE_H_
#define SOFTLOOKUP_CORE_ENGINE_COPY_PACE_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace softlookup {

// Sets the pace of a copy of many writes. While the engine has other calls, the writes are small,
// and after each of them the copy rests several times as long as it has written: these calls then
// have the log, the disk and the cores for most of the time. Not thread-safe.
class CopyPace {
 public:
  // `calls` returns how many lookups and writes the engine has had, those of the copy included. It
  // must outlive this object.
  explicit CopyPace(absl::FunctionRef<std::uint64_t()> calls)
      : calls_(calls), other_calls_(calls_()) {}

  // Returns how many bytes the next write may have, or one record that is larger.
  std::int64_t bytes_per_write() const { return is_busy_ ? kBytesIfBusy : kBytesIfAlone; }
  // Call this after each write of the copy. The log had it from `begin` to `end`, times of one
  // steady clock. Returns how long the copy should rest.
  absl::Duration RestAfterWrite(absl::Time begin, absl::Time end);

  // Other writes wait for one of the copy. In a group, where it goes over the network and to
  // several disks, one of this size takes about as long as a small append.
  static constexpr std::int64_t kBytesIfBusy = std::int64_t{256} << 10;
  static constexpr std::int64_t kBytesIfAlone = std::int64_t{4} << 20;

  // How many times as long as a write the rest after it takes, if others are expected.
  static constexpr int kRestPerWrite = 5;
  // The longest rest. A write that took long has mostly waited for the disk, and the copy must come
  // to an end.
  static constexpr absl::Duration kRestMax = absl::Milliseconds(500);
  // For how long after a call others are expected.
  static constexpr absl::Duration kBusyTime = absl::Seconds(1);

 private:
  const absl::FunctionRef<std::uint64_t()> calls_;
  std::uint64_t writes_ = 0;   // Those of the copy.
  std::uint64_t other_calls_;  // Those of others, when RestAfterWrite() last looked.
  absl::Time last_call_ = absl::InfinitePast();  // When it last saw that others had come.
  bool is_busy_ = true;  // Other calls come. Not known before the first write.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_COPY_PACE_H_
