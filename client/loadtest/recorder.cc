#include "client/loadtest/recorder.h"

#include <algorithm>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/grpc_status.h"
#include "softlookup/error_details.h"

namespace softlookup::loadtest {
namespace {

constexpr std::size_t kShardCount = 8;

using Count = std::atomic<std::uint64_t>;

void AddOne(Count& count) { count.fetch_add(1, std::memory_order_relaxed); }
std::uint64_t Get(const Count& count) { return count.load(std::memory_order_relaxed); }

std::size_t IndexOf(grpc::StatusCode code) {
  return code >= 0 && code < kCodeCount ? code : grpc::StatusCode::UNKNOWN;
}

}  // namespace

struct alignas(64) Recorder::Shard {
  struct OfMethod {
    SharedHistogram latency;
    std::array<Count, kCodeCount> codes = {};
    Count rejected = 0;
    Count overflow = 0;
  };
  std::array<OfMethod, kMethodCount> methods;
  SharedHistogram rejection;
  SharedHistogram lateness;
  Count retries = 0;
  Count sent = 0;
  Count ok = 0, rejected = 0, errors = 0, unfinished = 0, overflow = 0;
  Count ok_meanwhile = 0;
};

Outcome OutcomeOf(const grpc::Status& status) {
  if (status.ok()) return Outcome::kOk;
  // UNAVAILABLE without details comes from the gRPC library of this client: the connection broke,
  // or could not be made. The server's own errors have details.
  const bool rejected =
      status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ||
      (status.error_code() == grpc::StatusCode::UNAVAILABLE && !status.error_details().empty());
  return rejected ? Outcome::kRejected : Outcome::kFailed;
}

std::uint64_t Tally::OfMethod::finished() const {
  return std::accumulate(codes.begin(), codes.end(), std::uint64_t{0});
}

Tally::OfMethod Tally::sum() const {
  OfMethod sum;
  for (const OfMethod& method : methods) {
    sum.latency.Add(method.latency);
    for (int c = 0; c < kCodeCount; ++c) sum.codes[c] += method.codes[c];
    sum.rejected += method.rejected;
    sum.overflow += method.overflow;
  }
  return sum;
}

Recorder::Recorder()
    : shards_([] {
        std::vector<std::unique_ptr<Shard>> shards;
        for (std::size_t s = 0; s < kShardCount; ++s) shards.push_back(std::make_unique<Shard>());
        return shards;
      }()) {}

Recorder::~Recorder() = default;

Recorder::Shard& Recorder::MyShard() {
  static std::atomic<std::size_t> threads = 0;
  thread_local const std::size_t mine = threads++ % kShardCount;
  return *shards_[mine];
}

void Recorder::SetWindow(Clock::time_point begin, Clock::time_point end) {
  begin_ = begin;
  end_ = end;
}

void Recorder::EndWindow(Clock::time_point now) {
  if (now < end_.load()) end_ = std::max(now, begin_);
}

void Recorder::Sent(Clock::time_point due, Clock::time_point now) {
  Shard& shard = MyShard();
  AddOne(shard.sent);
  if (IsMeasured(due)) shard.lateness.Record(now - due);
}

void Recorder::Retried(Clock::time_point due) {
  if (IsMeasured(due)) AddOne(MyShard().retries);
}

void Recorder::Overflowed(Method method, Clock::time_point due) {
  Shard& shard = MyShard();
  AddOne(shard.overflow);
  if (IsMeasured(due)) AddOne(shard.methods[static_cast<std::size_t>(method)].overflow);
}

void Recorder::Finished(Method method, const grpc::Status& status, Outcome outcome,
                        Clock::time_point due, Clock::time_point now) {
  Shard& shard = MyShard();
  AddOne(outcome == Outcome::kOk         ? shard.ok
         : outcome == Outcome::kRejected ? shard.rejected
                                         : shard.errors);
  if (outcome == Outcome::kOk && IsMeasured(now)) AddOne(shard.ok_meanwhile);
  if (!status.ok()) NoteMessage(status);
  if (!IsMeasured(due)) return;
  Shard::OfMethod& counts = shard.methods[static_cast<std::size_t>(method)];
  AddOne(counts.codes[IndexOf(status.error_code())]);
  if (outcome == Outcome::kRejected) {
    AddOne(counts.rejected);
    shard.rejection.Record(now - due);
  } else if (status.ok() || status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    counts.latency.Record(now - due);
  }
}

void Recorder::Unfinished() { AddOne(MyShard().unfinished); }

void Recorder::NoteMessage(const grpc::Status& status) {
  if (has_message_[IndexOf(status.error_code())].exchange(true, std::memory_order_relaxed)) return;
  const std::string reason = ErrorReason(client_internal::FromGrpcStatus(status));
  const absl::MutexLock lock(&mutex_);
  messages_[status.error_code()] =
      reason.empty() ? status.error_message() : absl::StrCat(reason, ": ", status.error_message());
}

Tally Recorder::Read() const {
  Tally tally;
  for (const auto& shard : shards_) {
    for (std::size_t m = 0; m < kMethodCount; ++m) {
      const Shard::OfMethod& from = shard->methods[m];
      Tally::OfMethod& to = tally.methods[m];
      from.latency.AddTo(&to.latency);
      for (int c = 0; c < kCodeCount; ++c) to.codes[c] += Get(from.codes[c]);
      to.rejected += Get(from.rejected);
      to.overflow += Get(from.overflow);
    }
    shard->rejection.AddTo(&tally.rejection);
    shard->lateness.AddTo(&tally.lateness);
    tally.retries += Get(shard->retries);
    tally.all_ok += Get(shard->ok);
    tally.all_rejected += Get(shard->rejected);
    tally.all_errors += Get(shard->errors);
    tally.all_unfinished += Get(shard->unfinished);
    tally.all_overflow += Get(shard->overflow);
    tally.ok_meanwhile += Get(shard->ok_meanwhile);
  }
  tally.all_finished = tally.all_ok + tally.all_rejected + tally.all_errors + tally.all_unfinished;
  // Reads `sent` last, so that every call that counts as finished also counts as sent.
  for (const auto& shard : shards_) tally.all_sent += Get(shard->sent);
  return tally;
}

std::map<grpc::StatusCode, std::string> Recorder::FirstMessages() const {
  const absl::MutexLock lock(&mutex_);
  return messages_;
}

std::string NameOf(grpc::StatusCode code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

}  // namespace softlookup::loadtest
