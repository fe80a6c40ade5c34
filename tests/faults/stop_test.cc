// What clients see of a server that is stopped with SIGTERM: with the client library's retries no
// call fails while it is stopped and started again on the same port, over and over, every stop ends
// with 0, and every row is there once.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "softlookup/client.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/faults/cycles.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/random.h"
#include "tests/testing/server_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

constexpr std::uint32_t kDim = 32;
constexpr int kBaseRows = 20'000;

// Clients that work until they are told to stop, each on a thread of its own.
class Load {
 public:
  // `call` is made again and again, with the number of calls before it.
  void Add(std::string name, std::function<absl::Status(std::int64_t)> call) {
    counts_.push_back(0);
    calls_.push_back({std::move(name), std::move(call)});
  }

  void Start() {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      threads_.emplace_back([this, i] { Run(i); });
    }
  }

  // Waits until each client has made `count` more calls.
  bool AwaitEach(std::int64_t count) {
    absl::MutexLock lock(&mutex_);
    const std::vector<std::int64_t> before = counts_;
    const auto have_worked = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      for (std::size_t i = 0; i < counts_.size(); ++i) {
        if (counts_[i] < before[i] + count) return !failures_.empty();
      }
      return true;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&have_worked), absl::Minutes(2));
  }

  std::vector<std::string> failures() {
    absl::MutexLock lock(&mutex_);
    return failures_;
  }

  std::int64_t Stop() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
    std::int64_t sum = 0;
    absl::MutexLock lock(&mutex_);
    for (const std::int64_t count : counts_) sum += count;
    return sum;
  }

 private:
  struct Client {
    std::string name;
    std::function<absl::Status(std::int64_t)> call;
  };

  void Run(std::size_t i) {
    for (std::int64_t count = 0;; ++count) {
      const absl::Time begin = absl::Now();
      const absl::Status status = calls_[i].call(count);
      absl::MutexLock lock(&mutex_);
      ++counts_[i];
      if (!status.ok()) {
        failures_.push_back(absl::StrCat(calls_[i].name, " call ", count, " after ",
                                         absl::FormatDuration(absl::Now() - begin), ": ",
                                         status.ToString()));
      }
      if (stopping_ || !status.ok()) return;
    }
  }

  std::vector<Client> calls_;
  std::vector<std::thread> threads_;
  absl::Mutex mutex_;
  std::vector<std::int64_t> counts_;  // Of calls that ended. Guarded by mutex_ once started.
  std::vector<std::string> failures_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(StopTest, UnderLoadNoCallFailsAndEveryStopEndsWell) {
  const TemporaryDirectory directory;
  const std::vector<std::string> flags = {"--data-dir", directory.path()};
  auto server = std::make_unique<ServerProcess>(flags);
  const std::string address = server->grpc_address();
  std::vector<std::string> flags_again = flags;
  flags_again.insert(flags_again.end(), {"--listen", address});

  const std::vector<float> rows = NormalFloats(kBaseRows * kDim, 1);
  const FloatMatrixView all(rows, kBaseRows, kDim);
  const FloatMatrixView row(absl::MakeConstSpan(rows).first(kDim), 1, kDim);
  std::vector<Client> clients;
  for (int i = 0; i < 7; ++i) clients.push_back(*Client::Connect(address, PatientOptions()));
  v1::Store store;
  store.set_key_dim(kDim);
  store.set_value_dim(kDim);
  for (const char* name : {"lookups", "appends"}) {
    store.set_name(name);
    ASSERT_THAT(clients[0].CreateStore(store), IsOk());
  }
  ASSERT_THAT(clients[0].Append("lookups", all, all), IsOk());

  Load load;
  std::vector<std::uint64_t> appended(3);
  for (int i = 0; i < 4; ++i) {  // The last looks at few rows, which takes no time.
    load.Add(absl::StrCat("lookup client ", i), [&, i](std::int64_t) {
      LookupOptions options;
      if (i == 3) options.filter.set_last(10);
      return clients[i].Lookup("lookups", row, options).status();
    });
  }
  for (int i = 0; i < 2; ++i) {
    load.Add(absl::StrCat("append client ", i), [&, i](std::int64_t count) {
      v1::AppendRequest request;
      request.set_store("appends");
      request.set_writer(absl::StrCat("writer-", i));
      request.set_sequence(static_cast<std::uint64_t>(count + 1));
      if (absl::Status status = row.ToProto(request.mutable_keys()); !status.ok()) return status;
      *request.mutable_values() = request.keys();
      const absl::Status status = clients[4 + i].Append(request).status();
      if (status.ok()) ++appended[i];
      return status;
    });
  }
  AppendStreamOptions stream_options;
  stream_options.writer = "stream";
  stream_options.unacknowledged_requests_max = 8;
  auto stream = clients[6].OpenAppendStream("appends", stream_options);
  ASSERT_THAT(stream, IsOk());
  load.Add("append stream", [&](std::int64_t) {
    const absl::Status status = stream->Append(row, row);
    if (status.ok()) ++appended[2];
    return status;
  });

  load.Start();
  const int cycles = Cycles(10, 50);
  for (int cycle = 0; cycle < cycles; ++cycle) {
    EXPECT_TRUE(load.AwaitEach(20)) << "cycle " << cycle;
    ASSERT_EQ(server->Stop(SIGTERM), 0) << "cycle " << cycle;
    server = std::make_unique<ServerProcess>(flags_again);
    ASSERT_EQ(server->grpc_address(), address);
    if (!load.failures().empty()) break;
  }
  EXPECT_TRUE(load.AwaitEach(5));
  const std::int64_t calls = load.Stop();
  EXPECT_THAT(load.failures(), ::testing::IsEmpty());
  EXPECT_THAT(stream->Finish(), IsOk());
  EXPECT_EQ(clients[0].GetStore("appends")->row_count(), appended[0] + appended[1] + appended[2]);
  EXPECT_EQ(server->Stop(SIGTERM), 0);
  std::printf("%lld calls over %d stops, the stream connected anew %llu times\n",
              static_cast<long long>(calls), cycles,
              static_cast<unsigned long long>(stream->acknowledged().reconnections));
}

