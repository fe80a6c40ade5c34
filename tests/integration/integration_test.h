#ifndef SOFTLOOKUP_TESTS_INTEGRATION_INTEGRATION_TEST_H_
#define SOFTLOOKUP_TESTS_INTEGRATION_INTEGRATION_TEST_H_

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "softlookup/attention.h"
#include "softlookup/client.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/testing/random.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A matrix over some floats that the caller keeps.
FloatMatrixView View(const std::vector<float>& floats, std::int64_t cols);
// Its rows [begin, begin + count) alone.
FloatMatrixView Rows(const std::vector<float>& floats, std::int64_t cols, std::int64_t begin,
                     std::int64_t count);

// The same as a message, and back.
v1::Matrix Message(const std::vector<float>& floats, std::int64_t cols);
std::vector<float> Floats(const v1::Matrix& matrix);
std::vector<double> Doubles(const v1::Matrix& matrix);

v1::AttentionOptions Message(const AttentionOptions& options);

v1::Store StoreMessage(const std::string& name, std::int64_t key_dim, std::int64_t value_dim,
                       std::int64_t num_heads = 1);

// One weight a row, 0 where none is listed.
std::vector<double> Dense(const v1::QueryWeights& weights, std::int64_t row_count);

// A random projection that keeps the scale of its inputs.
struct Maps {
  std::vector<float> query, key, value;
  v1::Projection message;
};
Maps RandomMaps(Draw& draw, std::int64_t key_dim, std::int64_t value_dim, std::int64_t input_dim);
// inputs [N, input_dim] times the transpose of map [dim, input_dim], rounded once.
std::vector<float> Projected(const std::vector<float>& inputs, const std::vector<float>& map,
                             std::int64_t input_dim);

// Equal, infinities included, or nearer than 1e-5.
void ExpectClose(double actual, double expected, const std::string& what);

// The same message, field by field.
MATCHER_P(IsMessage, expected, "") {
  google::protobuf::util::MessageDifferencer differencer;
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  const bool same = differencer.Compare(expected, arg);
  *result_listener << differences;
  return same;
}

MATCHER(IsGrpcOk, "") {
  *result_listener << arg.error_code() << ": " << arg.error_message();
  return arg.ok();
}

// It has this code, and `text` is part of its message.
MATCHER_P2(IsGrpcError, code, text, "") {
  *result_listener << "with " << arg.error_code() << ": " << arg.error_message();
  return arg.error_code() == code && arg.error_message().find(text) != std::string::npos;
}

// The ErrorInfo in a failed call's trailer; an empty one if it is missing or unreadable.
google::rpc::ErrorInfo InfoOf(const grpc::Status& status);
// Its reason, if the domain is ours.
std::string ReasonOf(const grpc::Status& status);

// The context of a call that fails rather than hangs.
class CallContext : public grpc::ClientContext {
 public:
  CallContext();
};

// A real server, a client of it, and bare calls for what the client would not send.
class IntegrationTest : public ::testing::Test {
 protected:
  explicit IntegrationTest(const std::vector<std::string>& flags = {});

  static std::shared_ptr<grpc::Channel> Channel(const ServerProcess& server);

  // Creates a store that must be new.
  void Create(const std::string& name, std::int64_t key_dim, std::int64_t value_dim,
              std::int64_t num_heads = 1);
  // Reads a store that must be there.
  v1::Store GetStore(const std::string& name);

  // One unary call, as in Call(&v1::SoftLookup::Stub::Append, request, &response).
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (v1::SoftLookup::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                    const Request& request, Response* response) {
    CallContext context;
    response->Clear();
    return (stub_.get()->*method)(&context, request, response);
  }
  grpc::Status CreateStore(const v1::Store& store);
  grpc::Status DeleteStore(const std::string& name);
  grpc::Status Append(const v1::AppendRequest& request, v1::AppendResponse* response = nullptr);
  grpc::Status Lookup(const v1::LookupRequest& request, v1::LookupResponse* response);
  grpc::Status DeleteRows(const std::string& store, const v1::RowFilter& filter,
                          v1::DeleteRowsResponse* response);
  grpc::Status GetMemory(const std::string& store, const std::string& name,
                         std::optional<std::uint64_t> begin, std::optional<std::uint64_t> end,
                         v1::Memory* response);
  grpc::Status ReadRows(const v1::ReadRowsRequest& request,
                        std::vector<v1::ReadRowsResponse>* pages);
  // The rows of a store that a filter leaves, and their positions.
  std::vector<v1::Row> RowsOf(const std::string& store, const v1::RowFilter& filter = {});
  std::vector<std::uint64_t> PositionsOf(const std::string& store,
                                         const v1::RowFilter& filter = {});

  // For a store "s" of dimensions 2 and 1: the keys (1, 2) and (3, 4), the values 5 and 6.
  static v1::AppendRequest TwoRows();
  // For a store "s" of dimensions 1 and 1. Row i has the id first_id + i, the same as its key, and
  // the value `value`.
  static v1::AppendRequest RowsWithIds(std::uint64_t first_id, int count, float value,
                                       v1::OnConflict on_conflict = v1::ON_CONFLICT_UNSPECIFIED);
  // Asks it for the weights of the query 1.
  static v1::LookupRequest OneQuery();

  ServerProcess server_;
  Client client_;
  std::unique_ptr<v1::SoftLookup::Stub> stub_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_INTEGRATION_INTEGRATION_TEST_H_
