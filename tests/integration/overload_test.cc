// More than the server can do, or than one tenant may ask of it.
#include <thread>

#include "tests/integration/integration_test.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

constexpr std::int64_t kDim = 64;

// When a failed call says that it may come back, by its trailer and by its details, in
// milliseconds; -1 if it does not.
int PushbackOf(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto it = trailers.find("grpc-retry-pushback-ms");
  return it == trailers.end() ? -1 : std::stoi(std::string(it->second.data(), it->second.size()));
}

// Calls in flight at a time, each of which keeps its context.
class Calls {
 public:
  explicit Calls(v1::SoftLookup::Stub& stub) : stub_(stub) {}

  void Start(const v1::LookupRequest& request) {
    Call& call = *calls_.emplace_back(std::make_unique<Call>());
    call.rpc = stub_.AsyncLookup(&call.context, request, &queue_);
    call.rpc->Finish(&call.response, &call.status, &call);
  }
  void AwaitAll() {
    void* tag = nullptr;
    bool ok = false;
    for (std::size_t i = 0; i < calls_.size(); ++i) ASSERT_TRUE(queue_.Next(&tag, &ok));
  }

  struct Call {
    CallContext context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::LookupResponse>> rpc;
    v1::LookupResponse response;
    grpc::Status status;
  };
  const std::vector<std::unique_ptr<Call>>& calls() const { return calls_; }

 private:
  v1::SoftLookup::Stub& stub_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Call>> calls_;
};

class OverloadTest : public IntegrationTest {
 protected:
  // Every lookup may wait for as long as four of it take.
  explicit OverloadTest(const std::vector<std::string>& flags = {"--threads", "1",
                                                                 "--max-waiting-work", "0"})
      : IntegrationTest(flags) {
    Create("large", kDim, kDim);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(client_.Append("large", View(rows_, kDim), View(rows_, kDim)), IsOk());
    }
  }

  // Of some 50 ms.
  v1::LookupRequest LongLookup() const {
    v1::LookupRequest lookup;
    lookup.set_store("large");
    *lookup.mutable_queries() = Message({rows_.begin(), rows_.begin() + 256 * kDim}, kDim);
    return lookup;
  }

  const std::vector<float> rows_ = NormalFloats(40'000 * kDim, 1);
};

