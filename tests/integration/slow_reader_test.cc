// Clients that do not read what they asked for.
#include <grpcpp/generic/generic_stub.h>
#include <signal.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/faults/cycles.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

constexpr std::int64_t kDim = 128, kRows = 60'000;

std::int64_t ResidentBytes(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  std::string line;
  while (std::getline(status, line)) {
    std::int64_t kib = 0;
    if (absl::StartsWith(line, "VmRSS:") &&
        absl::SimpleAtoi(line.substr(6, line.size() - 9), &kib)) {
      return kib << 10;
    }
  }
  return 0;
}

std::shared_ptr<grpc::Channel> OwnChannel(const ServerProcess& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  // On a busy machine the client would take megabytes for the network's own, before it reads.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return grpc::CreateCustomChannel(server.grpc_address(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

// Writes lookups for as long as the server takes them, and reads nothing.
class Flood : public grpc::ClientBidiReactor<v1::LookupRequest, v1::LookupResponse> {
 public:
  Flood(v1::SoftLookup::Stub& stub, const v1::LookupRequest& request) : request_(request) {
    stub.async()->StreamLookup(&context_, this);
    StartWrite(&request_);
    StartCall();
  }
  ~Flood() override {
    context_.TryCancel();
    done_.WaitForNotification();
  }
  void OnWriteDone(bool ok) override {
    if (ok) StartWrite(&request_);
  }
  void OnDone(const grpc::Status&) override { done_.Notify(); }

 private:
  const v1::LookupRequest request_;
  grpc::ClientContext context_;
  absl::Notification done_;
};

// A unary lookup whose answer nobody reads until Read: as a stream on its client's side.
class UnreadLookup : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  UnreadLookup(const std::shared_ptr<grpc::Channel>& channel, const v1::LookupRequest& request)
      : stub_(channel) {
    bool own_buffer = false;
    grpc::SerializationTraits<v1::LookupRequest>::Serialize(request, &request_, &own_buffer);
    stub_.PrepareBidiStreamingCall(&context_, "/softlookup.v1.SoftLookup/Lookup",
                                   grpc::StubOptions(), this);
    StartWriteLast(&request_, grpc::WriteOptions());
    AddHold();
    StartCall();
  }
  ~UnreadLookup() override {
    if (!has_read_) {
      context_.TryCancel();
      RemoveHold();
    }
    done_.WaitForNotification();
  }
  // Reads the answer, if there is one. Once.
  grpc::Status Read() {
    has_read_ = true;
    StartRead(&answer_);
    RemoveHold();
    done_.WaitForNotification();
    return status_;
  }
  // Returns whether the server has answered, or answers within that time.
  bool IsAnsweredWithin(absl::Duration time) const {
    return headers_.WaitForNotificationWithTimeout(time);
  }
  // After Read.
  std::size_t answer_bytes() const { return answer_.Length(); }

  void OnReadInitialMetadataDone(bool) override { headers_.Notify(); }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    done_.Notify();
  }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, answer_;
  bool has_read_ = false;
  grpc::Status status_;
  absl::Notification headers_, done_;
};

// Of a store whose answers are large and cheap to make: one row of the largest value.
class LargeAnswersTest : public IntegrationTest {
 protected:
  static constexpr std::int64_t kWideDim = 65'536;

  explicit LargeAnswersTest(const std::vector<std::string>& flags = {}) : IntegrationTest(flags) {
    Create("wide", 1, kWideDim);
    const std::vector<float> value(kWideDim, 0.5f);
    EXPECT_THAT(client_.Append("wide", View({1}, 1), View(value, kWideDim)), IsOk());
  }

  // With an answer of 256 KiB a query.
  static v1::LookupRequest LargeLookup(std::int64_t queries = 60) {
    v1::LookupRequest lookup;
    lookup.set_store("wide");
    *lookup.mutable_queries() = Message(std::vector<float>(queries, 1), 1);
    return lookup;
  }

