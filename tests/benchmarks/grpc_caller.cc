#include "tests/benchmarks/grpc_caller.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "core/base/limits.h"
#include "tests/benchmarks/measuring.h"
#include "tests/benchmarks/normal_floats.h"

namespace softlookup::testing {
namespace {

using Clock = std::chrono::steady_clock;

void CheckCall(const grpc::Status& status) {
  if (status.ok()) return;
  std::cerr << "call failed: " << status.error_message() << "\n";
  std::exit(1);
}

void SetMatrix(std::int64_t rows, std::int64_t cols, const std::vector<float>& elements,
               v1::Matrix& matrix) {
  matrix.set_rows(static_cast<std::uint32_t>(rows));
  matrix.set_cols(static_cast<std::uint32_t>(cols));
  matrix.set_data(elements.data(), elements.size() * sizeof(float));
}

}  // namespace

void AddStoreOptions(CLI::App& command, FilledStore& store) {
  command.add_option("--rows", store.row_count, "Rows in the store")
      ->check(CLI::Range(std::int64_t{1}, kRowCountMax));
  command.add_option("--key-dim", store.key_dim, "Dimension of keys and queries")
      ->check(CLI::Range(std::int64_t{1}, kDimMax));
  command.add_option("--value-dim", store.value_dim, "Dimension of values")
      ->check(CLI::Range(std::int64_t{1}, kDimMax));
}

struct Caller::Call {
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::LookupResponse>> reader;
  v1::LookupResponse response;
  grpc::Status status;
  std::size_t index = 0;  // Of the request.
  Clock::time_point begin;
};

Caller::Caller(const std::string& address,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials,
               const std::string& token)
    : stub_(v1::SoftLookup::NewStub(grpc::CreateChannel(address, credentials))),
      authorization_(token.empty() ? "" : "Bearer " + token) {}

Caller::~Caller() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
}

void Caller::Identify(grpc::ClientContext& context) const {
  if (!authorization_.empty()) context.AddMetadata("authorization", authorization_);
}

void Caller::Fill(const FilledStore& store, ForkJoinPool& pool) {
  grpc::ClientContext create_context;
  Identify(create_context);
  v1::CreateStoreRequest create;
  create.mutable_store()->set_name(store.name);
  create.mutable_store()->set_key_dim(static_cast<std::uint32_t>(store.key_dim));
  create.mutable_store()->set_value_dim(static_cast<std::uint32_t>(store.value_dim));
  v1::Store created;
  CheckCall(stub_->CreateStore(&create_context, create, &created));

  const std::int64_t batch_rows = std::clamp<std::int64_t>(
      (std::int64_t{4} << 20) / (store.key_dim + store.value_dim), 1, Limits().rows_per_append_max);
  std::uint64_t seed = std::uint64_t{1} << 32;  // Not those of queries.
  for (std::int64_t row = 0; row < store.row_count; row += batch_rows) {
    const std::int64_t rows = std::min(batch_rows, store.row_count - row);
    grpc::ClientContext context;
    Identify(context);
    v1::AppendRequest append;
    append.set_store(store.name);
    SetMatrix(rows, store.key_dim, NormalFloats(rows * store.key_dim, seed++, pool),
              *append.mutable_keys());
    SetMatrix(rows, store.value_dim, NormalFloats(rows * store.value_dim, seed++, pool),
              *append.mutable_values());
    v1::AppendResponse appended;
    CheckCall(stub_->Append(&context, append, &appended));
  }
}

v1::LookupResponse Caller::Lookup(const v1::LookupRequest& request) {
  grpc::ClientContext context;
  Identify(context);
  v1::LookupResponse response;
  CheckCall(stub_->Lookup(&context, request, &response));
  return response;
}

void Caller::Begin(const v1::LookupRequest& request, std::size_t index, Call& call) {
  call.context = std::make_unique<grpc::ClientContext>();
  Identify(*call.context);
  call.index = index;
  call.begin = Clock::now();
  call.reader = stub_->AsyncLookup(call.context.get(), request, &queue_);
  call.reader->Finish(&call.response, &call.status, &call);
}

Load Caller::Measure(absl::Span<const v1::LookupRequest> requests,
                     absl::Span<const std::string> expected, int concurrency, double seconds) {
  std::vector<Call> calls(static_cast<std::size_t>(concurrency));
  std::vector<double> latencies_ms;
  Load load;
  std::size_t next = 0;
  const auto begin_next = [&](Call& call) {
    Begin(requests[next], next, call);
    next = (next + 1) % requests.size();
  };
  const auto begin = Clock::now();
  const auto end =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (Call& call : calls) begin_next(call);
  auto now = begin;
  for (int in_flight = concurrency; in_flight > 0;) {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    Call& call = *static_cast<Call*>(tag);
    CheckCall(call.status);
    now = Clock::now();
    latencies_ms.push_back(std::chrono::duration<double, std::milli>(now - call.begin).count());
    if (!expected.empty() && call.response.values().data() != expected[call.index]) {
      ++load.other_answers;
    }
    if (now < end) {
      begin_next(call);
    } else {
      --in_flight;
    }
  }
  load.calls_per_second =
      static_cast<double>(latencies_ms.size()) / std::chrono::duration<double>(now - begin).count();
  std::sort(latencies_ms.begin(), latencies_ms.end());
  load.p99_ms = latencies_ms[latencies_ms.size() * 99 / 100];
  return load;
}

v1::LookupRequest MakeLookup(const FilledStore& store, std::int64_t query_count, std::uint64_t seed,
                             ForkJoinPool& pool) {
  v1::LookupRequest request;
  request.set_store(store.name);
  SetMatrix(query_count, store.key_dim, NormalFloats(query_count * store.key_dim, seed, pool),
            *request.mutable_queries());
  return request;
}

}  // namespace softlookup::testing
