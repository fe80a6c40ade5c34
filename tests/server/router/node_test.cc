#include "server/router/node.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/testing/passing_time.h"

namespace softlookup::server {
namespace {

// Something to connect to.
class Listener {
 public:
  // Port 0: any.
  explicit Listener(int port) : port_(port) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                             &port_);
    server_ = builder.BuildAndStart();
  }
  int port() const { return port_; }

 private:
  v1::SoftLookup::Service service_;
  int port_;
  std::unique_ptr<grpc::Server> server_;
};

TEST(NodeTest, ANodeThatStopsGetsNoCallsBeforeItIsBack) {
  auto listener = std::make_unique<Listener>(0);
  const int port = listener->port();
  Node node("n", absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
  ASSERT_TRUE(testing::AwaitThat([&] { return node.is_connected(); }));
  // The second call can come too late, on a slow machine.
  do {
    node.NoteStopping();
  } while (node.is_connected());
  // A node that only says that it stops is asked again.
  ASSERT_TRUE(testing::AwaitThat([&] { return node.is_connected(); }));
  node.NoteStopping();
  listener = nullptr;
  ASSERT_TRUE(testing::AwaitThat([&] { return !node.is_connected(); }));
  listener = std::make_unique<Listener>(port);
  ASSERT_TRUE(testing::AwaitThat([&] { return node.is_connected(); }));
}

}  // namespace
}  // namespace softlookup::server