  // Returns once the server has answered. Meanwhile another client makes a lookup every 0.1 s.
  void AwaitAnswer(const UnreadLookup& lookup) {
    v1::LookupResponse response;
    while (!lookup.IsAnsweredWithin(absl::Milliseconds(100))) {
      ASSERT_THAT(Lookup(LargeLookup(1), &response), IsGrpcOk());
    }
  }
};

class SlowReaderTest : public LargeAnswersTest {
 protected:
  explicit SlowReaderTest(const std::vector<std::string>& flags = {}) : LargeAnswersTest(flags) {
    Create("s", kDim, kDim);
    EXPECT_THAT(client_.Append("s", View(rows_, kDim), View(rows_, kDim)), IsOk());
  }

  v1::LookupRequest SmallLookups(std::int64_t queries) const {
    v1::LookupRequest lookup;
    lookup.set_store("s");
    *lookup.mutable_queries() = Message({rows_.begin(), rows_.begin() + queries * kDim}, kDim);
    lookup.mutable_filter()->set_last(1);
    return lookup;
  }

  // What a working client, who comes and goes, makes of it, too.
  void WorkFor(absl::Duration time) {
    v1::LookupResponse response;
    for (const absl::Time end = absl::Now() + time; absl::Now() < end;) {
      ASSERT_THAT(Lookup(SmallLookups(4), &response), IsGrpcOk());
    }
  }

  const std::vector<float> rows_ = NormalFloats(kRows * kDim, 1);
};

TEST_F(SlowReaderTest, AHundredTakeLittleMemory) {
  if (BinariesAreSanitized()) GTEST_SKIP() << "the memory would be the sanitizer's, too";
  constexpr int kReaders = 100;
  constexpr std::int64_t kMost = std::int64_t{64} << 20;
  std::vector<std::unique_ptr<v1::SoftLookup::Stub>> stubs;
  for (int i = 0; i < kReaders; ++i) {
    stubs.push_back(v1::SoftLookup::NewStub(OwnChannel(server_)));
  }
  WorkFor(absl::Seconds(1));
  const std::int64_t before = ResidentBytes(server_.pid());

  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::ReadRowsResponse>>> rows;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::Memory>>> memories;
  std::vector<std::unique_ptr<Flood>> lookups;
  for (int i = 0; i < kReaders; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    if (i % 3 == 0) {
      v1::ReadRowsRequest request;
      request.set_store("s");
      request.set_page_rows(100'000);
      rows.push_back(stubs[i]->ReadRows(contexts.back().get(), request));
    } else if (i % 3 == 1) {
      lookups.push_back(std::make_unique<Flood>(*stubs[i], SmallLookups(256)));
    } else {
      v1::WatchMemoryRequest request;
      request.set_store("s");
      memories.push_back(stubs[i]->WatchMemory(contexts.back().get(), request));
    }
  }
  WorkFor(absl::Seconds(Cycles(2, 60)));
  const std::int64_t grown = ResidentBytes(server_.pid()) - before;
  std::printf("a hundred slow readers take %.1f MiB\n", static_cast<double>(grown) / (1 << 20));
  EXPECT_LE(grown, kMost);
  for (const auto& context : contexts) context->TryCancel();
  lookups.clear();
}

class UnreadAnswersTest : public LargeAnswersTest {};

TEST_F(UnreadAnswersTest, AreKeptUpToABound) {
  // An answer takes 30 MB, as a message and as bytes. Eight have room; without the bound, all would
  // take more than kMost. A sanitizer's server, whose memory is not judged, has fewer to make.
  const int kReaders = BinariesAreSanitized() ? 12 : 30;
  constexpr std::int64_t kMost = std::int64_t{600} << 20;
  const std::int64_t before = ResidentBytes(server_.pid());
  std::vector<std::unique_ptr<UnreadLookup>> lookups;
  for (int i = 0; i < kReaders; ++i) {
    lookups.push_back(std::make_unique<UnreadLookup>(OwnChannel(server_), LargeLookup()));
  }
  for (const auto& lookup : lookups) AwaitAnswer(*lookup);
  const std::int64_t grown = ResidentBytes(server_.pid()) - before;
  std::printf("answers that nobody reads take %.1f MiB\n", static_cast<double>(grown) / (1 << 20));
  if (!BinariesAreSanitized()) {
    EXPECT_LE(grown, kMost);
  }
  int answered = 0;
  for (const auto& lookup : lookups) {
    const grpc::Status status = lookup->Read();
    if (status.ok()) {
      ++answered;
      EXPECT_GT(lookup->answer_bytes(), std::size_t{15'000'000});
    } else {
      EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      "Answers that wait for clients to read them take"));
    }
  }
  EXPECT_GE(answered, 8) << "so many fit into the bound, with what gRPC makes of them";
  EXPECT_LT(answered, kReaders);
  // One connection has a part of the bound, and leaves the rest to others.
  const auto channel = OwnChannel(server_);
  std::vector<std::unique_ptr<UnreadLookup>> own;
  for (int i = 0; i < 3; ++i) {
    own.push_back(std::make_unique<UnreadLookup>(channel, LargeLookup()));
    AwaitAnswer(*own.back());
  }
  EXPECT_THAT(UnreadLookup(OwnChannel(server_), LargeLookup()).Read(), IsGrpcOk());
  EXPECT_THAT(own[0]->Read(), IsGrpcOk());
  EXPECT_THAT(own[1]->Read(), IsGrpcOk());
  EXPECT_THAT(own[2]->Read(), IsGrpcError(grpc::StatusCode::RESOURCE_EXHAUSTED, "64 MiB"));
  // Once they are read there is room again.
  EXPECT_THAT(UnreadLookup(OwnChannel(server_), LargeLookup()).Read(), IsGrpcOk());
}

