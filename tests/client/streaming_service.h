#ifndef SOFTLOOKUP_TESTS_CLIENT_STREAMING_SERVICE_H_
#define SOFTLOOKUP_TESTS_CLIENT_STREAMING_SERVICE_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::testing {

// A real gRPC server on 127.0.0.1 for the calls about rows and memories that stream, and what goes
// with them. It answers with what the test put into its members, before the first call, and keeps
// the last request of each kind, to be read after the call.
class StreamingService final : public v1::SoftLookup::Service {
 public:
  StreamingService() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~StreamingService() override { server_->Shutdown(std::chrono::system_clock::now()); }

  // HOST:PORT.
  const std::string& address() const { return address_; }

  v1::Store store;
  std::vector<v1::ReadRowsResponse> pages;
  std::vector<v1::Memory> memories;
  v1::AttendResponse attended;
  v1::DeleteRowsResponse deleted;
  v1::LookupResponse answer;
  std::vector<grpc::Status> results;  // Of calls in turn; OK after the last.

  v1::ReadRowsRequest read_rows;
  v1::WatchMemoryRequest watch_memory;
  v1::AttendRequest attend;
  v1::DeleteRowsRequest delete_rows;
  v1::LookupRequest lookup;
  v1::CreateStoreRequest create_store;
  std::vector<v1::AppendRequest> appends;
  std::size_t calls = 0;  // But GetStore.

 private:
  grpc::Status Result() {
    const std::size_t call = calls++;
    return call < results.size() ? results[call] : grpc::Status::OK;
  }

  // A client that has had enough cancels, so a write may fail.
  template <typename Message>
  grpc::Status WriteAll(const std::vector<Message>& messages, grpc::ServerWriter<Message>* stream) {
    for (const Message& message : messages) {
      if (!stream->Write(message)) break;
    }
    return Result();
  }

  grpc::Status GetStore(grpc::ServerContext*, const v1::GetStoreRequest*,
                        v1::Store* response) override {
    *response = store;
    return grpc::Status::OK;
  }
  grpc::Status CreateStore(grpc::ServerContext*, const v1::CreateStoreRequest* request,
                           v1::Store* response) override {
    create_store = *request;
    *response = request->store();
    return Result();
  }
  grpc::Status ReadRows(grpc::ServerContext*, const v1::ReadRowsRequest* request,
                        grpc::ServerWriter<v1::ReadRowsResponse>* stream) override {
    read_rows = *request;
    return WriteAll(pages, stream);
  }
  grpc::Status WatchMemory(grpc::ServerContext*, const v1::WatchMemoryRequest* request,
                           grpc::ServerWriter<v1::Memory>* stream) override {
    watch_memory = *request;
    return WriteAll(memories, stream);
  }
  grpc::Status DeleteRows(grpc::ServerContext*, const v1::DeleteRowsRequest* request,
                          v1::DeleteRowsResponse* response) override {
    delete_rows = *request;
    *response = deleted;
    return Result();
  }
  grpc::Status Attend(grpc::ServerContext*, const v1::AttendRequest* request,
                      v1::AttendResponse* response) override {
    attend = *request;
    *response = attended;
    return Result();
  }
  grpc::Status Lookup(grpc::ServerContext*, const v1::LookupRequest* request,
                      v1::LookupResponse* response) override {
    lookup = *request;
    *response = answer;
    return Result();
  }
  grpc::Status StreamAppend(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::AppendResponse, v1::AppendRequest>* stream) override {
    v1::AppendRequest request;
    while (stream->Read(&request)) {
      appends.push_back(request);
      v1::AppendResponse response;
      response.set_appended_count(request.ids_size());
      stream->Write(response);
    }
    return Result();
  }

  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_STREAMING_SERVICE_H_
