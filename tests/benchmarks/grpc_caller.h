#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_GRPC_CALLER_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_GRPC_CALLER_H_

#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/parallel/fork_join_pool.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::testing {

// A store of normally distributed rows, the same ones every time.
struct FilledStore {
  std::string name = "rows";
  std::int64_t row_count = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
};

// The options of its shape.
void AddStoreOptions(CLI::App& command, FilledStore& store);

// What calls to a server came to.
struct Load {
  double calls_per_second = 0;
  double p99_ms = 0;               // Of a call's latency.
  std::int64_t other_answers = 0;  // Calls whose values were not those expected.
};

// One server, and calls to it: all from one thread with one completion queue, so that every server
// is asked at the same cost. What fails ends the program.
class Caller {
 public:
  // Over plaintext and without a token unless they are given.
  explicit Caller(const std::string& address,
                  const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                      grpc::InsecureChannelCredentials(),
                  const std::string& token = "");
  ~Caller();

  void Fill(const FilledStore& store, ForkJoinPool& pool);
  v1::LookupResponse Lookup(const v1::LookupRequest& request);

  // Has `concurrency` calls in flight all the time, each of the next of `requests`. Where
  // `expected` is not empty, it has the values that answer them, as bytes.
  Load Measure(absl::Span<const v1::LookupRequest> requests, absl::Span<const std::string> expected,
               int concurrency, double seconds);

 private:
  struct Call;

  void Identify(grpc::ClientContext& context) const;
  void Begin(const v1::LookupRequest& request, std::size_t index, Call& call);

  const std::unique_ptr<v1::SoftLookup::Stub> stub_;
  const std::string authorization_;  // The header, or nothing.
  grpc::CompletionQueue queue_;
};

// A lookup of `query_count` queries, other ones for every seed.
v1::LookupRequest MakeLookup(const FilledStore& store, std::int64_t query_count, std::uint64_t seed,
                             ForkJoinPool& pool);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_GRPC_CALLER_H_
