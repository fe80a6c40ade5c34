#ifndef SOFTLOOKUP_SERVER_LIMITS_RESET_DETECTOR_H_
#define SOFTLOOKUP_SERVER_LIMITS_RESET_DETECTOR_H_

#include <cstdint>

#include "absl/time/time.h"

namespace softlookup::server {

// Detects that the client of one connection cancels calls as fast as it opens them.
//
// For HTTP/2, a cancelled call is a stream that its client has reset. HTTP/2 bounds only the
// streams in progress, so such resets are not bounded (rapid reset, CVE-2023-44487). A reset call
// costs the client a few bytes, but is work for the server. The current time is passed in. Not
// thread-safe.
class ResetDetector {
 public:
  // Number of calls that a client may cancel in a second without being cut, whatever share of its
  // calls they are.
  static constexpr std::uint64_t kCancelledMax = 256;
  // As kCancelledMax, but for cancelled and late calls together. A call is late if its client gave
  // it too little time for any server to answer. This maximum is higher, because late calls can be
  // an honest mistake, such as a wrong unit for deadlines.
  static constexpr std::uint64_t kCancelledOrLateMax = 2048;

  // Moves the counts on to the second of `now`. Call this before OnEnd() and OnCancel().
  void MoveTo(absl::Time now);
  // Counts a call that ended, answered or not.
  void OnEnd() { ++current_.ended; }
  // Counts a call that was cancelled before it was answered or, if `is_late`, a late call. Call
  // this before OnEnd() for the same call. Returns true, and forgets all counts, if the connection
  // must be cut. Two conditions must hold for that. First, this second's cancelled calls exceed
  // kCancelledMax, or its cancelled and late calls together exceed kCancelledOrLateMax. Second, in
  // this second and the previous one, cancelled and late calls are more than half of all calls that
  // ended.
  bool OnCancel(bool is_late);

  // Whether all counts are too old to matter: `second_` is two seconds or more before `now`.
  bool IsIdle(absl::Time now) const;

 private:
  struct Counts {
    std::uint64_t cancelled = 0;
    std::uint64_t late = 0;
    std::uint64_t ended = 0;  // All calls that ended, answered or not.
  };

  absl::Time second_ = absl::InfinitePast();  // Start of the current second.
  Counts current_, before_;                   // In the current second and in the previous one.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_RESET_DETECTOR_H_
