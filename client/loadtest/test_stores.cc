#include "client/loadtest/test_stores.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/append_text.h"
#include "client/cpp/status_macros.h"
#include "softlookup/error_details.h"

namespace softlookup::loadtest {
namespace {

constexpr int kThreadsMax = 4;
// Most floats in one append; they take 4 MiB.
constexpr std::uint64_t kBatchFloatsMax = std::uint64_t{1} << 20;
constexpr std::uint64_t kBatchRowsMax = 16384;
// Longest time from the start of a batch's first attempt to the start of its last.
constexpr absl::Duration kRetryWindow = absl::Minutes(2);
// Timeout of the first attempt to append a batch. Each attempt that times out doubles the timeout
// of the next. The first one is short, because an interruption must wait for the attempt in
// progress.
constexpr absl::Duration kAttempt = absl::Seconds(5);
constexpr absl::Duration kPause = absl::Milliseconds(50);  // Shortest wait between two attempts.

std::string RunName(const std::string& prefix) {
  std::random_device random;
  return absl::StrCat(prefix, "/", getpid(), "-", absl::Hex(random(), absl::kZeroPad8));
}

// Runs `work(i)` for every i in [0, count), on a few threads. After a failure, begins no further
// work. Returns the error that came first.
absl::Status ForEach(int count, const std::function<absl::Status(int)>& work) {
  std::atomic<int> next = 0;
  absl::Mutex mutex;
  absl::Status status;
  std::vector<std::thread> threads;
  const int thread_count = std::min(count, kThreadsMax);
  threads.reserve(static_cast<std::size_t>(thread_count));
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&] {
      for (int i; (i = next++) < count;) {
        const absl::Status one = work(i);
        if (one.ok()) continue;
        const absl::MutexLock lock(&mutex);
        status.Update(one);
        next = count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return status;
}

bool IsTransient(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status) ||
         RetryDelay(status).has_value();
}

// Appends in attempts that are short at first, so that an interruption need not wait long for a
// server that hangs. The request must have a writer, so that it is applied once.
absl::Status AppendBatch(const v1::AppendRequest& request, Client* client,
                         const std::atomic<bool>& interrupted) {
  const absl::Time end = absl::Now() + kRetryWindow;
  for (absl::Duration attempt = kAttempt;;) {
    absl::Status status = client->Append(request, {.deadline = attempt}).status();
    if (status.ok() || !IsTransient(status)) return status;
    if (absl::IsDeadlineExceeded(status)) attempt *= 2;
    const absl::Time next =
        absl::Now() + RetryDelay(status).value_or(absl::ZeroDuration()) + kPause;
    if (next >= end) return status;
    while (!interrupted && absl::Now() < next) absl::SleepFor(kPause);
    if (interrupted) return absl::CancelledError("interrupted");
  }
}

// Appends `row_count` rows to store number `store`, in batches. Each batch can take several
// attempts. Waits until all rows are on disk. Calls `appended` after each batch, with the number of
// its rows.
absl::Status Fill(const std::string& name, std::uint32_t store, std::uint64_t row_count,
                  const RowSource& source, Client* client, const std::atomic<bool>& interrupted,
                  const std::function<void(std::uint64_t)>& appended) {
  const std::uint64_t batch_rows = std::clamp<std::uint64_t>(
      kBatchFloatsMax / (source.key_dim() + source.value_dim()), 1, kBatchRowsMax);
  v1::AppendRequest request;
  request.set_store(name);
  request.set_writer("loadtest");
  for (std::uint64_t row = 0; row < row_count; row += batch_rows) {
    if (interrupted) return absl::CancelledError("interrupted");
    const auto count = static_cast<std::uint32_t>(std::min(batch_rows, row_count - row));
    const RowSource::Rows rows = source.FilledRows(store, row, count);
    CLIENT_RETURN_IF_ERROR(FloatMatrixView(rows.keys).ToProto(request.mutable_keys()));
    CLIENT_RETURN_IF_ERROR(FloatMatrixView(rows.values).ToProto(request.mutable_values()));
    request.set_sequence(request.sequence() + 1);
    request.set_acknowledge(row + count == row_count ? v1::ACKNOWLEDGE_DURABLE
                                                     : v1::ACKNOWLEDGE_APPLIED);
    CLIENT_RETURN_IF_ERROR(AppendBatch(request, client, interrupted));
    appended(count);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TestStores>> TestStores::Make(
    const TestStoresOptions& options, const RowSource& rows, Client* client,
    const std::atomic<bool>& interrupted, const std::function<void(std::uint64_t rows)>& filled) {
  std::unique_ptr<TestStores> stores(new TestStores(client, options.keep));
  const std::string run = RunName(options.prefix);
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(options.count));
  for (int i = 0; i < options.count; ++i) names.push_back(absl::StrCat(run, "/", i));
  absl::Mutex mutex;
  std::uint64_t row_count = 0;
  std::atomic<bool> any_created = false;
  const absl::Status made = ForEach(options.count, [&](int i) -> absl::Status {
    if (interrupted) return absl::CancelledError("interrupted");
    v1::Store store;
    store.set_name(names[i]);
    store.set_key_dim(rows.key_dim());
    store.set_value_dim(rows.value_dim());
    store.set_storage_type(options.storage);
    const absl::Status created = client->CreateStore(store).status();
    // These two errors mean that this call made no store. After any other failure, such as a lost
    // answer, the store may exist.
    if (!absl::IsAlreadyExists(created) && !absl::IsInvalidArgument(created)) {
      const absl::MutexLock lock(&mutex);
      stores->names_.push_back(names[i]);
    }
    CLIENT_RETURN_IF_ERROR(created);
    any_created = true;
    return Fill(names[i], i, options.rows, rows, client, interrupted, [&](std::uint64_t count) {
      const absl::MutexLock lock(&mutex);
      row_count += count;
      if (filled) filled(row_count);
    });
  });
  if (!made.ok()) {
    const absl::Status deleted = stores->Delete();
    // If the server cannot be reached and no call has created a store, it is assumed that there is
    // no store to delete. The error then does not name the stores.
    if (deleted.ok() || (absl::IsUnavailable(made) && !any_created)) return made;
    return client_internal::AppendText(made, absl::StrCat("; ", deleted.message()));
  }
  stores->names_ = std::move(names);
  return stores;
}

TestStores::~TestStores() {
  if (!keep_) Delete().IgnoreError();
}

absl::Status TestStores::Delete() {
  const std::vector<std::string> names = std::exchange(names_, {});
  std::vector<std::string> left;
  absl::Status first;
  for (const std::string& name : names) {
    // If the server does not answer one call, no call is made for the later stores.
    const bool is_gone = absl::IsDeadlineExceeded(first) || absl::IsUnavailable(first);
    const absl::Status deleted = is_gone ? first : client_->DeleteStore(name);
    if (deleted.ok() || absl::IsNotFound(deleted)) continue;
    first.Update(deleted);
    left.push_back(name);
  }
  if (left.empty()) return absl::OkStatus();
  return absl::Status(
      first.code(), absl::StrCat("not deleted: ", absl::StrJoin(left, " "), ": ", first.message()));
}

}  // namespace softlookup::loadtest
