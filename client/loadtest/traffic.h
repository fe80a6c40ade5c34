#ifndef SOFTLOOKUP_CLIENT_LOADTEST_TRAFFIC_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_TRAFFIC_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/loadtest/random.h"
#include "client/loadtest/request_mix.h"
#include "client/loadtest/row_source.h"
#include "softlookup/v1/attention.pb.h"

namespace softlookup::loadtest {

// A request that is encoded once and sent many times.
struct PreparedRequest {
  Method method = Method::kLookup;
  std::uint32_t store = 0;    // Number of the store.
  std::uint32_t content = 0;  // Number of the set of queries, or batch of rows, in RowSource.
  grpc::ByteBuffer bytes;     // The encoded request of the method.
};

struct TrafficOptions {
  RequestMix mix;
  std::uint32_t queries = 1;      // Per lookup, in [1, 4096].
  std::uint32_t append_rows = 1;  // Per append, in [1, 65536].
  v1::AttentionOptions attention;
};

// A pool of requests to stores of the same dimensions, from which requests are drawn at random. It
// has up to 64 sets of queries and 64 batches of rows. Requests with the same queries, or the same
// rows, share their bytes. Thread-safe once made.
class Traffic {
 public:
  // `stores` are names, at least one. InvalidArgument if a request would be larger than a message
  // may be.
  static absl::StatusOr<Traffic> Make(const TrafficOptions& options, const RowSource& rows,
                                      const std::vector<std::string>& stores);

  // The result is valid as long as this object.
  const PreparedRequest& Draw(Random* random) const {
    const auto& requests = mix_.Draw(random) == Method::kLookup ? lookups_ : appends_;
    return requests[random->Below(static_cast<std::uint32_t>(requests.size()))];
  }

 private:
  RequestMix mix_;
  std::vector<PreparedRequest> lookups_;
  std::vector<PreparedRequest> appends_;
};

// Returns the method's gRPC path, such as "/softlookup.v1.SoftLookup/Lookup".
const std::string& PathOf(Method method);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_TRAFFIC_H_
