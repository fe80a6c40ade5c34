#ifndef SOFTLOOKUP_CLIENT_LOADTEST_EVIDENCE_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_EVIDENCE_H_

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
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
    std::uint32_t content = 0;  // The set of queries.
    grpc::ByteBuffer bytes;     // A v1::LookupResponse.
  };
  struct Append {
    std::uint32_t store = 0;
    std::uint32_t content = 0;  // The batch of rows.
    std::uint64_t first_position = 0;
    std::uint32_t row_count = 0;
  };

  // Answers are taken from `begin` on, evenly over `duration`: about `count` of them, fewer if they
  // are large. May be called again for another run; both runs' are kept.
  void Pace(Clock::time_point begin, Clock::duration duration, int count);

  // For every lookup that was answered.
  void Lookup(const PreparedRequest& request, const grpc::ByteBuffer& answer,
              Clock::time_point now) {
    if (now.time_since_epoch() < next_.load(std::memory_order_relaxed)) return;
    Keep(request, answer, now);
  }

  // For every append that was answered, from the first one on.
  void Appended(const PreparedRequest& request, const grpc::ByteBuffer& answer);

  // When no more calls come.
  std::vector<Answer> TakeAnswers();
  std::vector<Append> appends() const;

 private:
  void Keep(const PreparedRequest& request, const grpc::ByteBuffer& answer, Clock::time_point now);

  std::atomic<Clock::duration> next_ = Clock::duration::max();
  mutable absl::Mutex mutex_;
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
