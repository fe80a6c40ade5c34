#ifndef SOFTLOOKUP_CLIENT_LOADTEST_EVIDENCE_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_EVIDENCE_H_

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/loadtest/load_options.h"
#include "client/loadtest/traffic.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::loadtest {

// Keeps what is needed to check a run's answers afterwards. Thread-safe.
class Evidence {
 public:
  struct Answer {
    std::uint32_t store = 0;
    std::uint32_t content = 0;   // Number of the set of queries.
    grpc::ByteBuffer bytes;      // A serialized v1::LookupResponse.
    std::uint64_t rows_min = 0;  // RowsSeen() of the store before the lookup began.
  };
  struct Append {
    std::uint32_t store = 0;
    std::uint32_t content = 0;  // Number of the batch of rows.
    std::uint64_t first_position = 0;
    std::uint32_t row_count = 0;
  };

  // `stores` is the number of stores. Keeps the first `appends_max` appends and no more, to bound
  // the bytes used. Answers that saw rows of an append that was not kept cannot be checked.
  explicit Evidence(std::size_t stores, std::size_t appends_max = std::size_t{1} << 22)
      : appends_max_(appends_max), rows_seen_(stores) {}

  // Sets which answers to keep: one from `begin` on, then one after each `duration` / `count`.
  // Keeps at most 256 MiB of answers, so fewer if they are large. May be called again for another
  // run. The answers of earlier runs stay.
  void Pace(Clock::time_point begin, Clock::duration duration, int count);

  // Returns the largest row count of the store in any answer to an append so far, or 0 if there is
  // none. A lookup that begins after this call must see at least as many rows.
  std::uint64_t RowsSeen(std::uint32_t store) const { return rows_seen_[store]; }

  // Must be called for every lookup that ended OK. Keeps the answer if Pace() wants one at `now`.
  // `rows_min` is what RowsSeen() returned before the lookup began.
  void Lookup(const PreparedRequest& request, std::uint64_t rows_min,
              const grpc::ByteBuffer& answer, Clock::time_point now) {
    if (now.time_since_epoch() < next_.load(std::memory_order_relaxed)) return;
    Keep(request, rows_min, answer, now);
  }

  // Must be called for every append that ended OK, even before the measurement window. Verify()
  // needs all appended rows.
  void Appended(const PreparedRequest& request, const grpc::ByteBuffer& answer);

  // Return the kept answers and the kept appends, and drop them from this object. No call may be in
  // flight.
  std::vector<Answer> TakeAnswers();
  std::vector<Append> TakeAppends();

 private:
  void Keep(const PreparedRequest& request, std::uint64_t rows_min, const grpc::ByteBuffer& answer,
            Clock::time_point now);

  const std::size_t appends_max_;
  std::vector<std::atomic<std::uint64_t>> rows_seen_;  // By store.

  // The first answer at or after this time, since the clock's epoch, is kept. Written under mutex_.
  std::atomic<Clock::duration> next_ = Clock::duration::max();
  absl::Mutex mutex_;
  Clock::duration interval_ ABSL_GUARDED_BY(mutex_) = Clock::duration::max();
  std::size_t answer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Append> appends_ ABSL_GUARDED_BY(mutex_);
};

// Parses bytes from the wire. False if the bytes are not a message of this type.
template <typename Message>
bool Parse(grpc::ByteBuffer bytes, Message* message) {
  return grpc::SerializationTraits<Message>::Deserialize(&bytes, message).ok();
}

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_EVIDENCE_H_
