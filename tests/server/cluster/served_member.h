#ifndef SOFTLOOKUP_TESTS_SERVER_CLUSTER_SERVED_MEMBER_H_
#define SOFTLOOKUP_TESTS_SERVER_CLUSTER_SERVED_MEMBER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace softlookup::server {

// A member of etcd whose answers are those of a service that a test writes. The service must
// outlive it.
class ServedMember {
 public:
  explicit ServedMember(grpc::Service& service) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
    endpoint_ = absl::StrCat("127.0.0.1:", port);
  }
  ~ServedMember() { server_->Shutdown(); }

  const std::string& endpoint() const { return endpoint_; }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::string endpoint_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_TESTS_SERVER_CLUSTER_SERVED_MEMBER_H_
