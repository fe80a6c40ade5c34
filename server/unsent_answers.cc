#include "server/unsent_answers.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/error.h"

namespace softlookup::server {
namespace {

// Less fits into a connection's buffers, or nearly.
constexpr std::size_t kCountedBytesMin = std::size_t{64} << 10;
// A message, and what gRPC has made of it.
constexpr std::int64_t kCopies = 2;

constexpr absl::Duration kRetryDelay = absl::Milliseconds(100);

}  // namespace

bool UnsentAnswers::TryAdd(std::int64_t bytes) {
  const std::int64_t before = bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before == 0 || before + bytes <= kBytesMax) return true;
  Remove(bytes);
  return false;
}

absl::Status UnsentAnswer::Hold(std::size_t bytes, grpc::CallbackServerContext& context) {
  if (bytes < kCountedBytesMin) return absl::OkStatus();
  const std::int64_t held = kCopies * static_cast<std::int64_t>(bytes);
  if (!answers_.TryAdd(held)) {
    return WithRetryAfter(
        MakeError(reasons::kQueueFull,
                  absl::StrCat("Answers of ", UnsentAnswers::kBytesMax >> 20,
                               " MiB wait for clients to read them; no more is kept for them")),
        kRetryDelay);
  }
  bytes_ = held;
  write_.emplace(stalls_, context);
  write_->OnStart();
  return absl::OkStatus();
}

}  // namespace softlookup::server
