#ifndef SOFTLOOKUP_TESTS_INTEGRATION_INTEGRATION_TEST_H_
#define SOFTLOOKUP_TESTS_INTEGRATION_INTEGRATION_TEST_H_

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "softlookup/client.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {

// A matrix over some floats that the caller keeps.
inline FloatMatrixView View(const std::vector<float>& floats, std::int64_t cols) {
  return {floats, static_cast<std::uint32_t>(static_cast<std::int64_t>(floats.size()) / cols),
          static_cast<std::uint32_t>(cols)};
}

// Its rows [begin, begin + count) alone.
inline FloatMatrixView Rows(const std::vector<float>& floats, std::int64_t cols, std::int64_t begin,
                            std::int64_t count) {
  return {absl::MakeConstSpan(floats).subspan(begin * cols, count * cols),
          static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(cols)};
}

// The same as a message.
inline v1::Matrix Message(const std::vector<float>& floats, std::int64_t cols) {
  v1::Matrix matrix;
  matrix.set_rows(static_cast<std::uint32_t>(static_cast<std::int64_t>(floats.size()) / cols));
  matrix.set_cols(static_cast<std::uint32_t>(cols));
  matrix.set_data(floats.data(), floats.size() * sizeof(float));
  return matrix;
}

// A real server, a client of it, and a bare stub for what the client would not send.
class IntegrationTest : public ::testing::Test {
 protected:
  explicit IntegrationTest(const std::vector<std::string>& flags = {})
      : server_(flags),
        client_(*Client::Connect(server_.grpc_address())),
        stub_(v1::SoftLookup::NewStub(Channel(server_))) {}

  static std::shared_ptr<grpc::Channel> Channel(const ServerProcess& server) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    return grpc::CreateCustomChannel(server.grpc_address(), grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  void Create(const std::string& name, std::uint32_t key_dim, std::uint32_t value_dim,
              std::uint32_t num_heads = 1) {
    v1::Store store;
    store.set_name(name);
    store.set_key_dim(key_dim);
    store.set_value_dim(value_dim);
    store.set_num_heads(num_heads);
    const auto created = client_.CreateStore(store);
    ASSERT_TRUE(created.ok()) << created.status();
  }

  ServerProcess server_;
  Client client_;
  std::unique_ptr<v1::SoftLookup::Stub> stub_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_INTEGRATION_INTEGRATION_TEST_H_