class StallTest : public SlowReaderTest {
 protected:
  StallTest() : SlowReaderTest({"--stall-timeout", "0.25"}) {}
};

TEST_F(StallTest, AStreamIsEndedIfNobodyReadsItButNotForBeingIdle) {
  CallContext watch_context, append_context, lookup_context, rows_context;
  v1::WatchMemoryRequest watch_request;
  watch_request.set_store("s");
  const auto watch = stub_->WatchMemory(&watch_context, watch_request);
  v1::Memory memory;
  ASSERT_TRUE(watch->Read(&memory));
  const auto appends = stub_->StreamAppend(&append_context);
  const auto lookups = stub_->StreamLookup(&lookup_context);

  v1::ReadRowsRequest request;
  request.set_store("s");
  const auto rows = stub_->ReadRows(&rows_context, request);
  v1::ReadRowsResponse page;
  ASSERT_TRUE(rows->Read(&page));
  UnreadLookup unread(OwnChannel(server_), LargeLookup(34));
  AwaitAnswer(unread);
  // Another client works until the calls must be over; 9 MB have nine times as long.
  WorkFor(absl::Seconds(4));
  std::int64_t count = page.rows_size();
  while (rows->Read(&page)) count += page.rows_size();
  EXPECT_LT(count, kRows);
  const grpc::Status status = rows->Finish();
  EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::RESOURCE_EXHAUSTED, "STREAM_STALLED"));

  // Nor is an answer kept for ever.
  const grpc::Status unread_status = unread.Read();
  EXPECT_THAT(unread_status, IsGrpcError(grpc::StatusCode::RESOURCE_EXHAUSTED, "STREAM_STALLED"));

  // Those that were idle meanwhile go on.
  v1::AppendRequest append;
  append.set_store("s");
  *append.mutable_keys() = *append.mutable_values() =
      Message({rows_.begin(), rows_.begin() + kDim}, kDim);
  v1::AppendResponse acknowledged;
  ASSERT_TRUE(appends->Write(append));
  ASSERT_TRUE(appends->Read(&acknowledged));
  v1::LookupResponse response;
  ASSERT_TRUE(lookups->Write(SmallLookups(1)));
  ASSERT_TRUE(lookups->Read(&response));
  ASSERT_TRUE(watch->Read(&memory));
  EXPECT_EQ(memory.end(), static_cast<std::uint64_t>(kRows) + 1);
  // Nor do they hold up a stop.
  EXPECT_EQ(server_.Stop(SIGTERM), 0);
}

}  // namespace
}  // namespace softlookup::testing