// Writes a request whenever one has been taken, until the stream ends.
template <typename Request, typename Response>
class BusyStream : public grpc::ClientBidiReactor<Request, Response> {
 public:
  explicit BusyStream(Request request) : request_(std::move(request)) {}
  void Start() {
    this->StartWrite(&request_);
    this->StartRead(&response_);
    this->StartCall();
  }
  void OnWriteDone(bool ok) override {
    if (ok) this->StartWrite(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    ++answers_;
    this->StartRead(&response_);
  }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    done_.Notify();
  }
  std::int64_t answers() const { return answers_; }
  grpc::Status Await() {
    done_.WaitForNotification();
    return status_;
  }
  grpc::ClientContext context;

 private:
  const Request request_;
  Response response_;
  std::atomic<std::int64_t> answers_{0};
  grpc::Status status_;
  absl::Notification done_;
};

TEST(StopTest, StreamsThatNeverRestEndSoon) {
  ServerProcess server;
  Client client = *Client::Connect(server.grpc_address(), PatientOptions());
  v1::Store store;
  store.set_name("s");
  store.set_key_dim(kDim);
  store.set_value_dim(kDim);
  ASSERT_THAT(client.CreateStore(store), IsOk());
  const std::vector<float> rows = NormalFloats(kDim, 1);
  const FloatMatrixView row(rows, 1, kDim);
  ASSERT_THAT(client.Append("s", row, row), IsOk());

  v1::LookupRequest lookup;
  v1::AppendRequest append;
  lookup.set_store("s");
  append.set_store("s");
  ASSERT_THAT(row.ToProto(lookup.mutable_queries()), IsOk());
  *append.mutable_keys() = *append.mutable_values() = lookup.queries();
  BusyStream<v1::LookupRequest, v1::LookupResponse> lookups(lookup);
  BusyStream<v1::AppendRequest, v1::AppendResponse> appends(append);
  const auto stub = v1::SoftLookup::NewStub(
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()));
  stub->async()->StreamLookup(&lookups.context, &lookups);
  stub->async()->StreamAppend(&appends.context, &appends);
  lookups.Start();
  appends.Start();
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (lookups.answers() < 100 || appends.answers() < 100) {
    ASSERT_LT(absl::Now(), deadline);
    ASSERT_THAT(client.GetStore("s"), IsOk());
  }

  EXPECT_EQ(server.Stop(SIGTERM), 0);
  for (const grpc::Status& status : {lookups.Await(), appends.Await()}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr("is stopping"));
  }
}

}  // namespace
}  // namespace softlookup::testing
