#include "client/loadtest/evidence.h"

#include <algorithm>
#include <utility>

#include "softlookup/v1/row.pb.h"

namespace softlookup::loadtest {
namespace {

constexpr std::size_t kAnswerBytesMax = 256 << 20;  // Bytes of all answers kept, together.

}  // namespace

void Evidence::Pace(Clock::time_point begin, Clock::duration duration, int count) {
  const absl::MutexLock lock(&mutex_);
  interval_ = duration / std::max(1, count);
  next_ = begin.time_since_epoch();
}

void Evidence::Keep(const PreparedRequest& request, std::uint64_t rows_min,
                    const grpc::ByteBuffer& answer, Clock::time_point now) {
  const absl::MutexLock lock(&mutex_);
  if (now.time_since_epoch() < next_.load()) return;  // Another thread has kept one.
  next_ = now.time_since_epoch() + interval_;
  if (answer_bytes_ + answer.Length() > kAnswerBytesMax) return;
  answer_bytes_ += answer.Length();
  answers_.push_back({request.store, request.content, answer, rows_min});
}

void Evidence::Appended(const PreparedRequest& request, const grpc::ByteBuffer& answer) {
  v1::AppendResponse response;
  // The answer to a duplicate has no position, so the positions of these rows are unknown. Verify()
  // does not check lookups that may have seen these rows.
  if (!Parse(answer, &response) || response.duplicate()) return;
  const std::uint64_t rows = response.first_position() + response.appended_count();
  std::atomic<std::uint64_t>& seen = rows_seen_[request.store];
  for (std::uint64_t known = seen; known < rows && !seen.compare_exchange_weak(known, rows);) {
  }
  const absl::MutexLock lock(&mutex_);
  if (appends_.size() >= appends_max_) return;
  appends_.push_back(
      {request.store, request.content, response.first_position(), response.appended_count()});
}

std::vector<Evidence::Answer> Evidence::TakeAnswers() {
  const absl::MutexLock lock(&mutex_);
  answer_bytes_ = 0;
  return std::exchange(answers_, {});
}

std::vector<Evidence::Append> Evidence::TakeAppends() {
  const absl::MutexLock lock(&mutex_);
  return std::exchange(appends_, {});
}

}  // namespace softlookup::loadtest
