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

// What a run keeps for its answers to be checked afterwards. Thread-safe.
class Evidence {
 public:
  struct Answer {
    std::uint32_t store = 0;
    std::uint32_t content = 0;   // The set of queries.
    grpc::ByteBuffer bytes;      // A v1::LookupResponse.
    std::uint64_t rows_min = 0;  // Were acknowledged to be in the store before it was asked.
  };
  struct Append {
    std::uint32_t store = 0;
    std::uint32_t content = 0;  // The batch of rows.
    std::uint64_t first_position = 0;
    std::uint32_t row_count = 0;
  };

  // Of so many stores. `appends_max` bounds the memory: later appends are not kept, so that answers
  // that saw them cannot be checked.
  explicit Evidence(std::size_t stores, std::size_t appends_max = std::size_t{1} << 22)
      : appends_max_(appends_max), rows_seen_(stores) {}

  // Answers are taken from `begin` on, evenly over `duration`: about `count` of them, fewer if they
  // are large. May be called again for another run; both runs' are kept.
  void Pace(Clock::time_point begin, Clock::duration duration, int count);

  // How many rows a store has at least, by the appends that were answered. A lookup that begins
  // later sees them all.
  std::uint64_t RowsSeen(std::uint32_t store) const { return rows_seen_[store]; }

  // For every lookup that was answered. `rows_min`: RowsSeen() before it began.
  void Lookup(const PreparedRequest& request, std::uint64_t rows_min,
              const grpc::ByteBuffer& answer, Clock::time_point now) {
    if (now.time_since_epoch() < next_.load(std::memory_order_relaxed)) return;
    Keep(request, rows_min, answer, now);
  }

  // For every append that was answered, from the first one on.
  void Appended(const PreparedRequest& request, const grpc::ByteBuffer& answer);

  // When no more calls come.
  std::vector<Answer> TakeAnswers();
  std::vector<Append> TakeAppends();

 private:
  void Keep(const PreparedRequest& request, std::uint64_t rows_min, const grpc::ByteBuffer& answer,
            Clock::time_point now);

  const std::size_t appends_max_;
  std::vector<std::atomic<std::uint64_t>> rows_seen_;  // By store.

  std::atomic<Clock::duration> next_ = Clock::duration::max();
  absl::Mutex mutex_;
  Clock::duration interval_ ABSL_GUARDED_BY(mutex_) = Clock::duration::max();
  std::size_t answer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Append> appends_ ABSL_GUARDED_BY(mutex_);
};

// Parses bytes from the wire; false if they are no such message.
template <typename Message>
bool Parse(grpc::ByteBuffer bytes, Message* message) {
  return grpc::SerializationTraits<Message>::Deserialize(&bytes, message).ok();
}

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_EVIDENCE_H_