TEST_F(OverloadTest, WhatWouldWaitTooLongIsTurnedAwayAndHearsWhenToComeBack) {
  constexpr int kCount = 24;
  Calls calls(*stub_);
  for (int i = 0; i < kCount; ++i) calls.Start(LongLookup());
  calls.AwaitAll();
  int answered = 0;
  for (const auto& call : calls.calls()) {
    if (call->status.ok()) {
      EXPECT_EQ(PushbackOf(call->context), -1);
      ++answered;
      continue;
    }
    EXPECT_EQ(call->status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(ReasonOf(call->status), "QUEUE_FULL");
    EXPECT_GE(PushbackOf(call->context), 1);
    EXPECT_LE(PushbackOf(call->context), 30'000);
  }
  EXPECT_GE(answered, 4);  // One runs and three wait, at least.
  EXPECT_LT(answered, kCount);
  // And at once it is as if nothing had been.
  v1::LookupResponse response;
  EXPECT_THAT(Lookup(LongLookup(), &response), IsGrpcOk());
}

TEST_F(OverloadTest, LookupsInAnotherStoreGoOnAsBefore) {
  Create("small", kDim, kDim);
  ASSERT_THAT(client_.Append("small", Rows(rows_, kDim, 0, 20'000), Rows(rows_, kDim, 0, 20'000)),
              IsOk());
  Calls calls(*stub_);
  for (int i = 0; i < 24; ++i) calls.Start(LongLookup());
  v1::LookupRequest lookup = LongLookup();
  lookup.set_store("small");
  *lookup.mutable_queries() = Message({rows_.begin(), rows_.begin() + kDim}, kDim);
  v1::LookupResponse response;
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Lookup(lookup, &response), IsGrpcOk());
  calls.AwaitAll();
}

TEST_F(OverloadTest, AttentionToWhatIsSentIsBoundedAsWell) {
  v1::AttendRequest request;
  *request.mutable_queries() = Message({rows_.begin(), rows_.begin() + 256 * kDim}, kDim);
  *request.mutable_keys() = *request.mutable_values() = Message(rows_, kDim);
  std::vector<std::thread> callers;
  std::atomic<int> answered{0}, refused{0};
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([&] {
      CallContext context;
      v1::AttendResponse response;
      const grpc::Status status = stub_->Attend(&context, request, &response);
      if (status.ok()) ++answered;
      if (ReasonOf(status) == "QUEUE_FULL" && PushbackOf(context) >= 1) ++refused;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(answered + refused, 16);
  EXPECT_GE(answered, 4);
  EXPECT_GE(refused, 1);
}

class TenantTest : public IntegrationTest {
 protected:
  TenantTest()
      : IntegrationTest(
            {"--tenant-requests-per-second", "20", "--tenant-rows-per-second", "1000"}) {
    for (const char* name : {"acme/s", "other/s"}) Create(name, 2, 1);
  }

  grpc::Status AppendTo(const std::string& store, std::int64_t rows, int* pushback = nullptr) {
    v1::AppendRequest request;
    request.set_store(store);
    *request.mutable_keys() = Message(std::vector<float>(rows * 2, 1), 2);
    *request.mutable_values() = Message(std::vector<float>(rows, 1), 1);
    CallContext context;
    v1::AppendResponse response;
    const grpc::Status status = stub_->Append(&context, request, &response);
    if (pushback != nullptr) *pushback = PushbackOf(context);
    return status;
  }
};

TEST_F(TenantTest, WhoAsksTooOftenIsTurnedAwayAloneWhateverItAsks) {
  v1::GetStoreRequest request;
  request.set_name("acme/s");
  v1::Store store;
  int count = 0;
  while (Call(&v1::SoftLookup::Stub::GetStore, request, &store).ok()) ASSERT_LT(++count, 10'000);
  const grpc::Status refused = Call(&v1::SoftLookup::Stub::GetStore, request, &store);
  if (!refused.ok()) {  // Else a twentieth of a second has passed between the two.
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(ReasonOf(refused), "TENANT_RATE");
    EXPECT_EQ(InfoOf(refused).metadata().at("tenant"), "acme");
  }
  EXPECT_THAT(AppendTo("other/s", 1), IsGrpcOk());
}

TEST_F(TenantTest, RowsAreAppendedAsFastAsTheTenantMay) {
  EXPECT_THAT(AppendTo("acme/s", 5000), IsGrpcOk()) << "it is paid for afterwards";
  int pushback = 0;
  const grpc::Status refused = AppendTo("acme/s", 1, &pushback);
  EXPECT_EQ(ReasonOf(refused), "TENANT_RATE");
  EXPECT_GT(pushback, 1000);
  EXPECT_LT(pushback, 6000);
  EXPECT_EQ(GetStore("acme/s").row_count(), 5000u);

  // A stream of appends ends with it, a stream of lookups says it in place.
  CallContext append_context, lookup_context;
  const auto appends = stub_->StreamAppend(&append_context);
  v1::AppendRequest append;
  append.set_store("acme/s");
  *append.mutable_keys() = Message({1, 2}, 2);
  *append.mutable_values() = Message({1}, 1);
  ASSERT_TRUE(appends->Write(append));
  v1::AppendResponse acknowledged;
  EXPECT_FALSE(appends->Read(&acknowledged));
  EXPECT_EQ(ReasonOf(appends->Finish()), "TENANT_RATE");
  EXPECT_GE(PushbackOf(append_context), 1);

  const auto lookups = stub_->StreamLookup(&lookup_context);
  v1::LookupRequest lookup;
  lookup.set_store("acme/s");
  *lookup.mutable_queries() = Message({1, 2}, 2);
  v1::LookupResponse answer;
  ASSERT_TRUE(lookups->Write(lookup));
  ASSERT_TRUE(lookups->Read(&answer));
  EXPECT_EQ(answer.error().code(), static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  lookup.set_store("other/s");
  ASSERT_TRUE(lookups->Write(lookup));
  ASSERT_TRUE(lookups->Read(&answer));
  EXPECT_FALSE(answer.has_error());
  lookups->WritesDone();
  EXPECT_THAT(lookups->Finish(), IsGrpcOk());
}

}  // namespace
}  // namespace softlookup::testing
