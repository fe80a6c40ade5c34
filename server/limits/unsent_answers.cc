#include "server/limits/unsent_answers.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/error.h"

namespace softlookup::server {
namespace {

// Smaller answers are not counted. A connection may have 1,024 calls in progress by default, and
// their small answers take only a few MiB.
constexpr std::size_t kCountedBytesMin = std::size_t{4} << 10;
// An answer is held twice: as the message, and as the bytes that gRPC has made of it.
constexpr std::int64_t kCopies = 2;

constexpr absl::Duration kRetryDelayOfAnswers = absl::Milliseconds(100);

}  // namespace

bool UnsentAnswers::Add(const std::string& connection, std::int64_t bytes, bool may_refuse) {
  absl::MutexLock lock(&mutex_);
  std::int64_t& own_bytes = bytes_of_[connection];
  const bool fits = (own_bytes == 0 || own_bytes + bytes <= kConnectionBytesMax) &&
                    (bytes_ == 0 || bytes_ + bytes <= kBytesMax);
  if (may_refuse && !fits) {
    if (own_bytes == 0) bytes_of_.erase(connection);
    return false;
  }
  own_bytes += bytes;
  bytes_ += bytes;
  return true;
}

void UnsentAnswers::Remove(const std::string& connection, std::int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  bytes_ -= bytes;
  const auto own = bytes_of_.find(connection);
  own->second -= bytes;
  if (own->second == 0) bytes_of_.erase(own);
}

absl::Status UnsentAnswer::Hold(std::size_t bytes, bool may_refuse, const std::string& connection) {
  if (bytes < kCountedBytesMin) return absl::OkStatus();
  const std::int64_t held = kCopies * static_cast<std::int64_t>(bytes);
  if (!answers_.Add(connection, held, may_refuse)) {
    return WithRetryAfter(MakeError(reasons::kQueueFull,
                                    absl::StrCat("Answers that wait for clients to read them take ",
                                                 UnsentAnswers::kConnectionBytesMax >> 20,
                                                 " MiB of memory on this connection, or ",
                                                 UnsentAnswers::kBytesMax >> 20, " MiB on all")),
                          kRetryDelayOfAnswers);
  }
  connection_ = connection;
  bytes_ = held;
  return absl::OkStatus();
}

}  // namespace softlookup::server
