#include "tests/benchmarks/echo_bench.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/limits.h"
#include "core/parallel/fork_join_pool.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/benchmarks/echo_server.h"
#include "tests/benchmarks/measuring.h"
#include "tests/benchmarks/normal_floats.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kStoreName[] = "rows";
constexpr int kRounds = 7;

struct EchoFlags {
  std::int64_t query_count = 1;
  std::int64_t row_count = 100;
  std::int64_t key_dim = 64;
  std::int64_t value_dim = 64;
  int concurrency = 8;
  double seconds = 3;
};

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

// One server, and calls to it: all from one thread with one completion queue, so that every server
// is asked at the same cost.
class Caller {
 public:
  explicit Caller(const std::string& address)
      : stub_(v1::SoftLookup::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {}
  ~Caller() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) continue;
  }

  v1::SoftLookup::Stub& stub() { return *stub_; }

  // With `concurrency` of them in flight all the time.
  double CallsPerSecond(const v1::LookupRequest& request, int concurrency, double seconds) {
    std::vector<Call> calls(static_cast<std::size_t>(concurrency));
    const auto begin = Clock::now();
    const auto end =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    for (Call& call : calls) Begin(request, call);
    std::int64_t finished_count = 0;
    auto now = begin;
    for (int in_flight = concurrency; in_flight > 0;) {
      void* tag = nullptr;
      bool ok = false;
      queue_.Next(&tag, &ok);
      Call& call = *static_cast<Call*>(tag);
      CheckCall(call.status);
      ++finished_count;
      now = Clock::now();
      if (now < end) {
        Begin(request, call);
      } else {
        --in_flight;
      }
    }
    return static_cast<double>(finished_count) / std::chrono::duration<double>(now - begin).count();
  }

 private:
  struct Call {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::LookupResponse>> reader;
    v1::LookupResponse response;
    grpc::Status status;
  };

  void Begin(const v1::LookupRequest& request, Call& call) {
    call.context = std::make_unique<grpc::ClientContext>();
    call.reader = stub_->AsyncLookup(call.context.get(), request, &queue_);
    call.reader->Finish(&call.response, &call.status, &call);
  }

  const std::unique_ptr<v1::SoftLookup::Stub> stub_;
  grpc::CompletionQueue queue_;
};

void FillStore(const EchoFlags& flags, ForkJoinPool& pool, v1::SoftLookup::Stub& stub) {
  grpc::ClientContext create_context;
  v1::CreateStoreRequest create;
  create.mutable_store()->set_name(kStoreName);
  create.mutable_store()->set_key_dim(static_cast<std::uint32_t>(flags.key_dim));
  create.mutable_store()->set_value_dim(static_cast<std::uint32_t>(flags.value_dim));
  v1::Store store;
  CheckCall(stub.CreateStore(&create_context, create, &store));

  const std::int64_t batch_rows = std::clamp<std::int64_t>(
      (std::int64_t{4} << 20) / (flags.key_dim + flags.value_dim), 1, Limits().rows_per_append_max);
  std::uint64_t seed = 2;  // The queries have 1.
  for (std::int64_t row = 0; row < flags.row_count; row += batch_rows) {
    const std::int64_t rows = std::min(batch_rows, flags.row_count - row);
    grpc::ClientContext context;
    v1::AppendRequest append;
    append.set_store(kStoreName);
    SetMatrix(rows, flags.key_dim, NormalFloats(rows * flags.key_dim, seed++, pool),
              *append.mutable_keys());
    SetMatrix(rows, flags.value_dim, NormalFloats(rows * flags.value_dim, seed++, pool),
              *append.mutable_values());
    v1::AppendResponse appended;
    CheckCall(stub.Append(&context, append, &appended));
  }
}

void RunEcho(const EchoFlags& flags) {
  EchoServer queue_echo(EchoApi::kCompletionQueue), callback_echo(EchoApi::kCallback);
  const ServerProcess server;
  Caller lookup_caller(server.grpc_address());
  v1::LookupRequest request;
  request.set_store(kStoreName);
  {
    ForkJoinPool pool(1, 1);
    FillStore(flags, pool, lookup_caller.stub());
    SetMatrix(flags.query_count, flags.key_dim,
              NormalFloats(flags.query_count * flags.key_dim, 1, pool), *request.mutable_queries());
  }
  grpc::ClientContext context;
  v1::LookupResponse response;
  CheckCall(lookup_caller.stub().Lookup(&context, request, &response));
  Caller queue_caller(queue_echo.Start(response)), callback_caller(callback_echo.Start(response));

  std::vector<double> lookup_rates, queue_rates, callback_rates;
  const auto measure = [&](Caller& caller, std::vector<double>& rates) {
    rates.push_back(caller.CallsPerSecond(request, flags.concurrency, flags.seconds / kRounds));
  };
  for (int round = 0; round < kRounds; ++round) {
    measure(lookup_caller, lookup_rates);
    measure(queue_caller, queue_rates);
    measure(callback_caller, callback_rates);
  }
  const double queue_rate = Median(queue_rates), callback_rate = Median(callback_rates);
  const bool queue_is_faster = queue_rate > callback_rate;
  const double echo_rate = std::max(queue_rate, callback_rate);
  const double lookup_rate = Median(lookup_rates);
  std::printf(
      "lookup_per_s=%.0f echo_per_s=%.0f ratio=%.3f fastest_echo=%s completion_queue_per_s=%.0f "
      "callback_per_s=%.0f\n",
      lookup_rate, echo_rate, lookup_rate / echo_rate,
      queue_is_faster ? "completion_queue" : "callback", queue_rate, callback_rate);
}

}  // namespace

void AddEchoBench(CLI::App& app) {
  const auto flags = std::make_shared<EchoFlags>();
  CLI::App* command = app.add_subcommand(
      "echo", "Small lookups beside bare gRPC echoes of the same payloads, over loopback");
  command->add_option("--queries", flags->query_count, "Queries in a lookup")
      ->check(CLI::Range(std::int64_t{1}, Limits().queries_per_lookup_max));
  command->add_option("--rows", flags->row_count, "Rows in the store")->check(CLI::PositiveNumber);
  command->add_option("--key-dim", flags->key_dim)->check(CLI::Range(std::int64_t{1}, kDimMax));
  command->add_option("--value-dim", flags->value_dim)->check(CLI::Range(std::int64_t{1}, kDimMax));
  command->add_option("--concurrency", flags->concurrency, "Calls in flight")
      ->check(CLI::Range(1, 4096));
  command->add_option("--seconds", flags->seconds, "Of calls to each server, over all rounds")
      ->check(CLI::PositiveNumber);
  command->callback([flags] { RunEcho(*flags); });
}

}  // namespace softlookup::testing
